package messages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/internal/transcript"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

var update = flag.Bool("update", false, "rewrite what the transcripts expect")

// TestTranscripts plays the conversations in testdata/messages, as the transcripts of
// the Chat half are played. A transcript says in its comment which rule it shows, and on
// lines of their own, what is special:
//
//	dialect: NAME   what the upstream accepts
//	rounds: N       after which the model must answer
//	beta: FLAGS     the header anthropic-beta
//	search: yes     a tool searches the web
//	hidden: yes     tools are searched for
//
// Then follow client requests ("request", with the words "retried", "lost", where the
// client does not get the end of its answer, and "caller=NAME" behind it), and the
// upstream's responses ("upstream", optionally beginning with a status line). What the
// test expects, and -update writes, stands behind that: for each request the bodies that
// the upstream was sent ("asked"), the calls that ran ("ran"), and all that the client
// got ("got"). Ids and seals that are random are written <msg-1>, <seal-1> and so on, in
// requests too.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/messages/*.txtar", *update, play)
}

// A player plays one transcript.
type player struct {
	*testing.T
	upstream transcript.Upstream
	dialect  *dialect.Dialect
	rounds   int
	beta     string
	hidden   bool // tools are searched for
	seals    *seal.Ring
	memory   memory.Store
	running  memory.Running
	offers   model.Offers
	shop     shop
	ids      transcript.IDs
}

func play(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	p := &player{
		T: t, upstream: transcript.Upstream{TB: t}, seals: seal.New(), memory: &memory.Memory{}, dialect: mustDialect(t, dialect.Conservative),
		ids: transcript.IDs{Pattern: mintedID, Kind: kindOfID},
	}
	for word, value := range transcript.Settings(archive) {
		switch word {
		case "dialect":
			p.dialect = mustDialect(t, value)
		case "rounds":
			p.rounds, _ = strconv.Atoi(value)
		case "beta":
			p.beta = value
		case "search":
			p.shop.searches = true
		case "hidden":
			p.hidden = true
		}
	}
	return transcript.Play(t, archive, p.request)
}

func mustDialect(t testing.TB, name string) *dialect.Dialect {
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// request plays one request of a client.
func (p *player) request(flags string, body []byte, answers []string) []txtar.File {
	p.upstream.Answers, p.upstream.Asked = answers, nil
	recorder := httptest.NewRecorder()
	var w http.ResponseWriter = recorder
	if strings.Contains(flags, "lost") {
		w = lost{recorder}
	}
	request, err := Parse(p.ids.Put(body))
	if err == nil {
		request.Flags([]string{p.beta})
		options := Options{Seals: p.seals, Options: chat.Options{
			Model: &model.Client{Post: p.upstream.Post, Dialect: p.dialect}, Memory: p.memory, Running: &p.running, Offers: &p.offers, Caller: "alice",
			Retried: strings.Contains(flags, "retried"), Shape: func(*dragoman.Tool) *result.Shape { return &result.Shape{Images: true} }, ID: "req_1",
		}}
		if p.hidden {
			options.Search = model.Search{When: model.Always}
		}
		if _, name, ok := strings.Cut(flags, "caller="); ok {
			options.Caller = name
		}
		if _, name, ok := strings.Cut(flags, "dialect="); ok {
			options.Model.Dialect = mustDialect(p.T, name)
		}
		var conversation *Conversation
		if conversation, err = New(request, w, options); err == nil {
			loop := dragoman.Loop{Tools: &p.shop, Rounds: p.rounds}
			_ = loop.Run(p.Context(), conversation)
		}
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		WriteError(w, e)
	} else if err != nil {
		p.Fatal(err)
	}
	return transcript.Came(&p.upstream, &p.shop.Shop, &p.ids, recorder)
}

// lost is a client's connection that breaks with the end of the answer.
type lost struct{ *httptest.ResponseRecorder }

func (l lost) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("message_stop")) || bytes.Contains(b, []byte(`"stop_reason":"`)) {
		return 0, io.ErrClosedPipe
	}
	return l.ResponseRecorder.Write(b)
}

var mintedID = regexp.MustCompile(`call_dragoman0[A-Z2-7]{22}|call_dragoman1[A-Z2-7]{22}|(?:msg|toolu|mcptoolu|srvtoolu)_dg[A-Z2-7]{22}|A[Q-Za-f][A-Za-z0-9+/]{50,}=*`)

func kindOfID(id string) string {
	kind, _, ok := strings.Cut(id, "_dg")
	switch {
	case ok:
		return kind
	case strings.HasPrefix(id, "call_dragoman0"):
		return "read"
	case strings.HasPrefix(id, "call_dragoman1"):
		return "wrote"
	}
	return "seal"
}

// shop is the toolset of the transcripts, with a tool that asks and, where it searches, one
// that does.
type shop struct {
	transcript.Shop
	searches bool
}

var shopList = &dragoman.List{Tools: dragoman.NewTools(slices.Insert(slices.Clone(transcript.Tools), 2, transcript.Tool("files", "lock", dragoman.MayChange, `{"type":"object","properties":{}}`)))}

func (s *shop) List(context.Context) (*dragoman.List, error) {
	if !s.searches {
		return shopList, nil
	}
	does := transcript.Tool("search", "web", dragoman.ReadOnly, `{"type":"object"}`)
	return &dragoman.List{Tools: dragoman.NewTools(append(slices.Clone(shopList.Tools.All()), hosted.Search{}.Tool(&does, hosted.WebSearch)))}, nil
}

func (s *shop) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	switch c.Tool.Original {
	case hosted.WebSearch:
		s.Runs(c)
		if hosted.Query(c.Arguments) == "too much" {
			return dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{Code: dragoman.CodeBudget, Message: "No further searches."}}, nil
		}
		return dragoman.Result{Ran: dragoman.RanYes, Content: hosted.Content([]hosted.Result{{URL: "https://cats.example/oslo", Title: "Cats in Oslo", Text: "There are many."}})}, nil
	case "lock":
		s.Runs(c)
		if c.Answers != nil {
			return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"locked":true}}`)}, nil
		}
		return dragoman.Result{Ran: dragoman.RanNot, Asks: &dragoman.Asks{State: []byte("s"), Questions: []dragoman.Question{{Key: "k", Kind: dragoman.AskApproval, Operator: true}}}}, nil
	}
	return s.Shop.Call(ctx, c)
}
