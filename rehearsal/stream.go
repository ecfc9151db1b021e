package rehearsal

import (
	"net/http"
	"slices"
	"time"
)

// completion is the body of an answer, or a chunk of a stream.
type completion struct {
	ID                string   `json:"id"`
	Object            string   `json:"object"`
	Created           int64    `json:"created"`
	Model             string   `json:"model"`
	SystemFingerprint string   `json:"system_fingerprint"`
	Choices           []choice `json:"choices"`
	Usage             any      `json:"usage,omitzero"` // nullUsage in chunks that wait for the last
	Dragoman          *extra   `json:"dragoman,omitempty"`
}

type choice struct {
	Index        int       `json:"index"`
	Message      *spoken   `json:"message,omitempty"`
	Delta        *delta    `json:"delta,omitempty"`
	Logprobs     *logprobs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

// spoken is the message of a choice. Content and refusal stand in it even
// when they are null.
type spoken struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"`
	Refusal          *string    `json:"refusal"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	FunctionCall     *function  `json:"function_call,omitempty"`
}

type delta struct {
	Role             string     `json:"role,omitempty"`
	Content          any        `json:"content,omitzero"`
	Refusal          any        `json:"refusal,omitzero"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	FunctionCall     *function  `json:"function_call,omitempty"`
}

type toolCall struct {
	Index        *int          `json:"index,omitempty"`
	ID           *string       `json:"id,omitempty"`
	Type         string        `json:"type,omitempty"`
	Function     function      `json:"function"`
	ExtraContent *extraContent `json:"extra_content,omitempty"`
}

type function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type extraContent struct {
	Google struct {
		ThoughtSignature string `json:"thought_signature"`
	} `json:"google"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

type extra struct {
	Note string `json:"note"`
}

// null is written as null where a nil would be left out.
type null struct{}

func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }
func (null) IsZero() bool                 { return false }

func (r *request) used(replies []reply) usage {
	u := usage{Prompt: (r.promptBytes + 3) / 4}
	for _, out := range replies {
		u.Completion += out.tokens
	}
	u.Total = u.Prompt + u.Completion
	return u
}

func (m *Model) completion(r *request, replies []reply) completion {
	c := completion{
		ID: "chatcmpl-" + r.id(), Object: "chat.completion", Created: m.created(), Model: r.model,
		SystemFingerprint: Fingerprint, Usage: r.used(replies), Dragoman: &extra{Note},
	}
	for i, out := range replies {
		msg := &spoken{Role: "assistant", ReasoningContent: out.reasoning}
		if out.content != "" || len(out.calls) == 0 {
			msg.Content = &out.content
		}
		if r.legacy && len(out.calls) > 0 {
			msg.FunctionCall = &function{out.calls[0].name, out.calls[0].arguments}
		} else {
			for _, one := range out.calls {
				msg.ToolCalls = append(msg.ToolCalls, one.wire())
			}
		}
		c.Choices = append(c.Choices, choice{Index: i, Message: msg, Logprobs: r.likelihood(out.content), FinishReason: &out.finish})
	}
	return c
}

func (c call) wire() toolCall {
	t := toolCall{ID: &c.id, Type: "function", Function: function{c.name, c.arguments}}
	if c.signature != "" {
		t.ExtraContent = new(extraContent)
		t.ExtraContent.Google.ThoughtSignature = c.signature
	}
	return t
}

// deltas are the changes that make up a reply, without the finish.
func (r *request) deltas(out reply, bad traits) []delta {
	first := delta{Role: "assistant", Content: "", Refusal: null{}}
	if out.content == "" && len(out.calls) > 0 {
		first.Content = null{}
	}
	list := []delta{first}
	for _, piece := range pieces(out.reasoning) {
		list = append(list, delta{ReasoningContent: piece})
	}
	for _, piece := range pieces(out.content) {
		list = append(list, delta{Content: piece})
	}
	for i, c := range out.calls {
		list = append(list, r.callDeltas(i, c, bad)...)
	}
	return list
}

func (r *request) callDeltas(index int, c call, bad traits) []delta {
	wrap := func(t toolCall) delta {
		if r.legacy {
			return delta{FunctionCall: &t.Function}
		}
		switch {
		case bad[MissingIndex]:
		case bad[SameIndex]:
			t.Index = new(int)
		default:
			t.Index = &index
		}
		return delta{ToolCalls: []toolCall{t}}
	}
	first := c.wire()
	if bad[WholeArguments] {
		return []delta{wrap(first)}
	}
	first.Function.Arguments = ""
	list := []delta{wrap(first)}
	for _, piece := range pieces(c.arguments) {
		later := toolCall{Function: function{Arguments: piece}}
		if bad[RepeatName] {
			later.Function.Name = c.name
		}
		list = append(list, wrap(later))
	}
	return list
}

// stream writes the answer as server-sent events.
func (m *Model) stream(w http.ResponseWriter, req *http.Request, r *request, bad traits, c completion, replies []reply) {
	events, body := r.events(bad, c, replies)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	lineEnd := "\n"
	if bad[CRLF] {
		lineEnd = "\r\n"
	}
	middle := -1
	if bad[CutStream] || bad[ErrorInStream] {
		middle = (body + 1) / 2
	}
	for i, event := range events {
		if bad[SlowStream] && !wait(req.Context(), m.delay(100*time.Millisecond)) {
			return
		}
		if i == middle && bad[CutStream] {
			abortAfter(w, slices.Concat([]byte("data: "), event[:len(event)/2]))
		}
		if i == middle {
			event = encode(serverError().body())
		}
		if _, err := w.Write(slices.Concat([]byte("data: "), event, []byte(lineEnd+lineEnd))); err != nil {
			return
		}
		if err := out.Flush(); err != nil || req.Context().Err() != nil || i == middle {
			return
		}
	}
}

// events encodes the whole stream, and says how many events come before the
// first finish.
func (r *request) events(bad traits, c completion, replies []reply) (events [][]byte, body int) {
	total, note := c.Usage, c.Dragoman
	c.Object, c.Usage, c.Dragoman = "chat.completion.chunk", nil, nil
	if r.usage {
		c.Usage = null{}
	}
	for i, out := range replies {
		for _, d := range r.deltas(out, bad) {
			c.Choices = []choice{{Index: i, Delta: &d}}
			if text, _ := d.Content.(string); text != "" {
				c.Choices[0].Logprobs = r.likelihood(text)
			}
			events = append(events, encode(c))
		}
		if i == 0 {
			body = len(events)
		}
		c.Choices = []choice{{Index: i, Delta: &delta{}, FinishReason: &out.finish}}
		last := c
		last.Dragoman = note
		events = append(events, encode(last))
	}
	if r.usage {
		c.Choices, c.Usage = []choice{}, total
		events = append(events, encode(c))
	}
	if !bad[NoDone] {
		events = append(events, []byte("[DONE]"))
	}
	return events, body
}
