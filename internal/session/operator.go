package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Ask answers what a call asks; see [dragoman.Loop.Ask].
type Ask = func(context.Context, dragoman.Call, *dragoman.Asks) (*dragoman.Answers, error)

// DefaultPatience is how long a call waits for an operator where a door does not
// say: clients that get nothing for a minute give up.
const DefaultPatience = 30 * time.Second

// operated answers questions for an operator, and leaves all others to ask, which
// may be nil. A call waits a while for the inbox; then its caller is told that it
// is pending, and the same call finds the answer later. Only where the door says
// that an operator is here, ask puts the question to them, and their answer goes to
// the inbox like anybody's.
func (s *Session) operated(ask Ask) Ask {
	return func(ctx context.Context, call dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
		id := ApprovalOf(asks)
		switch {
		case id == "" && ask == nil:
			return nil, nil
		case id == "":
			return ask(ctx, call, asks)
		case s.operator != (approval.Person{}) && ask != nil:
			if err := s.decide(ctx, call, asks, id, ask); err == nil || ctx.Err() != nil {
				return &dragoman.Answers{}, err
			}
		}
		s.logger().Info("a call waits for a person; see dragoman approve", "approval", id)
		answered, err := s.wait(ctx, call, id)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		pending := err != nil || answered.State == approval.Pending
		return &dragoman.Answers{Gone: pending && !errors.Is(err, gate.ErrDenied)}, nil
	}
}

// wait waits for the answer to an approval: as long as the session has patience, and the
// process does not stop, and the call is not denied meanwhile.
func (s *Session) wait(ctx context.Context, call dragoman.Call, id string) (approval.Approval, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return s.gate.Await(ctx, s.client, call, id)
}

// decide asks the operator who is here. An error means that it was not for them to
// say.
func (s *Session) decide(ctx context.Context, call dragoman.Call, asks *dragoman.Asks, id string, ask Ask) error {
	answers, err := ask(ctx, call, asks)
	if err != nil {
		return err
	}
	action := ""
	if answers != nil {
		action = actionOf(answers.Replies[gate.QuestionKey])
	}
	switch action {
	case "accept":
		_, err = s.gate.Inbox().Approve(ctx, id, s.operator)
	case "decline":
		_, err = s.gate.Inbox().Deny(ctx, id, s.operator, "")
	default:
		return errors.New("the operator did not say")
	}
	if err != nil && ctx.Err() == nil {
		s.logger().Warn("an approval was not decided", "approval", id, "error", err)
	}
	return err
}

func actionOf(reply json.RawMessage) string {
	o, err := rawjson.ParseObject(reply)
	if err != nil {
		return ""
	}
	action, _ := rawjson.String(o.Get("action"))
	return action
}

// ApprovalOf returns the approval that a call asks for; empty where it asks for
// none.
func ApprovalOf(asks *dragoman.Asks) string {
	for _, q := range asks.Questions {
		if q.Operator {
			params, err := rawjson.ParseObject(q.Params)
			if err != nil {
				return ""
			}
			id, _ := rawjson.String(params.Get("approval"))
			return id
		}
	}
	return ""
}
