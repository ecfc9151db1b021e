package session

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/meter"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/observe/logbuffer"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// API returns the API of models that a session with a model speaks: Chat, or Responses where
// the upstream speaks that alone.
func (s *Session) API() model.API {
	if !s.Upstream.Speaks(upstream.Chat) {
		return model.ResponsesAPI
	}
	return model.ChatAPI
}

// Client returns the client of the model API ([Session.API]), for a session with a model. r
// has what the request of a client brings, such as its credentials; the zero Request is for a
// conversation of this process. A nil log is that of all sessions.
func (s *Session) Client(r upstream.Request, log *slog.Logger) *model.Client {
	return s.ClientOf(s.API(), r, log)
}

// ClientOf is Client for an API that the upstream speaks.
func (s *Session) ClientOf(api model.API, r upstream.Request, log *slog.Logger) *model.Client {
	return s.clientAt(api, api.Path(), r, log)
}

// ClientBeside is a client for requests that are about those of the Responses API, at a path
// below it: see [model.Dialogue.Document]. They cost what the answer says.
func (s *Session) ClientBeside(path string, r upstream.Request) *model.Client {
	return s.clientAt(model.ResponsesAPI, model.ResponsesAPI.Path()+path, r, nil)
}

func (s *Session) clientAt(api model.API, path string, r upstream.Request, log *slog.Logger) *model.Client {
	if log == nil {
		log = s.logger()
	}
	c := &model.Client{API: api, Unsealed: &s.Upstream.Unsealed, Post: s.told(s.metered(api, path, s.Upstream.Post(path, r))), Dialect: s.Dialect, Idle: s.Upstream.Idle, Repeat: s.Upstream.Retries.Spend, MaxMessage: s.maxMessage, Log: log}
	if s.watched() {
		c.Heard = s.heard
	}
	return c
}

// metered returns post with its tokens counted, where they are limited: of a request that
// asks for a message also where its answer does not say.
func (s *Session) metered(api model.API, path string, post func(context.Context, [][]byte) (*http.Response, error)) func(context.Context, [][]byte) (*http.Response, error) {
	m := s.gate.Meter(s.Caller, s.asked)
	if m == nil || strings.HasSuffix(path, "/input_tokens") { // which asks what another would cost
		return post
	}
	return func(ctx context.Context, parts [][]byte) (*http.Response, error) {
		m := m.Telling(observe.Current(ctx))
		ctx, givenUp := meter.Sending(ctx)
		return m.Do(meter.Request{Silent: &s.Upstream.NoUsage, Body: parts, Text: path == api.Path(), Asks: api == model.ChatAPI, GivenUp: givenUp, Send: func(body [][]byte) (*http.Response, error) {
			return post(ctx, body)
		}})
	}
}

// Loop returns the loop that runs the session's calls. It logs each call under
// log, and tells observe of everything; both may be nil. ask answers what calls
// ask; nil where nobody can at once.
func (s *Session) Loop(log *slog.Logger, observe func(dragoman.Event), ask Ask) *dragoman.Loop {
	if log == nil {
		log = s.logger()
	}
	loop := s.loop
	loop.Tools, loop.Ask = s.Tools, s.operated(ask)
	if s.run = nil; s.watched() {
		s.run = s.live.start(s)
	}
	loop.Observe = func(e dragoman.Event) {
		if s.run != nil {
			s.live.add(s.run, step(e, s.Shape))
		}
		if e.Phase == dragoman.Execute && e.Result != nil {
			logCall(log, e.Round, e.Call, e.Result)
		}
		if observe != nil {
			observe(e)
		}
	}
	return &loop
}

// Over says that the conversation of [Session.Loop] is over, for those who watch.
func (s *Session) Over(err error) {
	if s.run != nil {
		s.live.end(s.run, err)
	}
	s.decided = false
}

// Call runs one call outside a conversation. ask answers what the call asks; nil
// where nobody can.
func (s *Session) Call(ctx context.Context, call dragoman.Call, ask Ask) (dragoman.Result, error) {
	loop := s.loop
	loop.Tools, loop.Ask = s.Tools, s.operated(ask)
	run := s.live.begin(s)
	if run != nil {
		s.live.add(run, step(dragoman.Event{Phase: dragoman.Execute, Call: &call}, s.Shape))
	}
	res, err := loop.Call(ctx, call)
	if run != nil {
		s.live.add(run, step(dragoman.Event{Phase: dragoman.Execute, Call: &call, Result: &res}, s.Shape))
		s.live.end(run, err)
	}
	logCall(s.logger(), 0, &call, &res)
	return res, err
}

// logCall logs a call without its arguments and its result.
func logCall(log *slog.Logger, round int, call *dragoman.Call, res *dragoman.Result) {
	var room [7]slog.Attr
	attrs := room[:0]
	if round > 0 {
		attrs = append(attrs, slog.Int("round", round))
	}
	attrs = append(attrs, slog.Duration("took", res.Info.Duration.Round(time.Microsecond)))
	if t := call.Tool; t != nil {
		attrs = append(attrs, slog.String("server", t.Server), slog.String("tool", t.Original))
	}
	switch {
	case res.Asks != nil:
		attrs = append(attrs, slog.Int("asks", len(res.Asks.Questions)))
	case res.Problem != nil:
		attrs = append(attrs, slog.String("problem", res.Problem.Code))
		if panicked, ok := errors.AsType[*dragoman.PanicError](res.Problem); ok {
			logbuffer.Line(context.Background(), log, slog.LevelError, "call failed here", append(attrs, slog.Any("error", panicked))...)
			return
		}
		if res.Problem.Err != nil {
			attrs = append(attrs, slog.Any("error", res.Problem.Err))
		}
	case res.Failed:
		attrs = append(attrs, slog.String("problem", "tool_error"))
	}
	if len(res.Content) > 0 {
		attrs = append(attrs, slog.Int("result_tokens", (len(res.Content)+2)/3)) // an estimate, before anything is cut
	}
	logbuffer.Line(context.Background(), log, slog.LevelInfo, "call", attrs...)
}

// logger returns a logger that names the caller. Most sessions need none of their own.
func (s *Session) logger() *slog.Logger { return s.Caller.Log(s.log) }
