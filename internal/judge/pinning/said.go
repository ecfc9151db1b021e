package pinning

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
)

// Said is one thing that a server says and models read.
type Said struct {
	pin.Key
	Pin        pin.Digest
	Definition json.RawMessage
}

// OfTool returns what is judged of a tool.
func OfTool(t *dragoman.Tool) Said {
	return Said{pin.Key{Kind: pin.Tool, Name: t.Original}, t.Pin, t.Definition}
}

// Entries are the kinds of entries that are pinned, beside tools and instructions.
var Entries = map[dragoman.EntryKind]pin.Kind{dragoman.Prompt: pin.Prompt, dragoman.Skill: pin.Skill}

// KeyOf returns the key of an entry; ok is false for kinds that are not pinned.
func KeyOf(e *dragoman.Entry) (key pin.Key, ok bool) {
	kind, ok := Entries[e.Kind]
	return pin.Key{Kind: kind, Name: e.Original}, ok
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
	key, definition := pin.Key{Kind: pin.Instructions}, pin.TextOf(text)
	return Said{key, key.Of(label, definition), definition}
}

// noText is the definition of empty instructions, which say nothing that could be
// held.
var noText = pin.TextOf("")

func (s *Said) empty() bool { return s.Kind == pin.Instructions && bytes.Equal(s.Definition, noText) }
