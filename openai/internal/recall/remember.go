package recall

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// turn returns what has happened so far behind the message that the client gets, and
// of which it has seen a text.
func (t *Thread) turn(seen string) *memory.Turn {
	d := t.Dialogue
	return &memory.Turn{Hidden: t.hidden(), Text: t.wholeText(seen), Wrote: t.wrote || d.Wrote, More: d.More, Spent: d.Spent}
}

// keep stores a turn. That it cannot be kept costs the model its memory, and the
// client nothing else. Who goes on from this very answer finds it by known in place of the
// visible history, whatever is in front of that.
func (t *Thread) keep(ctx context.Context, keys []string, turn *memory.Turn, known ...string) {
	if t.Kept != nil && !turn.Ambiguous {
		named := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return strings.HasPrefix(key, prefixed) })
		t.Kept(spelled(append(named, known...)), turn)
	}
	if err := t.Memory.Keep(ctx, t.Request.Owner, keys, turn); err != nil && ctx.Err() == nil { // else the client has left
		t.Log.Error("a turn was not remembered", "error", err)
	}
}

// KeepOpen records a message before the client gets its calls, or is asked something,
// where there is something that the client does not see. The client's calls in it get
// the ids that the client is to be given. seen is the text that the client has seen.
func (t *Thread) KeepOpen(ctx context.Context, round *model.Round, seen string) {
	m := round.Message
	ours := slices.ContainsFunc(m.Calls, func(call memory.Call) bool { return call.Ours() })
	if t.Memory == nil || t.Request.Shown || !ours && len(t.hidden()) == 0 && !t.Unseen && !t.Dialogue.Unseen(m.Message) {
		return
	}
	prefix := ReadID
	if t.wrote || t.Dialogue.Wrote || m.Waits() {
		prefix = WroteID
	}
	var keys, known []string
	if m.Calls = slices.Clone(m.Calls); round.Mixed() {
		keys = t.nameCalls(m, prefix, seen)
	}
	if m.Waits() {
		for _, id := range t.Consents {
			keys = append(keys, AskKey(id))
		}
		if len(t.Consents) == 0 {
			t.Asks = prefix + rand.Text()[:22]
			keys = append(keys, AskKey(t.Asks))
		}
		if d := t.visibleDigest(seen, nil); !round.Mixed() { // the client may go on without an answer
			if known = append(known, d.bareKey()); t.proves(d) {
				keys = t.prefixKeys(keys, d)
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	turn, kept := t.turn(seen), *m
	turn.Open = &kept
	t.keep(ctx, keys, turn, known...)
}

// nameCalls gives the client's calls ids by which they are found again, and returns
// the keys.
func (t *Thread) nameCalls(m *memory.Message, prefix, seen string) (keys []string) {
	for i := range m.Calls {
		call := &m.Calls[i]
		if call.Ours() {
			continue
		}
		call.Client = prefix + rand.Text()[:random]
		if t.Request.NoCallIDs {
			call.Client = fmt.Sprintf("call_legacy_%d", len(t.Request.Messages))
		}
		keys = append(keys, CallKey(call.Client))
	}
	if !t.Request.NoCallIDs {
		return keys
	}
	if d := t.visibleDigest(seen, m); t.proves(d) {
		return t.prefixKeys(nil, d)
	}
	return nil
}

// KeepResumed records what became of the calls of an earlier turn, where the client
// keeps a message of it, with calls of its own.
func (t *Thread) KeepResumed(ctx context.Context, round *model.Round) {
	var keys []string
	m := *round.Message
	for i := range m.Calls {
		if !m.Calls[i].Ours() {
			keys = append(keys, CallKey(m.Calls[i].Client))
		}
	}
	if len(keys) == 0 || t.Memory == nil {
		return
	}
	turn, d := *t.resumed, t.Dialogue
	turn.Open, turn.Resumed, turn.Wrote, turn.More, turn.Spent = &m, true, t.wrote || d.Wrote, d.More, d.Spent
	t.keep(ctx, keys, &turn)
}

// An End is how a request ended.
type End struct {
	// Err is the error that ended it early; nil for none.
	Err error
	// Seen is the text that the client has seen.
	Seen string
	// Pending is the message whose calls are the client's to answer, or wait; nil for
	// none. Last is the model's last message where there is none.
	Pending *model.Round
	Last    *model.Reply
	// Answer returns what the half needs to give the client its answer where this
	// request comes again. Its documents are copies: those of a reply hold on to all of
	// it. It is asked only where that may be needed.
	Answer func() json.RawMessage
}

// Remember records a turn that has ended: for the next one, or, when the client did
// not get its answer, for the request that it sends again.
func (t *Thread) Remember(end End) {
	if t.finished == nil {
		return
	}
	defer t.finished()
	if t.beaten {
		return // what the other one did is kept
	}
	ctx := context.Background() // it is worth more than the request, which may be over
	if end.Err == nil || end.Seen+t.Dialogue.Broke() != "" {
		t.settle(ctx)
	}
	answered := end.Pending != nil && slices.ContainsFunc(end.Pending.Message.Calls, func(call memory.Call) bool { return call.Result != nil })
	if t.Memory == nil || len(t.hidden()) == 0 && !answered {
		return
	}
	if t.replaced(ctx) != nil {
		t.KeepFinal(ctx, end) // for whoever reads this answer all the same
		return
	}
	t.keepBroken(ctx, end, answered)
	request := t.request(end, answered)
	keys, final := t.final(ctx, end)
	switch ofRequest := requestKey(t.Request.Digest); {
	case request != nil && len(keys) > 0 && request.Open == nil && t.begun == nil:
		final.Delivered = request.Delivered // one turn under all keys: kept once, and at once
		t.keep(ctx, append(keys, ofRequest), final)
		return
	case request != nil:
		t.keep(ctx, []string{ofRequest}, request)
	}
	if len(keys) > 0 {
		t.keep(ctx, keys, final)
	}
}

// KeepBegun records, before the calls of a round are made, that they may have been, with what was
// done before: should this process die, the client sends its request again, and none of it is done
// once more. seen is the text that the client has seen. It is done for clients whose requests are
// known by what they say when they come again. From then on those wait that go on behind a request
// of any client that leaves. An error says that the calls may not be made.
func (t *Thread) KeepBegun(ctx context.Context, round *model.Round, seen string) error {
	t.mark(ctx)
	if t.Memory == nil || !t.Request.Retried || !t.Dialogue.Wrote && !round.Writes() {
		return nil
	}
	if err := t.replaced(ctx); err != nil {
		return err
	}
	if err := t.overtaken(ctx); err != nil {
		return err
	}
	t.doubted = true
	turn := t.turn(seen)
	turn.Hidden, turn.Wrote = append(t.ofRequest(), t.Dialogue.Begun(round)...), true
	keys := []string{requestKey(t.Request.Digest)}
	if t.begun == nil && !t.Request.Shown { // else what was begun is kept under them, or nothing is
		if keys = append(keys, t.brokenOffKeys()...); seen == "" {
			keys = t.inFront(keys, turn)
		}
	}
	t.keep(ctx, keys, turn)
	return nil
}

// replaced refuses a request whose process was taken for dead, and was not, once another one goes
// on in its place from what is kept of it.
func (t *Thread) replaced(ctx context.Context) error {
	if t.Held == nil {
		return nil
	}
	err := t.Held(ctx)
	if e, ok := model.AsError(err); !ok || e.Code != model.CodeInProgress {
		return nil // a store that cannot say so does not let the calls be made either
	}
	t.beaten = true
	return err
}

// overtaken refuses, before the first calls that are kept, a request that was sent again to another
// process meanwhile, which has begun to change something for it: it knows nothing of that, would do
// it once more, and take the place of what is kept of it. A process waits for its own.
func (t *Thread) overtaken(ctx context.Context) error {
	if t.doubted {
		return nil
	}
	key := requestKey(t.Request.Digest)
	found, err := t.Memory.Find(ctx, t.Request.Owner, []string{key})
	if err != nil || found[key] == nil || sameTurn(found[key], t.known) {
		return nil // where nothing can be found, nothing is kept either
	}
	t.beaten = true
	return &model.Error{
		Status: http.StatusConflict, Type: model.TypeInvalidRequest, Code: model.CodeInProgress,
		Message: "This request was sent again, and another process of this gateway was quicker with it. Send it once more: it then goes on from what that did.",
		Header:  http.Header{"Retry-After": {"5"}},
	}
}

// sameTurn reports whether two turns of one request have come as far.
func sameTurn(a, b *memory.Turn) bool {
	return b != nil && a.Delivered.Equal(b.Delivered) && sameHidden(a, b)
}

func sameHidden(a, b *memory.Turn) bool {
	return slices.EqualFunc(a.Hidden, b.Hidden, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// keepBroken records what was done for a request whose answer broke off, for a client that goes
// on without it: a person stopped it, and says something else. The visible history ends with the
// client's own message, which others may begin with, too: it has to be named whose it is, and what
// the client keeps of the answer shows that it is this one. Calls of the client's are left out,
// since it did not get them. What [Thread.KeepBegun] kept so is told in the end by one that ended
// well, too: an agent that gets people's messages alone, and not the answers, finds it there.
func (t *Thread) keepBroken(ctx context.Context, end End, answered bool) {
	if end.Err == nil && !t.doubted || t.Request.Shown || t.begun != nil && end.Seen == "" { // of that one its client knows no more than before
		return
	}
	keys := t.brokenOffKeys()
	if keys == nil {
		return
	}
	seen := end.Seen
	if broke := t.Dialogue.Broke(); broke != "" {
		seen += "\n\n" + broke
	}
	turn := t.turn(seen)
	if answered {
		open := *end.Pending.Message
		open.Calls = slices.DeleteFunc(slices.Clone(open.Calls), func(call memory.Call) bool { return !call.Ours() || call.Result == nil })
		turn.Hidden = append(slices.Clip(turn.Hidden), model.Documents(&open)...)
	}
	if end.Err != nil && seen == "" && (turn.Wrote || t.doubted) {
		keys = t.inFront(keys, turn)
	}
	t.keep(ctx, keys, turn)
}

// brokenOffKeys returns the keys under which the turn is kept where its answer breaks off; nil
// where nothing says whose conversation it is.
func (t *Thread) brokenOffKeys() []string {
	d := t.digestOf(t.asked())
	defer d.free()
	if !t.named(d) {
		return nil
	}
	return t.unendedKeys(t.brokenKeys(), d)
}

// KeepFinal records a turn that has ended well for the next one. Remember does so where
// a half did not before it told its client.
func (t *Thread) KeepFinal(ctx context.Context, end End) {
	if keys, turn := t.final(ctx, end); len(keys) > 0 {
		t.keep(ctx, keys, turn)
	}
}

// final returns a turn that has ended well, and its keys; none for one that has not, or that
// nobody could find.
func (t *Thread) final(ctx context.Context, end End) (keys []string, turn *memory.Turn) {
	if t.Memory == nil || len(t.hidden()) == 0 || t.ended {
		return nil, nil
	}
	if end.Err != nil || end.Last == nil || end.Pending != nil || t.Request.Shown {
		return nil, nil
	}
	d := t.visibleDigest(end.Seen, nil)
	proven := t.proves(d)
	if !proven && t.Kept == nil {
		return nil, nil
	}
	t.ended = true
	turn = t.turn(end.Seen)
	turn.Final = t.Dialogue.Remember(end.Last).Bytes()
	if t.Kept != nil { // who goes on from this very answer need not prove anything
		t.Kept(spelled([]string{d.bareKey()}), turn)
	}
	if !proven {
		return nil, nil
	}
	if keys = t.prefixKeys(nil, d); !t.Request.Identified {
		keys = t.unclaimed(ctx, keys, turn)
	}
	return keys, turn
}

// unclaimed returns the keys but for those with which another turn ended, in a conversation, or
// a branch of one, that may be somebody else's: nobody finds either by them.
func (t *Thread) unclaimed(ctx context.Context, keys []string, turn *memory.Turn) []string {
	found, err := t.Memory.Find(ctx, t.Request.Owner, keys)
	if err != nil {
		return keys
	}
	var claimed, free []string
	for _, key := range keys {
		if other := found[key]; other != nil && (other.Ambiguous || !bytes.Equal(other.Final, turn.Final) || !sameHidden(other, turn)) {
			claimed = append(claimed, key)
		} else {
			free = append(free, key)
		}
	}
	if len(claimed) > 0 {
		t.keep(ctx, claimed, &memory.Turn{Ambiguous: true})
	}
	return free
}

// request returns what a request did that may have changed something, for the same request
// sent again; nil where nothing may have been. Once the client has its answer the record is
// dropped: a request like it is then a new one, and only one that came while this
// one ran still waits for what it did.
func (t *Thread) request(end End, answered bool) *memory.Turn {
	if !t.Dialogue.Wrote && !t.doubted {
		return nil
	}
	turn := t.turn(end.Seen)
	turn.Hidden = t.ofRequest() // what was before stands in the history of the same request, too
	if end.Err == nil && !t.Running.Waited(t.Request.Owner, t.Request.Digest) {
		turn.Delivered = time.Now()
	}
	if answered {
		kept := *end.Pending.Message
		turn.Open, turn.Undelivered = &kept, end.Answer()
	}
	return turn
}
