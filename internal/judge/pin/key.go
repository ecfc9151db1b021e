package pin

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Kind is a kind of what a server says and models read. The words are those that
// people write, and that stand in the store.
type Kind string

// The kinds.
const (
	Tool   Kind = "tool"
	Prompt Kind = "prompt"
	Skill  Kind = "skill"
	// Instructions are a server's text on how to use it, of which it has one.
	Instructions Kind = "instructions"
)

// A Key names a definition among those of its server.
type Key struct {
	Kind Kind
	// Name is the server's own name of a tool or prompt, or the URI of a skill; empty
	// for instructions.
	Name string
}

// String is the key as people write it behind the label of a server: the name of a
// tool alone, others with their kind before them, as in prompt:review, and
// instructions. It is another text for each key: a tool whose name is spelled like
// something else is tool:NAME.
func (k Key) String() string {
	switch k.Kind {
	case Instructions:
		return string(Instructions)
	case Tool:
		if ParseKey(k.Name) == k {
			return k.Name
		}
	}
	return string(k.Kind) + ":" + k.Name
}

// ParseKey reads what [Key.String] wrote.
func ParseKey(text string) Key {
	if text == string(Instructions) {
		return Key{Kind: Instructions}
	}
	kind, name, found := strings.Cut(text, ":")
	switch Kind(kind) {
	case Tool, Prompt, Skill:
		if found {
			return Key{Kind(kind), name}
		}
	}
	return Key{Tool, text}
}

// Of returns the pin of a definition: of the server's label, of the key, and of its
// entry in the server's list, byte for byte. That of a tool is [dragoman.Pin]; that of
// another kind is SHA-256 of the kind and of such a pin, and so never that of a tool.
func (k Key) Of(server string, definition []byte) Digest {
	digest := dragoman.Pin(server, k.Name, definition)
	if k.Kind == Tool {
		return digest
	}
	return sha256.Sum256(append([]byte(k.Kind), digest[:]...))
}

// TextOf returns the definition of instructions, which is a JSON object like all
// others: {"instructions":"…"}.
func TextOf(instructions string) json.RawMessage {
	o := rawjson.Object{}
	o.Set(string(Instructions), rawjson.Quote(instructions))
	return o.Bytes()
}

// Text returns the text of a definition of instructions.
func Text(definition json.RawMessage) string {
	o, err := rawjson.ParseObject(definition)
	if err != nil {
		return ""
	}
	text, _ := rawjson.String(o.Get(string(Instructions)))
	return text
}
