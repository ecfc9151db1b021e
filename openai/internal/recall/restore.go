package recall

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Ids of the client's calls, where we keep something that belongs to them. The
// prefix says whether a call ran that may have changed something: should the
// record be lost, nothing may run twice. They begin like OpenAI's: Droid gives others
// ids of its own, which end after 24 characters of ours. Those in stores and histories of
// earlier versions begin with what is behind that, and are as good.
const (
	ReadID  = likeOpenAI + read
	WroteID = likeOpenAI + wrote

	likeOpenAI  = "call_"
	ours        = "dragoman"
	read, wrote = ours + "0", ours + "1"
)

// random is how many characters of such an id are: 110 bits.
const random = 22

// Names reports whether an id of a call begins as ours do.
func Names(id string) bool {
	id = strings.TrimPrefix(id, likeOpenAI)
	return strings.HasPrefix(id, read) || strings.HasPrefix(id, wrote)
}

// minted reports whether an id of a call is one of ours.
func minted(id []byte) bool {
	id = bytes.TrimPrefix(id, []byte(likeOpenAI))
	return len(id) == len(read)+random && (bytes.HasPrefix(id, []byte(read)) || bytes.HasPrefix(id, []byte(wrote)))
}

// CallKey is the key under which a turn is kept that a call of the client's belongs to.
func CallKey(id string) string        { return "call " + id }
func requestKey(digest string) string { return requested + digest }

// What keys begin with that have a digest behind it, byte by byte.
const (
	prefixed  = "prefix "
	tailed    = "prefix tail "
	parted    = "prefix part "
	front     = "prefix front "
	windowed  = "prefix window "
	requested = "request "
)

// AskKey is the key under which a turn is kept that asked something.
func AskKey(id string) string { return "ask " + id }

// retryWindow is how long after an answer was written its request may still be sent
// again: that a write to a connection succeeded does not say that anybody read it,
// and official clients come back within seconds.
const retryWindow = time.Minute

// Restore makes the history of the request whole, in the dialogue.
func (t *Thread) Restore(ctx context.Context) error {
	// A client that sends a request again gave up on the first run of it, and what
	// that did must not be done twice.
	end, err := t.Running.Begin(ctx, t.Request.Owner, t.Request.Digest, t.Request.Retried || t.Request.Again)
	if err != nil {
		return err
	}
	t.finished = end
	if t.Hold != nil && t.Request.Digest != "" {
		again, err := t.Hold(ctx, t.Request.Owner+"\x00"+t.Request.Digest)
		if err != nil {
			return err
		}
		t.Request.Again = t.Request.Again || again
	}
	h, err := t.readHistory(ctx)
	if err != nil {
		return err
	}
	defer h.room.free()
	asked, err := t.answered(h)
	if err != nil {
		return err
	}
	t.Dialogue.Expect(len(h.messages))
	placed := map[string]bool{} // the client's calls in turns that were reopened, with their results
	noted := 0                  // the notes before are told
	for i := 0; i < len(h.messages); i++ {
		kept, err := h.turn(i)
		if err != nil {
			return err
		}
		if !isTool(h.objects[i]) { // no API takes anything between calls and their results
			noted = t.note(noted, i)
		}
		if asked != nil && i == len(h.messages)-1 && h.keys[i] != nil && (kept == nil || kept.Open != nil) {
			break // the message that asked
		}
		t.restoreTaken(h, i)
		whole, better := t.Request.Whole[i]
		switch {
		case kept == nil && answersOne(h.objects[i], placed): // somebody else spoke before it
		case kept == nil && t.restoreWithin(h, i):
		case kept == nil && better:
			t.Dialogue.AddHidden(whole...)
		case kept == nil:
			t.Dialogue.Add(h.messages[i], h.objects[i])
		case kept.Open == nil:
			t.Dialogue.More = t.Dialogue.More || kept.More
			t.Dialogue.AddHidden(append(slices.Clone(kept.Hidden), kept.Final)...)
		default:
			behind, goesOn, err := t.restoreOpen(h, i, kept, asked, placed)
			if err != nil {
				return err
			}
			if i = behind; goesOn {
				continue
			}
		}
		t.restoreBroken(h, i)
	}
	t.note(noted, len(h.messages))
	if t.begun != nil {
		last := len(h.messages) - 1
		t.begun.text = contentText(h.objects[last].Get("content"))
		whole, better := t.Request.Whole[last]
		if !better {
			whole = h.messages[last:]
		}
		t.begun.hidden = append(t.begun.hidden, whole...)
	}
	t.Dialogue.Begin(t.Guide)
	t.share()
	if asked != nil && t.Resume == nil {
		t.reopen(h, asked, nil, true)
	}
	if t.Resume != nil {
		t.mark(ctx)
	}
	return t.takeUp(t.keptBefore(h))
}

// restoreOpen puts a turn that was open in the place of the messages from i on in which the
// client has it, and returns the last of them. The client's calls in it are placed then. A
// turn that goes on in the next message is left to that, which has all of it.
func (t *Thread) restoreOpen(h *history, i int, kept, asked *memory.Turn, placed map[string]bool) (behind int, goesOn bool, err error) {
	parts, behind, err := h.parts(i)
	if err != nil {
		return 0, false, err
	}
	if parts != nil {
		for k, p := range parts {
			t.restorePart(h, p, k == len(parts)-1 && behind == len(h.messages)-1)
		}
		for _, id := range callIDs(h.objects[i]) {
			placed[id] = true
		}
		return behind, false, nil
	}
	now, behind := h.spread(i, kept.Open)
	if kept.Resumed || kept.Open.Waits() {
		if next := t.goesOn(h, behind, asked); next > behind {
			return next - 1, true, nil
		}
	}
	t.Dialogue.More = t.Dialogue.More || kept.More
	t.reopen(h, kept, now, behind == len(h.messages)-1)
	for _, call := range kept.Open.Calls {
		if !call.Ours() {
			placed[call.Client] = true
		}
	}
	return behind, false, nil
}

// answersOne reports whether a message is the result of one of calls.
func answersOne(o *rawjson.Object, calls map[string]bool) bool {
	if len(calls) == 0 || !isTool(o) {
		return false
	}
	id, _ := rawjson.String(o.Get("tool_call_id"))
	return calls[id]
}

// note puts the notes from one place to another behind the history, and returns the place behind
// them.
func (t *Thread) note(from, to int) int {
	for ; from <= to && len(t.Request.Notes) > 0; from++ {
		if note := t.Request.Notes[from]; note != nil {
			t.Dialogue.AddHidden(note)
		}
	}
	return from
}

// restorePart puts a part of a message of the client's in its place, with its results.
func (t *Thread) restorePart(h *history, p part, last bool) {
	if p.turn != nil {
		t.Dialogue.More = t.Dialogue.More || p.turn.More
		t.reopen(h, p.turn, []*rawjson.Object{p.now}, last)
		return
	}
	ids := callIDs(p.now) // the dialect may change them
	t.Dialogue.Add(p.now.Bytes(), p.now)
	for _, id := range ids {
		if answer := h.result(made{p.now, id}); answer != nil {
			t.Dialogue.Add(answer.Bytes(), answer)
		}
	}
}

// restoreBroken puts behind a message what was done for it before its answer broke off: its
// person goes on with something else, and the model must know what has changed. Texts are the
// client's to tell, where it kept any.
func (t *Thread) restoreBroken(h *history, i int) {
	kept := h.brokenOff(i)
	if kept == nil {
		return
	}
	hidden := kept.Hidden
	if h.keys[i+1] != nil {
		hidden = withoutText(hidden)
		if t.Request.Joins {
			hidden = slices.DeleteFunc(hidden, spoken) // of a turn that broke off more than once
		}
		if t.Request.Joins && i+2 == len(h.messages) {
			t.begun, t.wrote = &beginning{hidden: slices.Clip(hidden)}, t.wrote || kept.Wrote
		}
	}
	t.Dialogue.More = t.Dialogue.More || kept.More
	t.Dialogue.AddHidden(hidden...)
}

// share lets go of the client's list of messages where the dialogue's has them all: what is
// open for long would hold two.
func (t *Thread) share() {
	messages := t.Request.Messages
	if len(messages) > 0 {
		t.first, t.Request.Messages = messages[0], t.Dialogue.Shared(messages)
	}
}

// goesOn returns the message in which a turn that asked goes on: the next one of the
// assistant's, where nobody but the client's tools speaks between, which has all of it, with
// what came of the answers. It is i where it goes on nowhere.
func (t *Thread) goesOn(h *history, i int, asked *memory.Turn) int {
	next := i + 1
	for next < len(h.messages) && isTool(h.objects[next]) {
		next++
	}
	if next >= len(h.messages) || h.keys[next] == nil {
		return i
	}
	if asked != nil && next == len(h.messages)-1 || len(t.Request.Whole[next]) > 0 {
		return next
	}
	if kept, err := h.turn(next); err == nil && kept != nil {
		return next
	}
	return i
}

// keptBefore returns what is kept of this very request; nil for nothing.
func (t *Thread) keptBefore(h *history) *memory.Turn {
	if len(h.turns) == 0 {
		return nil
	}
	return h.turns[requestKey(t.Request.Digest)]
}

// takeUp goes on with what is kept of this very request, where it was made before.
func (t *Thread) takeUp(kept *memory.Turn) error {
	switch {
	case kept == nil && t.Request.Again:
		return &model.Error{
			Status: http.StatusConflict, Type: model.TypeInvalidRequest, Code: model.CodeTurnExpired,
			Message: "This request ran before, and what its tools did is not remembered any more. It is not run again, since they may have changed something.",
			Header:  http.Header{"X-Should-Retry": {"false"}},
		}
	case kept != nil && (t.Request.Again || t.Request.Turn || kept.Delivered.IsZero() || time.Since(kept.Delivered) < retryWindow):
		if t.earlier == nil {
			t.Dialogue.AddHidden(kept.Hidden...)
		}
		t.Dialogue.Wrote, t.Dialogue.Spent = kept.Wrote, kept.Spent
		if kept.Undelivered != nil && kept.Open != nil {
			open := *kept.Open
			t.Lost = &Lost{Open: &open, Answer: kept.Undelivered}
		}
	}
	return nil
}

// answered returns the turn whose questions the request answers; nil for none.
func (t *Thread) answered(h *history) (*memory.Turn, error) {
	a := t.Request.Answers
	if a == nil {
		return nil, nil
	}
	var kept *memory.Turn
	for _, id := range append([]string{a.ID}, a.IDs...) {
		if kept == nil {
			kept = h.turns[AskKey(id)]
		}
	}
	if kept == nil || kept.Open == nil {
		return nil, &model.Error{
			Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeTurnExpired, Param: a.Param,
			Message: "What was asked is not remembered any more. Start the turn anew from its user message.",
		}
	}
	return kept, nil
}

// reopen puts a turn with an open message back in its place, as the client has it
// now, in one message or several; none means as it was. Where the turn is the last one, it goes on: what waits
// for answers is made again.
func (t *Thread) reopen(h *history, kept *memory.Turn, now []*rawjson.Object, last bool) {
	hidden := kept.Hidden
	if len(now) > 0 && contentText(contentOf(now)) != kept.Text {
		hidden = withoutText(hidden)
	}
	m := h.merged(kept, now)
	t.Dialogue.AddHidden(hidden...)
	if last {
		t.wrote, t.Dialogue.Spent = t.wrote || kept.Wrote, kept.Spent
	}
	switch {
	case !m.Waits():
	case last:
		var given map[string]map[string]json.RawMessage
		if t.Request.Answers != nil {
			given = t.Request.Answers.ByCall
		}
		t.Resume, t.resumed = t.Dialogue.Resume(m, given), kept
		return
	default:
		for i := range m.Calls {
			if call := &m.Calls[i]; call.Waiting != nil {
				call.Result = t.Dialogue.Unanswered(call)
			}
		}
	}
	t.Dialogue.AddHidden(model.Documents(m)...)
}

// merged returns the open message of a turn with what the client made of it. What
// it changed counts: calls it dropped stay dropped, text and arguments it edited
// replace the model's. Results that it did not send are not invented.
func (h *history) merged(t *memory.Turn, now []*rawjson.Object) *memory.Message {
	m := &memory.Message{Message: t.Open.Message, After: t.Open.After}
	if len(now) > 0 {
		if content := contentOf(now); contentText(content) != t.Text {
			m.Message = withContent(m.Message, content)
		}
	}
	type has struct{ by, call *rawjson.Object }
	kept := map[string]has{}
	for _, o := range now {
		calls, _ := rawjson.Elements(o.Get("tool_calls"))
		for _, raw := range calls {
			if call, err := rawjson.ParseObject(raw); err == nil {
				id, _ := rawjson.String(call.Get("id"))
				kept[id] = has{o, call}
			}
		}
	}
	for _, call := range t.Open.Calls {
		if !call.Ours() {
			mine, ok := kept[call.Client]
			if !ok {
				continue
			}
			call.Raw, call.Result = edited(&call, mine.call), nil
			if answer := h.result(made{mine.by, call.Client}); answer != nil {
				o := answer.Clone()
				o.Set("tool_call_id", rawjson.Quote(call.ID))
				call.Result = o.Bytes()
			}
		}
		m.Calls = append(m.Calls, call)
	}
	return m
}

// contentOf returns what the client's messages of a turn say: one of them, or all the same.
func contentOf(now []*rawjson.Object) json.RawMessage {
	for _, o := range now {
		if content := o.Get("content"); contentText(content) != "" {
			return content
		}
	}
	return now[0].Get("content")
}

// withContent returns a message with other content.
func withContent(message, content json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return message // we made it
	}
	if o.Set("content", content); content == nil {
		o.Set("content", null)
	}
	return o.Bytes()
}

// edited returns the upstream's form of a call as the client has it now.
func edited(call *memory.Call, now *rawjson.Object) json.RawMessage {
	was, err := rawjson.ParseObject(call.Raw)
	if err != nil {
		return call.Raw
	}
	for _, kind := range []string{"function", "custom"} {
		inner, err := rawjson.ParseObject(now.Get(kind))
		if err != nil {
			continue
		}
		if have, err := rawjson.ParseObject(was.Get(kind)); err == nil && meaning(inner) == meaning(have) {
			return call.Raw
		}
		o := now.Clone()
		o.Set("id", rawjson.Quote(call.ID))
		return o.Bytes()
	}
	return call.Raw
}

// meaning is the name and the arguments of a call.
func meaning(inner *rawjson.Object) [2]string {
	name, _ := rawjson.String(inner.Get("name"))
	return [2]string{name, argumentText(inner.Get("arguments")) + argumentText(inner.Get("input"))}
}

func withoutText(messages []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		out[i] = m
		if o, err := rawjson.ParseObject(m); err == nil && o.Get("tool_calls") != nil {
			out[i] = withContent(m, null)
		}
	}
	return out
}

// spoken reports whether a message is a text of the assistant's alone.
func spoken(message json.RawMessage) bool {
	role, _ := rawjson.String(rawjson.Get(message, "role"))
	return role == "assistant" && rawjson.Get(message, "tool_calls") == nil
}
