package model

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
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
	if string(d.Request.Object.Get("stream")) == "true" {
		span.Flag(observe.RequestStream)
	}
}

// timed tells when the first piece of a message came.
func timed(span *observe.Span, l Listener) Listener {
	if !span.On() || l.Chunk == nil {
		return l
	}
	began, first, next := time.Now(), true, l.Chunk
	l.Chunk = func(c *Chunk) error {
		if first {
			first = false
			span.Seconds(observe.TimeToFirstChunk, time.Since(began).Seconds())
		}
		return next(c)
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
	for key, member := range map[string]string{observe.ResponseID: "id", observe.ResponseModel: "model"} {
		text, _ := rawjson.String(r.Envelope.Get(member))
		span.Text(key, clip.Text(text, maxSaid))
	}
	if r.Finish != "" {
		span.Texts(observe.FinishReasons, clip.Text(r.Finish, maxSaid))
	}
	u := ReadUsage(r.Usage)
	for key, n := range map[string]int64{observe.InputTokens: u.In, observe.OutputTokens: u.Out, observe.CacheReadTokens: u.Cached, observe.ReasoningTokens: u.Reasoning} {
		if n > 0 {
			span.Int(key, n)
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
