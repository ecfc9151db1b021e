package result

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// digestLines and digestChars bound the readable part of a Text message; the
// whole stands below it.
const (
	digestLines = 20
	digestChars = 1_000
)

// renderText writes a heading, a digest that reads like text, and the envelope
// in a fenced block. JSON escapes line feeds, so nothing inside can end the
// block.
func (s *Shape) renderText(v *view, limit int) (out []byte, cut bool) {
	const open, end = "\n```json\n", "\n```"
	out = append(out, "Result of "...)
	out = append(out, visible(v.tool, min(100, limit/20))...)
	if v.server != "" {
		out = append(out, " ("...)
		out = append(out, visible(v.server, min(60, limit/30))...)
		out = append(out, ')')
	}
	out = append(out, ": success.\n"...)
	if v.failed {
		out = append(out[:len(out)-len("success.\n")], "error.\n"...)
	}
	room := limit - utf8.RuneCount(out) - len(open) - len(end)
	json, cut := s.renderEnvelope(v, room)
	left := room - utf8.RuneCount(json)
	if cut {
		// A message that is cut anyway gives some of its room to the digest.
		left = max(0, min(digestChars, limit/5, room-MinLimit))
		json, cut = s.renderEnvelope(v, room-left)
	}
	out = append(out, v.digest(min(left, digestChars))...)
	out = append(out, open...)
	out = append(out, json...)
	return append(out, end...), cut
}

// digest renders the data for reading, in at most budget characters.
func (v *view) digest(budget int) string {
	d, n := v.data.doc, v.data.node
	var lines []string
	switch n.kind {
	case '"':
		size, _, _ := prefix(d.b[n.start+1:n.end-1], digestChars)
		text := string(appendDecoded(nil, d.b[n.start:n.start+size+2]))
		for line := range strings.Lines(text) {
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
	case '[':
		lines = append(lines, "A list of "+counted(n.count, "item")+".")
	case '{':
		for _, m := range d.children(n) {
			lines = append(lines, "- "+string(appendDecoded(nil, m.name[:min(len(m.name), 2+prefixBytes(m.name))]))+": "+d.brief(m.node))
			if len(lines) == digestLines {
				break
			}
		}
	}
	var out strings.Builder
	for i, line := range lines {
		line = visible(line, 160)
		width := utf8.RuneCountInString(line) + 1
		if i == digestLines || width > budget {
			break
		}
		budget -= width
		out.WriteString(line)
		out.WriteByte('\n')
	}
	return out.String()
}

func prefixBytes(literal []byte) int {
	size, _, _ := prefix(literal[1:len(literal)-1], 60)
	return size
}

// brief describes a value in a few words, or gives it if it is short.
func (d *doc) brief(n node) string {
	switch n.kind {
	case '[':
		return counted(n.count, "item")
	case '{':
		return counted(n.count, "member")
	case '"':
		size, _, count := prefix(d.b[n.start+1:n.end-1], 100)
		text := string(appendDecoded(nil, d.b[n.start:n.start+size+2]))
		text = strings.ReplaceAll(text, "\n", " ")
		if count < n.count {
			text += "…"
		}
		return text
	}
	return visible(string(d.b[n.start:min(n.end, n.start+41)]), 41)
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// visible returns at most limit characters of s with hidden ones, except line
// feeds and tabs, spelled as escapes.
func visible(s string, limit int) string {
	var out []byte
	width := 0
	for _, r := range s {
		start := len(out)
		if invisible.Stray(r) && r != '\n' && r != '\t' {
			out = appendEscape(out, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
		if width += utf8.RuneCount(out[start:]); width >= limit {
			return string(out[:start]) + "…"
		}
	}
	return string(out)
}
