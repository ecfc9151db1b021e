package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Misbehaviour is a way in which real models and the servers in front of them
// deviate. Ask for it with [Model.Misbehave], or in one request by the
// model's name: "rehearsal:slow+cut-stream".
type Misbehaviour string

// The misbehaviours. [Misbehaviours] lists them, [Misbehaviour.String] is the
// word for the model's name, and [Misbehaviour.Means] says what each does.
const (
	WrongJSON        Misbehaviour = "wrong-json"
	CutArguments     Misbehaviour = "cut-arguments"
	WholeArguments   Misbehaviour = "whole-arguments"
	MissingIndex     Misbehaviour = "missing-index"
	SameIndex        Misbehaviour = "same-index"
	EmptyID          Misbehaviour = "empty-id"
	RepeatName       Misbehaviour = "repeat-name"
	FinishStop       Misbehaviour = "finish-stop"
	UnknownTool      Misbehaviour = "unknown-tool"
	ToolsUnsupported Misbehaviour = "tools-unsupported"
	Reasoning        Misbehaviour = "reasoning"
	Signature        Misbehaviour = "signature"
	CutStream        Misbehaviour = "cut-stream"
	NoDone           Misbehaviour = "no-done"
	CRLF             Misbehaviour = "crlf"
	JSONForStream    Misbehaviour = "json-for-stream"
	ErrorInStream    Misbehaviour = "error-in-stream"
	Slow             Misbehaviour = "slow"
	SlowStream       Misbehaviour = "slow-stream"
	TooMany          Misbehaviour = "429"
	TooManyOnce      Misbehaviour = "429-once"
	ServerError      Misbehaviour = "500"
	Unauthorized     Misbehaviour = "401"
	HTML             Misbehaviour = "html"
)

var means = map[Misbehaviour]string{
	WrongJSON:        "the arguments of calls are not JSON, though their braces match",
	CutArguments:     "the arguments of calls end in the middle, and finish_reason does not say so",
	WholeArguments:   "a stream carries each call in one delta, as Groq and Mistral do",
	MissingIndex:     "the deltas of calls have no index, as Gemini's may",
	SameIndex:        "the deltas of all calls have index 0, as Gemini's may",
	EmptyID:          "calls have an empty id",
	RepeatName:       "every delta of a call repeats its name",
	FinishStop:       "finish_reason is stop although there are calls, as with Gemini",
	UnknownTool:      "the first call names a tool that nobody offered",
	ToolsUnsupported: "a request with tools is refused with 400, as Ollama does for some models",
	Reasoning:        "thinks aloud in reasoning_content, and refuses with 400 a history that dropped it from a message with calls, as DeepSeek does",
	Signature:        "signs the first call of a message in extra_content.google.thought_signature, and refuses with 400 a history that dropped it, as Gemini does",
	CutStream:        "the connection breaks in the middle of the answer",
	NoDone:           "a stream ends without [DONE]",
	CRLF:             "the lines of a stream end in CR LF",
	JSONForStream:    "the answer is one JSON body where a stream was asked for",
	ErrorInStream:    "a stream breaks off with an error object (500 where no stream was asked for)",
	Slow:             "waits Model.Delay, 2 s by default, before the first byte",
	SlowStream:       "waits Model.Delay, 100 ms by default, before each event of a stream",
	TooMany:          "429 with Retry-After: 1",
	TooManyOnce:      "429 with Retry-After: 1 for the first request with the same body",
	ServerError:      "500",
	Unauthorized:     "401",
	HTML:             "502 with a web page, as from a proxy",
}

// String is the word for a model's name.
func (b Misbehaviour) String() string { return string(b) }

// Means says in half a sentence what the misbehaviour does. It is empty for
// one that does not exist.
func (b Misbehaviour) Means() string { return means[b] }

// Misbehaviours lists all there are, sorted.
func Misbehaviours() []Misbehaviour { return slices.Sorted(maps.Keys(means)) }

// traits are the misbehaviours of one request.
type traits map[Misbehaviour]bool

// owns is true for model names that are this model's own, with or without
// misbehaviours.
func (m *Model) owns(model string) bool {
	base, _, _ := strings.Cut(model, ":")
	return base == m.name() || base == DefaultName
}

// traits reads the misbehaviours off the model's name. Names of other models
// may hold colons of their own.
func (m *Model) traits(model string) (traits, *problem) {
	list := slices.Clone(m.Misbehave)
	if _, suffix, found := strings.Cut(model, ":"); found && m.owns(model) {
		for word := range strings.SplitSeq(suffix, "+") {
			list = append(list, Misbehaviour(word))
		}
	}
	bad := make(traits)
	for _, b := range list {
		if b.Means() == "" {
			return nil, &problem{404, fmt.Sprintf("The model '%s' does not exist: there is no misbehaviour '%s'. There are: %s.", model, b, joined(Misbehaviours())), "invalid_request_error", "model", "model_not_found"}
		}
		bad[b] = true
	}
	return bad, nil
}

func joined(list []Misbehaviour) string {
	var words []string
	for _, b := range list {
		words = append(words, string(b))
	}
	return strings.Join(words, ", ")
}

// objections are the refusals that hang on what the request says.
func (bad traits) objections(r *request) *problem {
	if bad[ToolsUnsupported] && len(r.tools) > 0 {
		return invalid("tools", "", "%s does not support tools", r.model)
	}
	for i, m := range r.turn().rounds {
		if bad[Reasoning] && m.raw.get("reasoning_content").text != reasoning(i) {
			return invalid("messages", "", "In thinking mode the `reasoning_content` of a message with tool calls must be passed back unchanged; round %d has %s.", i+1, quote(m.raw.get("reasoning_content").text))
		}
		if first := m.calls[0]; bad[Signature] && !r.legacy && first.signature != signature(first.name) {
			return invalid("messages", "", "The call of '%s' in round %d lacks its thought_signature.", first.name, i+1)
		}
	}
	return nil
}

// reasoning is what the model thinks aloud in a round.
func reasoning(round int) string {
	return fmt.Sprintf("This is round %d. I look for directives, then for results, then for a tool that fits.", round+1)
}

// refuse writes the answers that are no completion.
func (m *Model) refuse(w http.ResponseWriter, r *request, bad traits) bool {
	var p *problem
	switch {
	case bad[Unauthorized]:
		p = &problem{401, "Incorrect API key provided. rehearsal was asked to say so.", "invalid_request_error", "", "invalid_api_key"}
	case bad[TooMany], bad[TooManyOnce] && m.once429.first(r.digest):
		w.Header().Set("Retry-After", "1")
		p = &problem{429, "Rate limit reached. rehearsal was asked to say so.", "requests", "", "rate_limit_exceeded"}
	case bad[ServerError], bad[ErrorInStream] && !r.stream:
		p = serverError()
	case bad[HTML]:
		write(w, http.StatusBadGateway, "text/html; charset=utf-8", []byte(webPage))
		return true
	default:
		return false
	}
	writeProblem(w, p)
	return true
}

const webPage = `<!DOCTYPE html>
<title>502 Bad Gateway</title>
<h1>502 Bad Gateway</h1>
<p>rehearsal was asked to say so.</p>
`

func serverError() *problem {
	return &problem{500, "The server had an error while processing your request. rehearsal was asked to say so.", "server_error", "", "server_error"}
}

// spoil does to a reply what comes before it is cut to length.
func (bad traits) spoil(out *reply, r *request) {
	rounds := len(r.turn().rounds)
	if bad[Reasoning] {
		out.reasoning = reasoning(rounds)
	}
	if bad[UnknownTool] && len(r.offered()) > 0 {
		if len(out.calls) == 0 && rounds == 0 {
			*out = reply{reasoning: out.reasoning, calls: []call{{arguments: "{}"}}}
		}
		if len(out.calls) > 0 {
			out.calls[0].name = "tool_that_nobody_offered"
		}
	}
}

// finish does to a reply what comes after.
func (bad traits) finish(out reply) reply {
	for i := range out.calls {
		c := &out.calls[i]
		if bad[WrongJSON] {
			c.arguments = "{this is not JSON" + strings.TrimPrefix(c.arguments, "{")
		}
		if bad[CutArguments] {
			c.arguments = half(c.arguments)
		}
		if bad[EmptyID] {
			c.id = ""
		}
		if bad[Signature] && i == 0 {
			c.signature = signature(c.name)
		}
	}
	if bad[FinishStop] && len(out.calls) > 0 {
		out.finish = "stop"
	}
	return out
}

// half returns the first half of the pieces of a text, at least one byte and
// never a complete JSON object.
func half(s string) string {
	list := pieces(s)
	s = strings.Join(list[:(len(list)+1)/2], "")
	if json.Valid([]byte(s)) && s != "" {
		s = s[:1]
	}
	return s
}

// wait returns false when the client left first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// abortAfter sends the bytes and breaks the connection.
func abortAfter(w http.ResponseWriter, data []byte) {
	_, _ = w.Write(data)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
