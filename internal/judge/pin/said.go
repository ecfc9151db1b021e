package pin

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
)

// Said is one thing that a server says and models read.
type Said struct {
	Key
	Pin        Digest
	Definition json.RawMessage
}

// OfTool returns what is judged of a tool.
func OfTool(t *dragoman.Tool) Said {
	return Said{Key{Kind: Tool, Name: t.Original}, t.Pin, t.Definition}
}

// Entries are the kinds of entries that are pinned, beside tools and instructions.
var Entries = map[dragoman.EntryKind]Kind{dragoman.Prompt: Prompt, dragoman.Skill: Skill}

// KeyOf returns the key of an entry; ok is false for kinds that are not pinned.
func KeyOf(e *dragoman.Entry) (key Key, ok bool) {
	kind, ok := Entries[e.Kind]
	return Key{Kind: kind, Name: e.Original}, ok
}

// OfEntry returns what is judged of an entry; ok is false for kinds that are not pinned.
func OfEntry(e *dragoman.Entry) (said Said, ok bool) {
	key, ok := KeyOf(e)
	if !ok {
		return Said{}, false
	}
	return Said{key, key.Of(e.Server, e.Definition), e.Definition}, true
}

// OfInstructions returns what is judged of the instructions of a server, which may be
// empty.
func OfInstructions(label, text string) Said {
	key, definition := Key{Kind: Instructions}, TextOf(text)
	return Said{key, key.Of(label, definition), definition}
}

// noText is the definition of empty instructions, which say nothing that could be
// held.
var noText = TextOf("")

// Empty reports whether there is nothing that could be held.
func (s *Said) Empty() bool { return s.Kind == Instructions && bytes.Equal(s.Definition, noText) }
