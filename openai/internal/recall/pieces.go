package recall

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// Between these stands what an agent says in a message of its person's, by a habit of Claude
// Code's.
const (
	Reminder    = "<system-reminder>"
	ReminderEnd = "</system-reminder>"
)

// Pieces are what a message of a person's was put together of. A client whose turn ended before
// anything was said writes what its person says next behind the prompt, into the same message:
// what was done for the prompt belongs between.
type Pieces struct {
	// Parts are texts, as literals, and objects.
	Parts []json.RawMessage
	// Messages returns the parts from one to another as messages.
	Messages func(from, to int) []json.RawMessage
}

// spoken calls f for each part that a person says, with what is said in it. Reminders, and white
// space at the ends of a part, are not: agents put them elsewhere, or say them otherwise, later.
// Which picture it is does not count: Claude Code takes out what a model's API refuses.
// room is for texts with escapes.
func (p Pieces) spoken(room *[]byte, f func(i int, says []byte)) {
	for i, part := range p.Parts {
		text, is := rawjson.Text(part, room)
		if !is || takenOut(bytes.TrimSpace(text)) {
			f(i, []byte("[...]"))
		} else if says := Said(text); len(says) > 0 {
			f(i, says)
		}
	}
}

// Said returns what a person says in a text of a message of theirs, without white space at its
// ends; nothing where an agent says all of it. What an agent reminds of in front may stand in one
// text with what the person says.
func Said(text []byte) []byte {
	text = bytes.TrimSpace(text)
	for bytes.HasPrefix(text, []byte(Reminder)) {
		_, text, _ = bytes.Cut(text, []byte(ReminderEnd)) // nothing where it has no end
		text = bytes.TrimSpace(text)
	}
	if takenOut(text) {
		return nil
	}
	return text
}

// takenOut reports whether a text is what Claude Code puts in the place of a picture, or a
// document, that a model's API refused: "[Image removed: the API could not process this image".
func takenOut(text []byte) bool {
	what, _, is := bytes.Cut(text[:min(len(text), 100)], []byte(" removed: the API could not process this "))
	return is && bytes.HasPrefix(what, []byte("[")) && bytes.IndexByte(what, ' ') < 0
}

// said is what a person says in a message. It is as the content would be where nothing else
// stood in it.
func (p Pieces) said() []byte {
	said, room := []byte{}, []byte(nil)
	p.spoken(&room, func(_ int, says []byte) {
		if len(said) > 0 {
			said = append(said, "\n\n"...)
		}
		said = append(said, says...)
	})
	return said
}

// A border is a place within a message behind which a turn may have broken off.
type border struct {
	at   int      // so many parts are before it
	keys []string // under which the turn may be kept
}

// borders returns the borders in a message: one behind each part that its person says. The
// last is where the message ends, reminders apart. They are named by what is before the
// message, and by what its person has said in it till then.
func (t *Thread) borders(before *digest, pieces Pieces) []border {
	var all []border
	var hashes []hash.Hash
	pieces.spoken(&before.texts, func(i int, says []byte) {
		if hashes == nil {
			for _, key := range t.prefixKeys(nil, before) {
				h := sha256.New()
				h.Write([]byte(key))
				hashes = append(hashes, h)
			}
		}
		b := border{at: i + 1}
		for _, h := range hashes {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(says))))
			h.Write(says)
			b.keys = append(b.keys, string(h.Sum([]byte(parted))))
		}
		all = append(all, b)
	})
	return all
}

// brokenKeys returns the keys under which a turn is kept whose answer broke off before anything
// was said, for a client that goes on within the same message; none for a message that is no
// person's.
func (t *Thread) brokenKeys() []string {
	messages := t.Request.Messages
	pieces, is := t.Request.Pieces[len(messages)-1]
	if !is {
		return nil
	}
	before := t.digestOf(messages[:len(messages)-1])
	defer before.free()
	all := t.borders(before, pieces)
	if len(all) == 0 {
		return nil
	}
	t.front = t.frontOf(before)
	return all[len(all)-1].keys
}

// kept returns what is kept under the first of keys that has something; nil for nothing.
func (h *history) kept(keys []string) *memory.Turn {
	for _, key := range keys {
		if t := h.turns[key]; t != nil && !t.Ambiguous {
			return t
		}
	}
	return nil
}

// silence returns what is kept of this very request, where its client has an answer in which
// nothing was said; nil where it has none. Claude Code keeps no such answer, and has an agent's
// own words follow in the same message, as reminders: that nothing was visible, or what a hook
// says of the end of the turn. What was done stands in front of them.
func (t *Thread) silence(h *history) *memory.Turn {
	kept := t.keptBefore(h)
	if !t.Request.Turn || kept == nil || kept.Delivered.IsZero() || kept.Text != "" || kept.Open != nil {
		return nil
	}
	return kept
}

// restoreWithin puts a message of a person's, within which turns broke off, behind the history
// with what was done in them, and reports whether there is any.
func (t *Thread) restoreWithin(h *history, i int) bool {
	pieces, from := t.Request.Pieces[i], 0
	for _, b := range h.within[i] {
		kept := h.kept(b.keys)
		if kept == nil {
			continue
		}
		t.Dialogue.More = t.Dialogue.More || kept.More
		t.Dialogue.AddHidden(append(pieces.Messages(from, b.at), kept.Hidden...)...)
		t.before = append(append(t.before, pieces.prompt(from, b.at)), kept.Hidden...)
		from = b.at
	}
	t.rest = from
	if kept := t.silence(h); kept != nil && i == len(h.messages)-1 && h.end.at > from && h.end.at < len(pieces.Parts) {
		t.earlier = kept.Hidden
		t.Dialogue.AddHidden(append(pieces.Messages(from, h.end.at), kept.Hidden...)...)
		from = h.end.at
	}
	if from > 0 {
		t.Dialogue.AddHidden(pieces.Messages(from, len(pieces.Parts))...)
	}
	return from > 0
}
