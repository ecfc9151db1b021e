package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/policy"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/openai"
)

// admit lets a caller use a model or a route, or says in the API's words why not.
// leave has to be called when the request is over.
func (a *API) admit(ctx context.Context, who caller.Caller, action policy.Action, name string) (leave func(), err error) {
	leave, problem := a.Sessions.Gate().Admit(ctx, who, action, name)
	if problem == nil {
		return leave, nil
	}
	e := &openai.Error{Status: http.StatusForbidden, Type: openai.TypePermission, Code: problem.Code, Message: problem.Message, Err: problem.Err}
	if problem.Code != dragoman.CodeDenied {
		e.Status, e.Type = http.StatusTooManyRequests, openai.TypeRateLimit
		e.Header = http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(problem.RetryAfter.Seconds())))}}
	}
	return nil, e
}

// used counts the tokens of a usage object, as model APIs send it.
func (a *API) used(who caller.Caller, model string, usage []byte) {
	o, err := rawjson.ParseObject(usage)
	if err != nil {
		return
	}
	total, ok := rawjson.Int(o.Get("total_tokens"))
	if !ok {
		in, _ := rawjson.Int(o.Get("input_tokens"))
		out, _ := rawjson.Int(o.Get("output_tokens"))
		total = in + out
	}
	a.Sessions.Gate().Used(who, model, int64(total))
}

// maxUsage is how much of the end of an answer that is passed on is looked at for
// its usage.
const maxUsage = 8 << 10

// usageReader passes a body on and keeps its end, where model APIs say how many
// tokens were used.
type usageReader struct {
	io.ReadCloser
	tail []byte
	said func(usage []byte) // nil once it was called
}

func (u *usageReader) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	u.tail = append(u.tail, p[:n]...)
	if extra := len(u.tail) - maxUsage; extra > maxUsage {
		u.tail = append(u.tail[:0], u.tail[extra:]...)
	}
	if err != nil {
		u.end()
	}
	return n, err
}

func (u *usageReader) Close() error {
	u.end()
	return u.ReadCloser.Close()
}

func (u *usageReader) end() {
	said := u.said
	if u.said = nil; said == nil {
		return
	}
	at := bytes.LastIndex(u.tail, []byte(`"usage":`))
	if at < 0 {
		return
	}
	var usage json.RawMessage
	if json.NewDecoder(bytes.NewReader(u.tail[at+len(`"usage":`):])).Decode(&usage) == nil {
		said(usage)
	}
}
