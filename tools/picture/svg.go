package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// Sizes in the picture, in its own units.
const (
	cellWidth  = 8.4
	lineHeight = 20
	margin     = 20
	titleBar   = 36
)

// palette are the colours of the terminal, on a dark ground.
var palette = map[ansi.BasicColor]string{
	ansi.Black: "#484f58", ansi.Red: "#ff7b72", ansi.Green: "#3fb950", ansi.Yellow: "#d29922",
	ansi.Blue: "#58a6ff", ansi.Magenta: "#bc8cff", ansi.Cyan: "#39c5cf", ansi.White: "#b1bac4",
	ansi.BrightBlack: "#6e7681", ansi.BrightRed: "#ffa198", ansi.BrightGreen: "#56d364", ansi.BrightYellow: "#e3b341",
	ansi.BrightBlue: "#79c0ff", ansi.BrightMagenta: "#d2a8ff", ansi.BrightCyan: "#56d4dd", ansi.BrightWhite: "#ffffff",
}

// svg draws lines of cells. What they say stands in it as text once more, for
// those who cannot see it.
func svg(lines [][]uv.Cell) string {
	width := columns*cellWidth + 2*margin
	height := float64(titleBar + len(lines)*lineHeight + margin)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" role="img" aria-labelledby="title text">`+"\n", width, height, width)
	b.WriteString("<title id=\"title\">Dragoman in a terminal</title>\n<desc id=\"text\">" + html.EscapeString(text(lines)) + "</desc>\n")
	b.WriteString("<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n")
	for i, fill := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, "<circle cx=\"%d\" cy=\"18\" r=\"6\" fill=\"%s\"/>\n", margin+i*20, fill)
	}
	b.WriteString("<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace\" font-size=\"14\" fill=\"#e6edf3\">\n")
	for i, line := range lines {
		y := titleBar + i*lineHeight + 14
		column := 0
		for _, r := range runs(line) {
			if strings.TrimSpace(r.text) != "" {
				fmt.Fprintf(&b, `<text xml:space="preserve" x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
					margin+float64(column)*cellWidth, y, float64(r.width)*cellWidth, attributes(r.style), html.EscapeString(r.text))
			}
			column += r.width
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// text is what lines say.
func text(lines [][]uv.Cell) string {
	var b strings.Builder
	for _, line := range lines {
		var l strings.Builder
		for _, c := range line {
			l.WriteString(c.Content)
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// A stretch is neighbouring cells of one style and one width.
type stretch struct {
	text  string
	width int // in columns
	style uv.Style
}

// runs joins cells. Blanks at the end of a stretch are cut off, so that stretches
// begin where something stands.
func runs(line []uv.Cell) (joined []stretch) {
	for i, c := range line {
		last := len(joined) - 1
		if i > 0 && joined[last].style.Equal(&c.Style) && line[i-1].Width == c.Width {
			joined[last].text += c.Content
			joined[last].width += c.Width
			continue
		}
		joined = append(joined, stretch{c.Content, c.Width, c.Style})
	}
	return trimmed(joined)
}

// trimmed moves blanks at the ends of stretches into stretches of their own.
func trimmed(joined []stretch) (out []stretch) {
	for _, r := range joined {
		inner := strings.TrimLeft(r.text, " ")
		before := len(r.text) - len(inner)
		core := strings.TrimRight(inner, " ")
		after := len(inner) - len(core)
		if before > 0 {
			out = append(out, stretch{width: before})
		}
		if core != "" {
			out = append(out, stretch{core, r.width - before - after, r.style})
			if after > 0 {
				out = append(out, stretch{width: after})
			}
		}
	}
	return out
}

// attributes are what a style is in SVG.
func attributes(s uv.Style) string {
	var b strings.Builder
	if fill := hex(s.Fg); fill != "" {
		fmt.Fprintf(&b, ` fill="%s"`, fill)
	}
	if s.Attrs&uv.AttrBold != 0 {
		b.WriteString(` font-weight="bold"`)
	}
	if s.Attrs&uv.AttrFaint != 0 {
		b.WriteString(` opacity="0.6"`)
	}
	if s.Attrs&uv.AttrItalic != 0 {
		b.WriteString(` font-style="italic"`)
	}
	return b.String()
}

// hex is a colour as SVG writes it; nothing for the terminal's own.
func hex(c color.Color) string {
	switch c := c.(type) {
	case nil:
		return ""
	case ansi.BasicColor:
		return palette[c]
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
