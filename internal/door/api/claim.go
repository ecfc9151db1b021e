package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// Of requests that add to one conversation one runs at a time, so that each finds all that
// was said before it. It holds a claim, which ends with it, or a while after its process
// died; a response in the background holds its own until it is over.

const (
	// claimLife is how long a claim is good, and claimBeat how often it is renewed.
	claimLife = 30 * time.Second
	claimBeat = 10 * time.Second
	// runLife is how long that of a response in the background is: as long as its run.
	runLife = 30 * 24 * time.Hour
	// claimPatience is how long a request waits for its turn, and claimLook how often it
	// looks.
	claimPatience = 20 * time.Second
	claimLook     = 200 * time.Millisecond
)

// codeLocked is the code of the error for a conversation that another request adds to, as
// OpenAI has it.
const codeLocked = "conversation_locked"

// locked refuses a request whose conversation another one adds to.
func locked(id string, err error) error {
	return &model.Error{
		Status: http.StatusConflict, Type: model.TypeInvalidRequest, Code: codeLocked, Param: "conversation", Err: err,
		Message: fmt.Sprintf("Another response is being made in the conversation %.80q, and one is made at a time: try again when it is over.", id),
		Header:  http.Header{"Retry-After": {"5"}},
	}
}

// A hold lets one request alone add to a conversation.
type hold struct {
	holder string
	stop   func()
}

// release ends it.
func (h *hold) release() { h.stop() }

// claim waits for a conversation, a bounded time, and holds it until release is called.
func (a *API) claim(ctx context.Context, who, id string) (*hold, error) {
	h := &hold{holder: model.NewRequestID()}
	if err := a.await(ctx, who, id, h.holder, claimLife); err != nil {
		return nil, err
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(claimBeat)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			beat, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimBeat)
			if err := a.State.Conversations.Claim(beat, who, id, h.holder, claimLife); err != nil {
				a.Log.Warn("the claim on a conversation was not renewed", "conversation", id, "error", err)
			}
			cancel()
		}
	}()
	h.stop = func() {
		close(over)
		<-ended
		a.release(ctx, who, id, h.holder)
	}
	return h, nil
}

// release ends a claim.
func (a *API) release(ctx context.Context, who, id, holder string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	if err := a.State.Conversations.Release(ctx, who, id, holder); err != nil {
		a.Log.Warn("a conversation was not released, and is closed for a while", "conversation", id, "error", err)
	}
}

// await claims a conversation for a holder, once nobody else does.
func (a *API) await(ctx context.Context, who, id, holder string, life time.Duration) error {
	if a.State.Conversations == nil {
		return responses.ErrNotKept
	}
	patience := time.NewTimer(claimPatience)
	defer patience.Stop()
	look := time.NewTicker(claimLook)
	defer look.Stop()
	for {
		err := a.State.Conversations.Claim(ctx, who, id, holder, life)
		if !errors.Is(err, responses.ErrClaimed) {
			return err
		}
		select {
		case <-look.C:
		case <-patience.C:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// join lets a request go on from its conversation, and returns what adds to that and what
// ends its turn; nothing for one that has none.
func (a *API) join(ctx context.Context, who string, request *responses.Request) (add adding, leave func(), err error) {
	id := request.Conversation
	if id == "" {
		return nil, func() {}, nil
	}
	if err := a.mayJoin(ctx, who, request); err != nil { // before it waits
		return nil, nil, err
	}
	h, err := a.claim(ctx, who, id)
	if err != nil {
		return nil, nil, inWords(err, id, "conversation")
	}
	if err := a.mayJoin(ctx, who, request); err != nil {
		h.release()
		return nil, nil, err
	}
	return func(ctx context.Context, addition *responses.Addition) error {
		_, err := a.State.Conversations.Change(ctx, who, id, h.holder, with(addition))
		if errors.Is(err, responses.ErrNotKept) { // it was deleted meanwhile
			return nil
		}
		return inWords(err, id, "conversation")
	}, h.release, nil
}

// An adding puts what was said into a conversation.
type adding func(context.Context, *responses.Addition) error

// with adds to a conversation.
func with(addition *responses.Addition) func(responses.Kept) (*responses.Kept, error) {
	return func(k responses.Kept) (*responses.Kept, error) { return k.With(addition), nil }
}

// mayJoin puts the items of a request's conversation before its own.
func (a *API) mayJoin(ctx context.Context, who string, request *responses.Request) error {
	if request.Conversation == "" {
		return nil
	}
	k, err := a.conversation(ctx, who, request.Conversation)
	if err == nil {
		err = request.Join(k)
	}
	return inWords(err, request.Conversation, "conversation")
}

// joining keeps conversations in the store that runs are in.
type joining interface {
	ChangeIn(tx *store.Tx, caller, id, holder string, change func(responses.Kept) (*responses.Kept, error)) (*responses.Kept, error)
	ClaimIn(tx *store.Tx, caller, id, holder string, life time.Duration) error
	ReleaseIn(tx *store.Tx, caller, id, holder string) error
}

// stayIn keeps the turn of a response in the background in its conversation until it is
// over, in the transaction that begins its run; stayBeside where they are not in one store.
func (a *API) stayIn(tx *store.Tx, who string, s *responses.Stored) error {
	if in, ok := a.State.Conversations.(joining); ok && s.Conversation != "" {
		return inWords(in.ClaimIn(tx, who, s.Conversation, s.ID, runLife), s.Conversation, "conversation")
	}
	return nil
}

func (a *API) stayBeside(ctx context.Context, who string, s *responses.Stored) error {
	if _, ok := a.State.Conversations.(joining); ok || s.Conversation == "" {
		return nil
	}
	return inWords(a.State.Conversations.Claim(ctx, who, s.Conversation, s.ID, runLife), s.Conversation, "conversation")
}

// leaveIn ends the turn of a response in the background in its conversation, with what it
// adds or nil, in a transaction of its run, where both are kept in the same store;
// leaveBeside where they are not.
func (a *API) leaveIn(tx *store.Tx, who string, s *responses.Stored, addition *responses.Addition) error {
	in, ok := a.State.Conversations.(joining)
	if !ok || s.Conversation == "" {
		return nil
	}
	if addition != nil {
		if _, err := in.ChangeIn(tx, who, s.Conversation, s.ID, with(addition)); err != nil && !gone(err) {
			return err
		}
	}
	return in.ReleaseIn(tx, who, s.Conversation, s.ID)
}

func (a *API) leaveBeside(ctx context.Context, who string, s *responses.Stored, addition *responses.Addition) error {
	if _, ok := a.State.Conversations.(joining); ok || s.Conversation == "" || a.State.Conversations == nil {
		return nil
	}
	if addition != nil {
		if _, err := a.State.Conversations.Change(ctx, who, s.Conversation, s.ID, with(addition)); err != nil && !gone(err) {
			return err
		}
	}
	a.release(ctx, who, s.Conversation, s.ID)
	return nil
}

// gone reports whether a conversation was deleted while a response was made in it.
func gone(err error) bool {
	return errors.Is(err, responses.ErrNotKept) || errors.Is(err, responses.ErrClaimed)
}
