package fakeresponses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// An Answer is what the model says to one request.
type Answer struct {
	// Items are the items of its output.
	Items []json.RawMessage
	// Incomplete is why the output is not all of it, such as max_output_tokens; empty for
	// one that is.
	Incomplete string
	// Usage is the usage; nil for one of 10 tokens in and 5 out.
	Usage json.RawMessage
	// Status, and Code, Message and Param with it, is that of an error in place of an
	// answer; 0 for none. 200 is one that comes in the middle of a stream.
	Status               int
	Code, Message, Param string
	// Cut breaks a stream off before its end.
	Cut bool
}

// An API is the stand-in. The zero value refuses every request for want of an answer. It is
// an [http.Handler] for the paths below /v1, and safe for concurrent use.
type API struct {
	// Unsealed says that the model has no thoughts that could be sealed: requests for them
	// are refused.
	Unsealed bool
	// Bare says that it has nothing at input_tokens and compact.
	Bare bool

	mu      sync.Mutex
	answers []Answer
	asked   []json.RawMessage
	kept    map[string]context
	made    int
	refused []string
}

// A context is what a response that is kept was made of, and what it said.
type context struct {
	items    []json.RawMessage
	response json.RawMessage
}

// Say puts answers behind those that are still to be given.
func (a *API) Say(answers ...Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers = append(a.answers, answers...)
}

// Asked returns the bodies of the requests that were taken so far, and forgets them.
func (a *API) Asked() []json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

// Refused returns why requests were refused so far.
func (a *API) Refused() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.refused)
}

// Left returns how many answers are still to be given.
func (a *API) Left() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.answers)
}

// Forget makes the API not have a response any more; an empty id means all of them.
func (a *API) Forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == "" {
		a.kept = nil
	}
	delete(a.kept, id)
}

// A Failure is an error of the API.
type Failure struct {
	Status               int
	Code, Message, Param string
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

func (f *Failure) object() json.RawMessage {
	kind := "invalid_request_error"
	switch {
	case f.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case f.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case f.Status >= 500 || f.Status == http.StatusOK:
		kind = "server_error"
	}
	return object(text("message", f.Message), text("type", kind), nullable("param", f.Param), nullable("code", f.Code))
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id, named := strings.CutPrefix(r.URL.Path, "/v1/responses/")
	switch {
	case r.Method == http.MethodGet && named:
		a.mu.Lock()
		found, ok := a.kept[id]
		a.mu.Unlock()
		if !ok {
			fail(w, &Failure{Status: 404, Message: "Response with id '" + id + "' not found."})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(found.response)
		return
	case r.Method == http.MethodPost && named && !a.Bare && (id == "input_tokens" || id == "compact"):
		a.size(w, id, body)
		return
	case r.Method != http.MethodPost || r.URL.Path != "/v1/responses":
		fail(w, &Failure{Status: 404, Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"})
		return
	}
	a.respond(w, body)
}

// size answers POST /v1/responses/input_tokens, where each byte of what the model reads is a
// token, and POST /v1/responses/compact, where what was compacted stands as it was.
func (a *API) size(w http.ResponseWriter, what string, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, failure := read(body, a.kept)
	if failure == nil {
		failure = sizeShapes[what].check(r.object, "")
	}
	if failure != nil {
		a.refused = append(a.refused, failure.Message)
		fail(w, failure)
		return
	}
	a.asked = append(a.asked, slices.Clone(body))
	n := len(stringOf(r.object, "instructions")) + len(r.object.Get("tools"))
	var kept, gone []json.RawMessage
	for _, item := range r.context {
		n += len(item)
		if o, err := rawjson.ParseObject(item); err == nil && stringOf(o, "role") == "user" {
			if o.Get("type") == nil {
				o.Members = append([]rawjson.Member{text("type", "message")}, o.Members...)
			}
			kept = append(kept, o.Bytes())
			continue
		}
		gone = append(gone, item)
	}
	w.Header().Set("Content-Type", "application/json")
	if what == "input_tokens" {
		_, _ = w.Write(object(text("object", "response.input_tokens"), number("input_tokens", n)))
		return
	}
	a.made++
	kept = append(kept, object(text("id", fmt.Sprintf("cmp_%04d", a.made)), text("type", "compaction"), text("encrypted_content", fmt.Sprintf("gAAAA%x", rawjson.AppendArray(nil, gone)))))
	_, _ = w.Write(object(text("id", fmt.Sprintf("resp_%04d", a.made)), text("object", "response.compaction"), number("created_at", 1), raw("output", rawjson.AppendArray(nil, kept)),
		raw("usage", json.RawMessage(`{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":15}`))))
}

func fail(w http.ResponseWriter, f *Failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	_, _ = w.Write(object(raw("error", f.object())))
}

// respond answers POST /v1/responses.
func (a *API) respond(w http.ResponseWriter, body []byte) {
	answer, made, failure := a.take(body)
	switch {
	case failure != nil:
		fail(w, failure)
		return
	case answer.Status > 200:
		fail(w, &Failure{answer.Status, answer.Code, answer.Message, answer.Param})
		return
	case !made.stream:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(made.response(answer))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	var b bytes.Buffer
	s := &stream{w: &b}
	made.tell(s, answer)
	_, _ = w.Write(b.Bytes())
	if answer.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// take reads a request and takes the next answer for it.
func (a *API) take(body []byte) (answer Answer, m *made, failure *Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, failure := read(body, a.kept)
	if failure == nil && a.Unsealed && slices.Contains(r.include, "reasoning.encrypted_content") {
		failure = &Failure{Status: 400, Param: "include", Message: "Encrypted content is not supported with this model."}
	}
	if failure == nil && len(a.answers) == 0 {
		failure = &Failure{Status: 500, Code: "server_error", Message: "There is no answer left."}
	}
	if failure != nil {
		a.refused = append(a.refused, failure.Message)
		return answer, nil, failure
	}
	a.asked = append(a.asked, slices.Clone(body))
	answer, a.answers = a.answers[0], a.answers[1:]
	a.made++
	m = &made{request: r, id: fmt.Sprintf("resp_%04d", a.made), stream: string(r.object.Get("stream")) == "true"}
	if r.store && answer.Status == 0 && !answer.Cut {
		if a.kept == nil {
			a.kept = map[string]context{}
		}
		a.kept[m.id] = context{items: slices.Concat(r.context, answer.Items), response: m.response(answer)}
	}
	return answer, m, nil
}

// Items returns items of lines, one an item.
func Items(lines ...string) []json.RawMessage {
	all := make([]json.RawMessage, len(lines))
	for i, line := range lines {
		all[i] = json.RawMessage(line)
	}
	return all
}

func object(members ...rawjson.Member) json.RawMessage {
	return (&rawjson.Object{Members: members}).Bytes()
}

func raw(name string, value json.RawMessage) rawjson.Member {
	if value == nil {
		value = json.RawMessage("null")
	}
	return rawjson.Member{Name: name, Value: value}
}

func text(name, value string) rawjson.Member {
	return rawjson.Member{Name: name, Value: rawjson.Quote(value)}
}

func nullable(name, value string) rawjson.Member {
	if value == "" {
		return raw(name, nil)
	}
	return text(name, value)
}

func number(name string, n int) rawjson.Member {
	return raw(name, json.RawMessage(fmt.Sprint(n)))
}

func stringOf(o *rawjson.Object, name string) string {
	s, _ := rawjson.String(o.Get(name))
	return s
}
