package model

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// maxSaid bounds what others wrote and what is told to those who watch, in characters.
const maxSaid = 200

// said tells what a request asks for to who watches.
func (d *Dialogue) said(span *observe.Span) {
	if !span.On() {
		return
	}
	name, _ := rawjson.String(d.Request.Object.Get("model"))
	span.Text(observe.OperationName, observe.OpChat)
	span.Text(observe.RequestModel, clip.Text(name, maxSaid))
	if d.streams() {
		span.Flag(observe.RequestStream)
	}
	if span.Detailed() {
		d.wishes(span)
	}
}

// wanted has the members of the request, in the form of its API.
func (d *Dialogue) wanted() *rawjson.Object {
	if d.Request.Native != nil {
		return d.Request.Native.Object
	}
	return d.Request.Object
}

// streams reports whether the request asks for a stream.
func (d *Dialogue) streams() bool { return string(d.wanted().Get("stream")) == "true" }

// wishes tells how a request wants to be answered.
func (d *Dialogue) wishes(span *observe.Span) {
	of := d.wanted()
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if n, ok := rawjson.Int(of.Get(name)); ok {
			span.Int(observe.RequestMaxTokens, int64(n))
		}
	}
	if n, ok := rawjson.Int(of.Get("seed")); ok {
		span.Int(observe.RequestSeed, int64(n))
	}
	if n, ok := rawjson.Int(of.Get("n")); ok && n != 1 {
		span.Int(observe.RequestChoices, int64(n))
	}
	for key, name := range map[string]string{observe.RequestTemp: "temperature", observe.RequestTopP: "top_p"} {
		if n, err := strconv.ParseFloat(string(of.Get(name)), 64); err == nil {
			span.Number(key, n)
		}
	}
	form, err := rawjson.ParseObject(of.Get("response_format"))
	if err != nil {
		return
	}
	switch kind, _ := rawjson.String(form.Get("type")); kind {
	case "text":
		span.Text(observe.OutputType, "text")
	case "json_object", "json_schema":
		span.Text(observe.OutputType, "json")
	}
}

// timed tells when the first piece of a message that is streamed came, and how long each
// further one took.
func timed(ctx context.Context, span *observe.Span, l Listener) Listener {
	if !span.On() || l.Chunk == nil && l.Event == nil {
		return l
	}
	last := time.Now()
	var next func(seconds float64) // nil before the first piece
	came := func() {
		took := time.Since(last)
		last = last.Add(took)
		if next != nil {
			next(took.Seconds())
			return
		}
		said, _, _ := span.Said()
		next = observe.Lengths(ctx, observe.ChatNextChunk, said...)
		span.Seconds(observe.TimeToFirstChunk, took.Seconds())
	}
	if next := l.Chunk; next != nil {
		l.Chunk = func(c *Chunk) error {
			came()
			return next(c)
		}
	}
	if next := l.Event; next != nil {
		l.Event = func(kind string, event *Object) error {
			if strings.HasSuffix(kind, ".delta") || kind == "response.output_item.done" {
				came()
			}
			return next(kind, event)
		}
	}
	return l
}

// replied tells what came of a request.
func replied(span *observe.Span, r *Reply, err error) {
	if !span.On() {
		return
	}
	if err != nil {
		span.Fail(failureOf(err), err.Error())
		return
	}
	if span.Detailed() {
		for _, said := range [...]struct{ key, member string }{{observe.ResponseID, "id"}, {observe.ResponseModel, "model"}} {
			text, _ := rawjson.String(r.Envelope.Get(said.member))
			span.Text(said.key, clip.Text(text, maxSaid))
		}
		if r.Finish != "" {
			span.Texts(observe.FinishReasons, clip.Text(r.Finish, maxSaid))
		}
	}
	u := r.used()
	for _, said := range [...]struct {
		key string
		n   int64
	}{{observe.InputTokens, u.In}, {observe.OutputTokens, u.Out}, {observe.CacheReadTokens, u.Cached}, {observe.CacheWriteTokens, u.Written}, {observe.ReasoningTokens, u.Reasoning}} {
		if said.n > 0 {
			span.Int(said.key, said.n)
		}
	}
}

// failureOf is error.type of a request that failed: the status of HTTP, or a word.
func failureOf(err error) string {
	e, ok := errors.AsType[*Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case ok && e.Status > 0:
		return strconv.Itoa(e.Status)
	}
	return observe.Other
}

// decodeArguments is [dialect.Plan.DecodeAs], with its repairs told to who watches.
func (d *Dialogue) decodeArguments(plan *dialect.Plan, raw, finish string, grade dialect.Grade) (json.RawMessage, *dragoman.Problem) {
	arguments, repairs, problem := plan.DecodeAs(raw, finish, grade)
	if d.Client.Heard != nil {
		d.written = append(d.written, Written{Raw: raw, Repairs: repairs, Arguments: arguments, Problem: problem})
	}
	if len(repairs) > 0 && d.now != nil {
		name, _ := rawjson.String(d.Request.Object.Get("model"))
		for _, r := range repairs {
			observe.Count(d.now, observe.Repairs, 1, observe.Text(observe.RepairRule, r.Rule), observe.Text(observe.RequestModel, clip.Text(name, maxSaid)))
		}
	}
	return arguments, problem
}

// tellCut tells that a model gets a result that was cut.
func (d *Dialogue) tellCut(tool *dragoman.Tool) {
	if tool != nil && d.now != nil {
		observe.Count(d.now, observe.Truncated, 1, observe.Text(observe.ToolName, tool.Name), observe.Text(observe.Server, tool.Server), observe.Text(observe.ToolOriginal, tool.Original))
	}
}
