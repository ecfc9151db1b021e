package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A person is one thread of the soak: a client with a key, who has one
// conversation after the other.
type person struct {
	*soak
	worker int
	key    string
	dice   *rand.Rand

	conversations int
	conversation  string // the name of the one under way
}

// soakModels are the models that people talk to: most behave.
var soakModels = []string{
	"rehearsal", "rehearsal", "rehearsal", "rehearsal", "rehearsal", "rehearsal", "rehearsal", "rehearsal",
	"rehearsal:whole-arguments", "rehearsal:crlf", "rehearsal:no-done", "rehearsal:finish-stop", "rehearsal:slow-stream",
	"rehearsal:cut-stream", "rehearsal:error-in-stream", "rehearsal:cut-arguments", "rehearsal:500", "rehearsal:html",
}

func pick[T any](p *person, list []T) T { return list[p.dice.IntN(len(list))] }

// begin gives the next conversation its name.
func (p *person) begin(what string) {
	key := 0
	for i, k := range p.keys {
		if k == p.key {
			key = i
		}
	}
	p.conversations++
	if what == "ready" {
		p.worker, p.conversations = soakThreads, p.conversations+p.dice.IntN(900_000)
	}
	p.conversation = fmt.Sprintf("k%dw%02dc%06d%s", key, p.worker, p.conversations, what)
}

func (p *person) nonce(n int) string { return p.conversation + "." + strconv.Itoa(n) }

// converse has one conversation of some kind.
func (p *person) converse() {
	switch kind := p.dice.IntN(10); {
	case kind < 2:
		p.begin("whole")
		p.toTheEnd("whole", p.body(pick(p, soakModels), false, p.script(), nil), 0)
	case kind < 4:
		p.begin("streamed")
		p.toTheEnd("streamed", p.body(pick(p, soakModels), true, p.script(), nil), 0)
	case kind < 6:
		p.begin("left")
		p.leave()
	case kind < 7:
		p.begin("twice")
		p.twice()
	case kind < 9:
		p.begin("mixed")
		p.mixed()
	default:
		p.begin("drew")
		p.draw()
	}
}

// script calls tools that write and tools that read, in a round or two.
func (p *person) script() string {
	var b strings.Builder
	call := func(tool string, n int) {
		fmt.Fprintf(&b, "CALL %s__%s {\"nonce\":%q}\n", pick(p, soakServers), tool, p.nonce(n))
	}
	call("write", 0)
	for n := range p.dice.IntN(3) {
		call("read", 1+n)
	}
	if p.dice.IntN(2) == 0 {
		b.WriteString("THEN\n")
		call("write", 5)
	}
	return b.String()
}

// body is a request of the conversation under way.
func (p *person) body(model string, stream bool, prompt string, more map[string]any) []byte {
	request := map[string]any{
		"model": model, "stream": stream, "user": p.conversation,
		"messages": []any{map[string]any{"role": "user", "content": prompt}},
	}
	maps.Copy(request, more)
	body, err := json.Marshal(request)
	if err != nil {
		panic(err)
	}
	return body
}

// leave goes away in the middle, and comes back with the same request as official
// clients do.
func (p *person) leave() {
	body := p.body(pick(p, soakModels), p.dice.IntN(2) == 0, p.script(), nil)
	gone := 1 + p.dice.IntN(2)
	for retry := range gone {
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Duration(p.dice.IntN(12_000))*time.Microsecond)
		p.ask(ctx, body, retry)
		cancel()
		p.backOff()
	}
	p.toTheEnd("left and came back", body, gone)
}

// backOff waits as official clients do before they come back, so that a request is
// not overtaken by its own repetition.
func (p *person) backOff() {
	<-time.After(500*time.Millisecond - time.Duration(p.dice.IntN(125))*time.Millisecond)
}

// twice sends a request again while the first is still being answered, as a
// client does whose patience is over but whose connection is not.
func (p *person) twice() {
	body := p.body("rehearsal", p.dice.IntN(2) == 0, p.script(), nil)
	heard := p.ledger.heard(p.conversation)
	var both sync.WaitGroup
	conversation := p.conversation
	answered := make(chan struct{})
	both.Go(func() {
		defer close(answered)
		p.askAs(p.t.Context(), conversation, body, 0)
	})
	defer both.Wait()
	select {
	case <-heard:
	case <-answered:
		return // who has an answer does not ask again
	case <-time.After(soakPatience):
		p.ledger.fault("%s: a request never reached the model", conversation)
	}
	both.Go(func() {
		if p.askAs(p.t.Context(), conversation, body, 1).complete {
			p.tally.add("twice at once", 1)
		}
	})
}

// mixed has a tool of the client's own, which the model calls beside ours: the
// conversation crosses the client in the middle.
func (p *person) mixed() {
	script := fmt.Sprintf("CALL %s__write {\"nonce\":%q}\nCALL mine {\"nonce\":%q}\nTHEN\nCALL %s__write {\"nonce\":%q}\n",
		pick(p, soakServers), p.nonce(0), p.nonce(1), pick(p, soakServers), p.nonce(2))
	tools := []any{map[string]any{"type": "function", "function": map[string]any{
		"name": "mine", "parameters": json.RawMessage(nonceSchema),
	}}}
	model, stream := pick(p, soakModels), p.dice.IntN(2) == 0
	first := p.toTheEnd("", p.body(model, stream, script, map[string]any{"tools": tools}), 0)
	if !first.complete || len(first.calls) == 0 {
		return // the model broke off, or its call was cut
	}
	if len(first.calls) != 1 || first.calls[0].Function.Name != "mine" {
		p.ledger.fault("%s: the client got the calls %+v", p.conversation, first.calls)
		return
	}
	messages := []any{
		map[string]any{"role": "user", "content": script},
		map[string]any{"role": "assistant", "content": first.text, "tool_calls": []any{map[string]any{
			"id": first.calls[0].ID, "type": "function",
			"function": map[string]any{"name": "mine", "arguments": first.calls[0].Function.Arguments},
		}}},
		map[string]any{"role": "tool", "tool_call_id": first.calls[0].ID, "content": "done " + p.nonce(1)},
	}
	p.toTheEnd("mixed", p.body(model, stream, "", map[string]any{"tools": tools, "messages": messages}), 0)
}

// draw says what everybody else says, word for word, and gets what nobody else
// gets; only key and user tell the conversations apart.
func (p *person) draw() {
	const prompt, said = "CALL vault__draw {}\nSAY Noted.", "Noted."
	if got := p.toTheEnd("", p.body("rehearsal", false, prompt, nil), 0); !got.complete || got.text != said {
		return
	}
	messages := []any{
		map[string]any{"role": "user", "content": prompt},
		map[string]any{"role": "assistant", "content": said},
		map[string]any{"role": "user", "content": "SAY Thank you."},
	}
	p.toTheEnd("drew", p.body("rehearsal", false, "", map[string]any{"messages": messages}), 0)
}

// An outcome is what a client got.
type outcome struct {
	complete bool // an answer, to its end
	again    bool // an official client would try again
	text     string
	calls    []toolCall
}

// toTheEnd asks, and asks again where an official client would, and counts the
// answer as one of that kind.
func (p *person) toTheEnd(kind string, body []byte, retry int) outcome {
	var got outcome
	for range 3 {
		if got = p.ask(p.t.Context(), body, retry); got.complete || !got.again {
			break
		}
		p.tally.add("retries", 1)
		retry++
	}
	switch {
	case got.complete && kind != "":
		p.tally.add(kind, 1)
	case !got.complete:
		p.tally.add("failed", 1)
	}
	return got
}

func (p *person) ask(ctx context.Context, body []byte, retry int) outcome {
	return p.askAs(ctx, p.conversation, body, retry)
}

// askAs sends a request and reads the answer, in which nothing may be of another
// conversation.
func (p *person) askAs(ctx context.Context, conversation string, body []byte, retry int) outcome {
	limited, cancel := context.WithTimeoutCause(ctx, soakPatience, errImpatient)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, p.gateway.Base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("X-Stainless-Retry-Count", strconv.Itoa(retry))
	res, err := soakClient.Do(req)
	var data []byte
	if err == nil {
		data, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if errors.Is(context.Cause(limited), errImpatient) {
		p.ledger.fault("%s: no end of the answer after %v", conversation, soakPatience)
	}
	if nonce := foreign(string(data), conversation); nonce != "" {
		p.ledger.mixed("the client of %s got %s of another conversation: %.2000s", conversation, nonce, data)
	}
	if err != nil {
		return outcome{again: true}
	}
	if res.StatusCode != http.StatusOK {
		return outcome{again: res.Header.Get("X-Should-Retry") != "false" && (res.StatusCode >= 500 || res.StatusCode == 429 || res.StatusCode == 409 || res.StatusCode == 408)}
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(data)
	}
	var r reply
	if err := json.Unmarshal(data, &r); err != nil || len(r.Choices) != 1 {
		p.ledger.fault("%s: the answer is no completion: %v: %.500s", conversation, err, data)
		return outcome{}
	}
	return outcome{complete: true, text: r.text(), calls: r.Choices[0].Message.ToolCalls}
}

var errImpatient = errors.New("the client of the soak is out of patience")

var soakClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * soakThreads}}

// readEvents joins a stream. One that ends with an error, or without [DONE], is
// not complete; official clients do not repeat it.
func readEvents(data []byte) outcome {
	var got outcome
	for line := range strings.Lines(string(data)) {
		payload, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: ")
		if !ok {
			continue
		}
		if payload == "[DONE]" {
			got.complete = true
			continue
		}
		var chunk struct {
			Error   json.RawMessage
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		if json.Unmarshal([]byte(payload), &chunk) != nil || chunk.Error != nil {
			return outcome{}
		}
		for _, c := range chunk.Choices {
			got.text += c.Delta.Content
			for _, d := range c.Delta.ToolCalls {
				for len(got.calls) <= d.Index {
					got.calls = append(got.calls, toolCall{})
				}
				call := &got.calls[d.Index]
				call.ID += d.ID
				call.Function.Name += d.Function.Name
				call.Function.Arguments += d.Function.Arguments
			}
		}
	}
	return got
}
