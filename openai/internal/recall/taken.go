package recall

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A person who presses Esc in Claude Code before anything was said takes the turn back: the client
// has nothing of it, nor the prompt, and what is sent next stands in its place. What calls have
// changed they have changed, so such a turn is kept in front of its prompt, too, until somebody has
// an answer there. The prompt that comes next has it in front of it from then on.

// frontKeys returns the keys in front of a person's message, of those of a place, which agents of
// one session may share; nil for a client that takes nothing back.
func (t *Thread) frontKeys(keys []string) []string {
	if t.Request.TakesBack == "" {
		return nil
	}
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = keyOf(front, key, t.Request.TakesBack)
	}
	return all
}

// frontOf returns the key in front of a person's message: one, which is forgotten whatever an agent
// reminds of by then.
func (t *Thread) frontOf(before *digest) []string {
	key := before.bareKey()
	if before.spoken != nil {
		key = before.spokenKey()
	}
	return t.frontKeys([]string{key})
}

// takeBack puts a turn that was taken back in front of the message that the request ends with, for
// good, and reports whether there is one. It is not where the same request comes again, or goes on
// within the message: there it is found otherwise.
func (t *Thread) takeBack(ctx context.Context, h *history) bool {
	last := len(h.messages) - 1
	kept := h.kept(t.front)
	t.fronted = kept != nil
	if kept == nil || t.keptBefore(h) != nil {
		return false
	}
	if slices.ContainsFunc(h.within[last], func(b border) bool { return h.kept(b.keys) != nil }) {
		return false
	}
	keys := t.frontKeys(h.end.keys)
	for _, key := range keys {
		h.turns[key] = kept
	}
	t.keep(ctx, keys, kept)
	return true
}

// restoreTaken puts in front of a message what was taken back there.
func (t *Thread) restoreTaken(h *history, i int) {
	t.before = nil
	if kept := h.kept(h.taken[i]); kept != nil {
		t.before = slices.Concat(kept.Prompt, kept.Hidden)
		t.Dialogue.More = t.Dialogue.More || kept.More
		t.Dialogue.AddHidden(t.before...)
	}
}

// prompt is what a person says in parts of a message, for who reads it when it is taken back: no
// reminders, which stand in the next one, too, and no pictures, which are large.
func (p Pieces) prompt(from, to int) json.RawMessage {
	return model.ChatMessage("user", rawjson.Quote(string(Pieces{Parts: p.Parts[from:to]}.said())))
}

// inFront adds to the keys of a turn without an end those in front of its message, where its client
// has seen nothing of it, and to the turn what it was asked.
func (t *Thread) inFront(keys []string, turn *memory.Turn) []string {
	if len(t.front) == 0 {
		return keys
	}
	pieces := t.Request.Pieces[len(t.Request.Messages)-1]
	turn.Prompt, t.fronted = append(slices.Clip(t.before), pieces.prompt(t.rest, len(pieces.Parts))), true
	return slices.Concat(keys, t.front)
}

// settle forgets what is kept in front of the message, since its client has an answer.
func (t *Thread) settle(ctx context.Context) {
	if !t.fronted {
		return
	}
	for _, key := range t.front {
		if err := t.Memory.Drop(ctx, t.Request.Owner, key); err != nil {
			t.Log.Error("a turn was not forgotten", "error", err)
		}
	}
}
