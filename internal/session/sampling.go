package session

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Sampling says whether the model of a conversation answers what MCP servers ask of
// a model while they work for it (sampling/createMessage), at the doors that have no
// MCP client who could.
type Sampling struct {
	Answer    bool `yaml:"answer" doc:"Whether the model of a chat answers when a server asks for one while it works for that chat. Otherwise the server is told that there is none."`
	Tokens    int  `yaml:"tokens" max:"10000000" doc:"Tokens that all such answers in one chat may have together."`
	Questions int  `yaml:"questions" max:"16" doc:"How often one call of a tool may ask."`
}

// DefaultSampling is what is not said of sampling.
var DefaultSampling = Sampling{Tokens: 8192, Questions: 4}

// Sampler returns what answers servers that ask for a model in one conversation,
// with the client of the model API that the conversation has, and what it can be
// asked. Other questions go to next, which may be nil: then they have no answer.
// Where sampling is not allowed it returns next.
func (s *Session) Sampler(client *model.Client, can dragoman.Kind, next Ask) (Ask, dragoman.Kind) {
	if !s.sampling.Answer || s.Upstream == nil {
		return next, can
	}
	sampler := &sampler{Sampling: s.sampling, client: client, model: s.Model, next: next, log: s.logger(), asked: map[string]int{}}
	sampler.spent = func(ctx context.Context) *dragoman.Problem { return s.gate.Spent(ctx, s.Caller, s.asked) }
	return sampler.ask, can | dragoman.AskSampling
}

type sampler struct {
	Sampling // Tokens is what is left of them
	client   *model.Client
	model    string
	next     Ask
	log      *slog.Logger
	// spent says that the caller has nothing left to spend. The chat was admitted before a
	// server asked, and how long its questions are, and how many, is the server's to say.
	spent func(context.Context) *dragoman.Problem

	mu    sync.Mutex
	asked map[string]int // by call
}

// ask answers what a call asks.
func (s *sampler) ask(ctx context.Context, call dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
	others := *asks
	others.Questions = nil
	replies := map[string]json.RawMessage{}
	for _, q := range asks.Questions {
		if q.Kind != dragoman.AskSampling || q.Operator {
			others.Questions = append(others.Questions, q)
			continue
		}
		reply, err := s.answer(ctx, call, q)
		if err != nil {
			return nil, err
		}
		if reply != nil {
			replies[q.Key] = reply
		}
	}
	if len(others.Questions) > 0 {
		if s.next == nil {
			return nil, nil
		}
		answers, err := s.next(ctx, call, &others)
		if answers == nil || err != nil {
			return answers, err
		}
		maps.Copy(replies, answers.Replies)
	}
	return &dragoman.Answers{Replies: replies}, nil
}

// answer asks the model. No answer, which the server is told, is no reason to give
// the call up.
func (s *sampler) answer(ctx context.Context, call dragoman.Call, q dragoman.Question) (json.RawMessage, error) {
	if problem := s.spent(ctx); problem != nil {
		s.log.Info("sampling declined", "server", q.Server, "why", problem.Message)
		return nil, nil
	}
	most := s.take(call)
	if most <= 0 {
		s.log.Info("sampling declined", "server", q.Server, "why", "its bounds are used up")
		return nil, nil
	}
	sample, err := s.client.Sample(ctx, s.model, q.Params, most)
	switch {
	case ctx.Err() != nil:
		s.give(most)
		return nil, context.Cause(ctx)
	case err != nil:
		s.give(most)
		level := slog.LevelWarn
		if errors.Is(err, model.ErrSampling) {
			level = slog.LevelInfo
		}
		s.log.Log(ctx, level, "sampling declined", "server", q.Server, "error", err)
		return nil, nil
	}
	s.give(max(0, most-sample.Tokens))
	s.log.Info("sampling", "server", q.Server, "tokens", sample.Tokens)
	return sample.Result, nil
}

// take takes what one answer to a call may have at most, so that answers side by
// side keep within the bound: half of what is left, and no more than a call may ask.
func (s *sampler) take(call dragoman.Call) int {
	key := call.ID + "\x00" + call.Name
	if call.Tool != nil {
		key += call.Tool.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[key]++; s.asked[key] > s.Questions {
		return 0
	}
	most := (s.Tokens + 1) / 2
	s.Tokens -= most
	return most
}

// give gives back what an answer did not need.
func (s *sampler) give(tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Tokens += tokens
}
