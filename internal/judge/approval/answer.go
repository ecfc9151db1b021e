package approval

import (
	"context"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// PersonOf returns a caller as somebody who answers.
func PersonOf(who caller.Caller) Person {
	return Person{ID: who.ID, Name: who.RuleName(), Called: who.Name}
}

// Shows reports whether a caller may see a question: its key or token grants it a
// right such as approve:files__write_*, and it does not ask itself. Whether it may
// answer is for the rule to say, too ([Approval.MayDecide]).
func (a *Approval) Shows(who caller.Caller) bool {
	return who.May("approve:"+qualified.Name(a.Server, a.Tool)) && who.ID != a.Caller
}

// Reviews reports whether a caller may answer any questions at all, as far as it was
// granted.
func Reviews(who caller.Caller) bool {
	return who.Valid() && slices.ContainsFunc(slices.Concat(who.Grants, who.Scopes), func(right string) bool {
		return right == "*" || strings.HasPrefix(right, "approve:")
	})
}

// Waiting returns the questions that wait and that a caller is shown, those that were
// asked first first: at most 1,000. What is for others takes no room among them.
func (in *Inbox) Waiting(ctx context.Context, who caller.Caller) (found []Approval, err error) {
	if in == nil {
		return nil, nil
	}
	err = in.db.Read(ctx, func(tx *store.Tx) error {
		now, err := in.now(tx)
		if err != nil {
			return err
		}
		tools, err := waitingTools(tx, now)
		if err != nil {
			return err
		}
		of := slices.DeleteFunc(slices.Clone(tools), func(a Approval) bool { return !a.Shows(who) })
		if len(of) == 0 {
			return nil
		}
		f := Filter{State: Pending, Limit: 1000, not: who.ID}
		if len(of) < len(tools) {
			f.of = of
		}
		found, err = list(tx, f, now)
		return err
	})
	return found, err
}

// An Answer is what a caller says to a question.
type Answer struct {
	// ID is that of the approval, or the beginning that no other has.
	ID string
	// Digest is of the arguments that the caller was shown, where ID is not what they
	// chose it by themselves; an approval with other ones is not meant.
	Digest *canonical.Hash
	// Approve is yes, else no, for the reason Why, which is told to the model.
	Approve bool
	Why     string
}

// Answer gives a caller's answer. What the caller is not shown does not exist
// ([ErrNotFound]); other errors are those of [Inbox.Approve].
func (in *Inbox) Answer(ctx context.Context, who caller.Caller, said Answer) (Approval, error) {
	a, err := in.Get(ctx, said.ID)
	switch {
	case err != nil:
		return Approval{}, err
	case !a.Shows(who), said.Digest != nil && (a.ID != said.ID || a.Digest != *said.Digest):
		return Approval{}, ErrNotFound
	case said.Approve:
		return in.Approve(ctx, a.ID, PersonOf(who))
	}
	return in.Deny(ctx, a.ID, PersonOf(who), said.Why)
}
