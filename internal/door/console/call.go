package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/text/base64text"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// spelledKey is a name as package show spells it.
func spelledKey(name string) string { return invisible.Spell(name) }

// posted reads the form of a request.
func (c *Console) posted(r *request) (url.Values, error) {
	body, err := door.ReadBody(r.w, r.Request, c.o.MaxBody())
	if err != nil {
		return nil, err
	}
	said, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, model.Invalid("", "The form could not be read.")
	}
	return said, nil
}

// call calls a tool by hand: through the whole stack, as the person who is signed in. A
// call that a rule asks about waits as everybody's do, and is not for the one who made it
// to approve.
func (c *Console) call(r *request) error {
	said, err := c.posted(r)
	if err != nil {
		return err
	}
	s, t, err := c.about(r, said)
	if err != nil {
		return err
	}
	p, err := c.toolPage(r, s, t)
	if err != nil {
		return err
	}
	p.Arguments = said.Get("arguments")
	call := dragoman.Call{ID: "console", Tool: t}
	var repairs []dialect.Repair
	plan, problem := s.Dialect.Plan(*t)
	switch {
	case t.Quarantined != nil:
		call.Problem = t.Quarantined
	case problem != nil:
		call.Problem = problem
	default:
		call.Arguments, repairs, call.Problem = plan.DecodeAs(p.Arguments, "", dialect.GradeOf(t))
	}
	res, err := s.Call(r.Context(), call, nil)
	if err != nil && context.Cause(r.Context()) != nil {
		return err
	}
	if err != nil {
		return &model.Error{Status: http.StatusBadGateway, Type: model.TypeServer, Code: model.CodeInternal, Message: "The call failed here. The log tells more.", Err: err}
	}
	p.Called = calledAs(call, res, s.Shape(t).Message(call, res), repairs)
	return c.show(r, "tool.html", view{Title: "Tool", Here: Root + "tools", Data: p})
}

// maxShown bounds a result on a page, in bytes; what is more is said to be cut.
const maxShown = 256 << 10

func calledAs(call dragoman.Call, res dragoman.Result, message result.Message, repairs []dialect.Repair) *called {
	done := &called{Took: res.Info.Duration, Ran: res.Ran.String(), Failed: res.Failed, Repairs: repairs, Shown: message.Text, Tokens: result.EstimateTokens(message.Text)}
	if call.Arguments != nil {
		done.Sent = lines(call.Arguments)
	}
	if res.Problem != nil {
		done.Problem, done.Code = res.Problem.Message, res.Problem.Code
	}
	if res.Asks != nil {
		done.Questions = len(res.Asks.Questions)
	}
	content := res.Content
	if len(content) > maxShown {
		done.Cut = len(content) - maxShown
		done.Came = []line{{Text: string([]rune(string(content[:maxShown])))}}
	} else if content != nil {
		done.Came = lines(content)
	}
	if len(done.Shown) > maxShown {
		done.Shown = done.Shown[:maxShown]
	}
	done.Images = images(content)
	return done
}

// imageTypes are those that a browser shows and that hold no program.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// maxImages and maxImage bound what a page carries of images: how many, and bytes of base64.
const (
	maxImages = 4
	maxImage  = 4 << 20
)

// images returns the images of a result that may be shown after a click.
func images(content json.RawMessage) (all []image) {
	o, err := rawjson.ParseObject(content)
	if err != nil {
		return nil
	}
	blocks, err := rawjson.Elements(o.Get("content"))
	if err != nil {
		return nil
	}
	for _, block := range blocks {
		b, err := rawjson.ParseObject(block)
		if err != nil || len(all) == maxImages {
			continue
		}
		kind, _ := rawjson.String(b.Get("mimeType"))
		data, _ := rawjson.String(b.Get("data"))
		if len(data) > maxImage || !slices.Contains(imageTypes, kind) {
			continue
		}
		if data, ok := base64text.Canonical([]byte(data)); ok && len(data) > 0 {
			all = append(all, image{kind, string(data)})
		}
	}
	return all
}
