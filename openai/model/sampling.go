package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/result"
)

// ErrSampling: a request for sampling is beyond what a model API can answer here.
var ErrSampling = errors.New("this sampling cannot be answered")

// A Sample is a model's answer to a request for sampling.
type Sample struct {
	// Result is the result of sampling/createMessage (MCP 2025-11-25, "Sampling").
	Result json.RawMessage
	// Tokens is what the answer cost, by the API's own count, or by a cautious
	// estimate where it gave none.
	Tokens int
}

// Sample answers a server's sampling/createMessage with one message of a model, of
// at most that many tokens. params are those of the request: texts, and pictures of
// the user; its model preferences and includeContext are not heeded, which both are
// for the client to decide. The model is offered no tools.
//
// The error wraps [ErrSampling] where the request holds what is not taken, and is
// otherwise that of [Client.Ask].
func (c *Client) Sample(ctx context.Context, model string, params json.RawMessage, most int) (*Sample, error) {
	p, err := rawjson.ParseObject(params)
	if err != nil {
		return nil, fmt.Errorf("%w: its params are no object", ErrSampling)
	}
	if p.Get("tools") != nil {
		return nil, fmt.Errorf("%w: it brings tools, which nobody declared", ErrSampling)
	}
	messages, err := sampled(p)
	if err != nil {
		return nil, err
	}
	if wanted, ok := rawjson.Int(p.Get("maxTokens")); ok && wanted > 0 {
		most = min(most, wanted)
	}
	body := c.samplingBody(model, messages, most)
	plain := body.Clone()
	for from, to := range map[string]string{"temperature": "temperature", "stopSequences": "stop"} {
		if v := p.Get(from); v != nil && string(v) != "[]" {
			body.Set(to, v)
		}
	}
	r, err := c.Ask(ctx, [][]byte{body.Bytes()}, Listener{})
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusBadRequest && len(plain.Members) < len(body.Members) {
		// Some models take neither, and both are for the client to decide.
		r, err = c.Ask(ctx, [][]byte{plain.Bytes()}, Listener{})
	}
	if err != nil {
		return nil, err
	}
	return r.sample(model), nil
}

// samplingBody returns the request, which is a stream so that long answers come in
// time.
func (c *Client) samplingBody(model string, messages []json.RawMessage, most int) *rawjson.Object {
	o := &rawjson.Object{}
	o.Set("model", rawjson.Quote(model))
	o.Set("messages", rawjson.AppendArray(nil, messages))
	limit := "max_tokens"
	if name := c.dialect().Name(); name == "openai" || name == "azure" {
		limit = "max_completion_tokens" // their newer models refuse the old name
	}
	o.Set(limit, fmt.Appendf(nil, "%d", most))
	o.Set("stream", json.RawMessage("true"))
	if !c.dialect().Wire().NoStreamOptions {
		o.Set("stream_options", json.RawMessage(`{"include_usage":true}`))
	}
	return o
}

// sampled returns the messages of a request for sampling as a model API takes them.
func sampled(p *rawjson.Object) (messages []json.RawMessage, err error) {
	if system, ok := rawjson.String(p.Get("systemPrompt")); ok && system != "" {
		messages = append(messages, spoken("system", rawjson.Quote(system)))
	}
	given, err := rawjson.Elements(p.Get("messages"))
	if err != nil || len(given) == 0 {
		return nil, fmt.Errorf("%w: it has no messages", ErrSampling)
	}
	for _, raw := range given {
		m, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: a message is no object", ErrSampling)
		}
		role, _ := rawjson.String(m.Get("role"))
		if role != "user" && role != "assistant" {
			return nil, fmt.Errorf("%w: a message of %q", ErrSampling, role)
		}
		blocks := []json.RawMessage{m.Get("content")}
		if rawjson.Kind(blocks[0]) == '[' {
			if blocks, err = rawjson.Elements(m.Get("content")); err != nil {
				return nil, fmt.Errorf("%w: a message has no content", ErrSampling)
			}
		}
		content, err := spokenContent(role, blocks)
		if err != nil {
			return nil, err
		}
		messages = append(messages, spoken(role, content))
	}
	return messages, nil
}

func spoken(role string, content json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"role":"` + role + `","content":` + string(content) + `}`)
}

// spokenContent returns the content of a message: a string where it is nothing but
// text, else parts.
func spokenContent(role string, blocks []json.RawMessage) (json.RawMessage, error) {
	var texts []string
	var parts []json.RawMessage
	for _, raw := range blocks {
		block, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: a message has no content", ErrSampling)
		}
		kind, _ := rawjson.String(block.Get("type"))
		text, isText := rawjson.String(block.Get("text"))
		data, isData := rawjson.String(block.Get("data"))
		media, _ := rawjson.String(block.Get("mimeType"))
		switch {
		case kind == "text" && isText:
			texts = append(texts, text)
			parts = append(parts, json.RawMessage(`{"type":"text","text":`+string(rawjson.Quote(text))+`}`))
		case kind == "image" && isData && role == "user" && strings.HasPrefix(media, "image/"):
			url := rawjson.Quote("data:" + media + ";base64," + data)
			parts = append(parts, json.RawMessage(`{"type":"image_url","image_url":{"url":`+string(url)+`}}`))
		default:
			return nil, fmt.Errorf("%w: it brings %q", ErrSampling, kind)
		}
	}
	switch {
	case len(parts) == 0:
		return nil, fmt.Errorf("%w: a message is empty", ErrSampling)
	case len(texts) == len(parts):
		return rawjson.Quote(strings.Join(texts, "\n\n")), nil
	}
	return rawjson.AppendArray(nil, parts), nil
}

// sample makes the result of a reply.
func (r *Reply) sample(model string) *Sample {
	text := r.Text()
	s := &Sample{Tokens: result.EstimateTokens(text)}
	if usage, err := rawjson.ParseObject(r.Usage); err == nil {
		if n, ok := rawjson.Int(usage.Get("completion_tokens")); ok {
			s.Tokens = n
		}
	}
	if r.Envelope != nil {
		if name, ok := rawjson.String(r.Envelope.Get("model")); ok && name != "" {
			model = name
		}
	}
	reason := r.Finish
	switch {
	case reason == "stop" || reason == "":
		reason = "endTurn"
	case r.CutOff() && reason != "content_filter":
		reason = "maxTokens"
	}
	o := rawjson.Object{}
	o.Set("role", json.RawMessage(`"assistant"`))
	o.Set("content", json.RawMessage(`{"type":"text","text":`+string(rawjson.Quote(text))+`}`))
	o.Set("model", rawjson.Quote(model))
	o.Set("stopReason", rawjson.Quote(reason))
	s.Result = o.Bytes()
	return s
}
