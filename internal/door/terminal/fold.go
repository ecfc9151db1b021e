package terminal

import (
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// continued begins a row that goes on with the one above it.
const continued = "⋮ "

// Fold returns text whose lines are no wider than the screen: what is wider goes on in rows
// that begin with ⋮, below the beginning of their line. A terminal goes on at its left edge,
// where the text of others could pass for a line of ours. Where there is no terminal, lines
// stay as they are.
func (s *Screen) Fold(text string) string {
	if f, ok := s.Writer.(*os.File); s.Columns == 0 && !(ok && term.IsTerminal(int(f.Fd()))) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		foldLine(&b, line, s.Width()-1)
	}
	return b.String()
}

// foldLine writes a line in rows of at most so many columns.
func foldLine(b *strings.Builder, line string, room int) {
	plain := ansi.Strip(line)
	indent := strings.Repeat(" ", min(len(plain)-len(strings.TrimLeft(plain, " ")), room/2))
	column, state := 0, byte(0)
	for line != "" {
		piece, width, n, next := ansi.DecodeSequence(line, state, nil)
		if piece == "\t" {
			piece, width = "        ", 8 // no terminal moves on by more
		}
		if width = max(width, apart(piece)); column+width > room && width > 0 {
			b.WriteString("\n" + indent + continued)
			column = len(indent) + ansi.StringWidth(continued)
		}
		b.WriteString(piece)
		column, state, line = column+width, next, line[n:]
	}
}

// apart returns how many columns a character takes where a terminal shows each code point
// of it by itself: some join an emoji of several, some do not.
func apart(character string) (columns int) {
	if len(character) == 1 || strings.HasPrefix(character, "\x1b") {
		return 0
	}
	for _, r := range character {
		columns += ansi.StringWidth(string(r))
	}
	return columns
}

// Quote returns text of others for a line of ours. Its further lines have the mark of
// [Screen.Fold], so that none of them passes for one of ours.
func Quote(text string) string {
	return strings.ReplaceAll(Visible(text), "\n", "\n  "+continued)
}
