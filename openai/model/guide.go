package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/result"
)

// withGuide puts a guide into the first system message of a history, or into one of its own
// in front.
func withGuide(history []json.RawMessage, guide string) []json.RawMessage {
	if guide == "" {
		return history
	}
	if len(history) > 0 {
		if o, err := rawjson.ParseObject(history[0]); err == nil {
			role, _ := rawjson.String(o.Get("role"))
			if role == "system" || role == "developer" {
				if content, ok := guided(o.Get("content"), guide); ok {
					o.Set("content", content)
					history[0] = o.Bytes()
				}
				return history
			}
		}
	}
	return slices.Insert(history, 0, ChatMessage("system", quoteGuide(guide)))
}

// guided returns the content of a system message with a guide in it.
func guided(content json.RawMessage, guide string) (json.RawMessage, bool) {
	if rawjson.Kind(content) == '"' {
		return AddGuide(content, guide), true
	}
	parts, err := rawjson.Elements(content)
	if err != nil || len(parts) == 0 {
		return nil, false
	}
	last, err := rawjson.ParseObject(parts[len(parts)-1])
	if err != nil {
		return nil, false
	}
	text := last.Get("text")
	if rawjson.Kind(text) != '"' {
		return nil, false
	}
	last.Set("text", AddGuide(text, guide))
	parts[len(parts)-1] = last.Bytes()
	return rawjson.AppendArray(nil, parts), true
}

// AddGuide is [result.AddGuide] of the literal of a text; what is no string counts as an empty
// one. A literal that spells only as it has to is not decoded for that: agents send the same
// twenty kilobytes of it with each request.
func AddGuide(literal json.RawMessage, guide string) json.RawMessage {
	quoted := quoteGuide(guide)
	if guide == "" || len(literal) < 3 || literal[0] != '"' || !visible(literal[1]) || bytes.Contains(literal, []byte(`\u`)) || bytes.Contains(literal, []byte(`\/`)) {
		text, _ := rawjson.String(literal)
		return rawjson.Quote(result.AddGuide(text, guide))
	}
	text := bytes.TrimSpace(literal)
	text = text[:len(text)-1] // without its end
	if bytes.Contains(text, []byte(result.GuideMark)) || within(text, quoted[1:len(quoted)-1]) {
		return literal
	}
	for endsInNewline(text) {
		text = text[:len(text)-2]
	}
	with := append(make(json.RawMessage, 0, len(text)+4+len(quoted)), text...)
	return append(append(with, `\n\n`...), quoted[1:]...)
}

// visible reports whether a byte of a literal is a character that can be seen, by itself.
func visible(c byte) bool { return c > ' ' && c < 0x7f && c != '\\' && c != '"' }

// endsInNewline reports whether a literal without its end ends in one: in an n behind an odd
// number of backslashes.
func endsInNewline(text []byte) bool {
	before, n := bytes.CutSuffix(text, []byte{'n'})
	return n && escapes(before)
}

// escapes reports whether the end of a part of a literal escapes what comes behind it.
func escapes(before []byte) bool { return (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 1 }

// within reports whether a part of a literal is a part of another one, too: of what it says,
// since n is no part of \n.
func within(literal, part []byte) bool {
	for from := 0; ; from++ {
		at := bytes.Index(literal[from:], part)
		if at < 0 {
			return false
		}
		if from += at; !escapes(literal[:from]) {
			return true
		}
	}
}

// quoteGuide returns the literal of a guide, which nobody changes. That of the last one is
// kept: there are few in a process, and most have one.
func quoteGuide(guide string) json.RawMessage {
	last := lastGuide.Load()
	if last == nil || last.guide != guide {
		last = &quotedGuide{guide, slices.Clip(rawjson.Quote(guide))}
		lastGuide.Store(last)
	}
	return last.literal
}

type quotedGuide struct {
	guide   string
	literal json.RawMessage
}

var lastGuide atomic.Pointer[quotedGuide]
