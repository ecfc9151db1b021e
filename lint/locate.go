package lint

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A Place is where a finding is in a text that people can look at.
type Place struct {
	// File is the path of the saved list; for a running server a made-up one,
	// {label}/{tool}.json, whose text is the tool's definition.
	File string
	// Line and Column count from 1; the column in characters.
	Line, Column int
	// Text is the line of the laid-out definition that the finding is about, empty
	// where it is about no line; TextLine is its number there, and Caret the
	// column.
	Text            string
	TextLine, Caret int
}

// Place returns where the finding is. The quoted line is one of the tool's
// definition, laid out for reading, since a list is often one long line.
func (r *Report) Place(f *Finding) Place {
	var server *Server
	for _, a := range r.Servers {
		if a.Server.Label == f.Server {
			server = a.Server
		}
	}
	p := Place{Line: 1, Column: 1}
	switch {
	case server == nil:
		return p
	case server.File != "":
		p.File = server.File
	case f.Tool != "":
		p.File = server.Label + "/" + fileName(f.Tool) + ".json"
	default:
		p.File = server.Label + "/server.json"
	}
	if f.tool == nil {
		return p
	}
	var laidOut bytes.Buffer
	if json.Indent(&laidOut, f.tool.Definition, "", "  ") == nil && f.Pointer != "" {
		if offset, ok := locate(laidOut.Bytes(), f.Pointer); ok {
			p.Line, p.Caret = position(laidOut.Bytes(), offset)
			p.Column, p.TextLine = p.Caret, p.Line
			p.Text = lineAt(laidOut.Bytes(), offset)
		}
	}
	if server.File != "" {
		p.Line, p.Column = 1, 1
		if offset, ok := locate(f.tool.Definition, f.Pointer); ok {
			at := f.tool.start.after(f.tool.Definition[:offset])
			p.Line, p.Column = at.line, at.column
		}
	}
	return p
}

// inRepository is [Report.Place] for services that show findings beside the files of a
// repository: what has no file there stands where the server is configured.
func (r *Report) inRepository(f *Finding) Place {
	place := r.Place(f)
	for _, a := range r.Servers {
		if s := a.Server; s.Label == f.Server && s.File == "" && s.Config != nil && s.Config.File != "" {
			return Place{File: s.Config.File, Line: max(s.Config.Line, 1), Column: 1}
		}
	}
	return place
}

// fileName makes a name for a file of a tool's name.
func fileName(tool string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, tool)
}

// locate returns the byte offset of what a JSON pointer leads to: of a member,
// its name. A pointer to what is not there leads to its nearest ancestor.
func locate(text []byte, pointer string) (int, bool) {
	for {
		if offset, ok := find(text, jsontext.Pointer(pointer)); ok {
			return offset, true
		}
		if pointer == "" {
			return 0, false
		}
		pointer, _ = cutLast(pointer)
	}
}

// find goes down to what a pointer leads to, and past what stands beside the way.
func find(text []byte, pointer jsontext.Pointer) (offset int, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for token := range pointer.Tokens() {
		if offset, ok = enter(d, token); !ok {
			return 0, false
		}
	}
	for offset < len(text) && strings.IndexByte(" \t\r\n,:", text[offset]) >= 0 {
		offset++
	}
	return offset, true
}

// enter goes into the next value as far as the member, or the element, of a name,
// and returns the offset behind which that begins.
func enter(d *jsontext.Decoder, token string) (int, bool) {
	kind := d.PeekKind()
	if _, err := d.ReadToken(); err != nil || kind != '{' && kind != '[' {
		return 0, false
	}
	for i := 0; d.PeekKind() != '}' && d.PeekKind() != ']'; i++ {
		before, name := int(d.InputOffset()), strconv.Itoa(i)
		if kind == '{' {
			t, err := d.ReadToken()
			if err != nil {
				return 0, false
			}
			name = t.String()
		}
		if name == token {
			return before, true
		}
		if d.SkipValue() != nil {
			return 0, false
		}
	}
	return 0, false
}

// A start is where something begins in a text: its offset, its line, and its
// column in characters, both from 1.
type start struct{ offset, line, column int }

// after is where s has moved to behind a text. A list is often one line, too long
// to be read from its beginning for each finding.
func (s start) after(text []byte) start {
	line, column := position(text, len(text))
	if line == 1 {
		column += s.column - 1
	}
	return start{s.offset + len(text), s.line + line - 1, column}
}

// position returns the line and the column, in characters, of an offset.
func position(text []byte, offset int) (line, column int) {
	line = 1 + bytes.Count(text[:offset], []byte("\n"))
	begin := bytes.LastIndexByte(text[:offset], '\n') + 1
	return line, 1 + utf8.RuneCount(text[begin:offset])
}

func lineAt(text []byte, offset int) string {
	begin := bytes.LastIndexByte(text[:offset], '\n') + 1
	end := bytes.IndexByte(text[offset:], '\n')
	if end < 0 {
		return string(text[begin:])
	}
	return string(text[begin : offset+end])
}
