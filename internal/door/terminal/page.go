package terminal

import (
	"cmp"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A page renders Markdown for a terminal: goldmark reads it, and what it means is
// written in lines that fit. Where there are no colours, the marks stay that say
// what is a heading, or strong, or code.
type page struct {
	source []byte
	screen *Screen // its styles
}

var parser = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// narrowest is the width that text keeps, however deep it is nested.
const narrowest = 16

// markdown renders a block for a screen of some width. The text is [Visible].
func markdown(source string, width int, colours bool) string {
	p := &page{[]byte(source), &Screen{Colours: colours}}
	lines := p.blocks(parser.Parse(text.NewReader(p.source)), min(width, 120), true)
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

// blocks renders the children of a block, with blank lines between them where they
// are loose.
func (p *page) blocks(parent ast.Node, width int, loose bool) (lines []string) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() && loose {
			lines = append(lines, "")
		}
		lines = append(lines, p.block(n, max(width, narrowest))...)
	}
	return lines
}

func (p *page) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return p.heading(n, width)
	case *ast.ThematicBreak:
		return []string{p.screen.Faint(strings.Repeat("─", min(width, 40)))}
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		return p.code(n)
	case *ast.HTMLBlock:
		return p.raw(n)
	case *ast.Blockquote:
		return prefixed(p.blocks(n, width-2, true), p.screen.Faint("│")+" ", p.screen.Faint("│")+" ")
	case *ast.List:
		return p.list(n, width)
	case *tables.Table:
		return p.table(n, width)
	}
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
		return p.blocks(n, width, true)
	}
	return wrapped(p.inline(n, ""), width) // a paragraph, or the text of a list's item
}

func (p *page) heading(n *ast.Heading, width int) []string {
	code, marks := bold, ""
	if n.Level == 1 {
		code += ";4" // underlined
	}
	if !p.screen.Colours {
		marks = strings.Repeat("#", n.Level) + " "
	}
	return wrapped(marks+p.inline(n, code), width)
}

// code renders a block of code: as it is, set off, and never broken, so that it can
// be copied.
func (p *page) code(n ast.Node) []string {
	lines := p.raw(n)
	for i, line := range lines {
		lines[i] = p.screen.style(cyan, line)
	}
	return prefixed(lines, "  ", "  ")
}

// raw returns the lines of a block as they stand.
func (p *page) raw(n ast.Node) (lines []string) {
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		lines = append(lines, strings.ReplaceAll(strings.TrimRight(string(line.Value(p.source)), "\r\n"), "\t", "    "))
	}
	if html, ok := n.(*ast.HTMLBlock); ok && html.HasClosure() {
		lines = append(lines, strings.TrimRight(string(html.ClosureLine.Value(p.source)), "\r\n"))
	}
	return lines
}

func (p *page) list(n *ast.List, width int) (lines []string) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if !n.IsTight && item != n.FirstChild() {
			lines = append(lines, "")
		}
		bullet := "• "
		if n.IsOrdered() {
			bullet = fmt.Sprintf("%d. ", number)
			number++
		}
		indent := strings.Repeat(" ", ansi.StringWidth(bullet))
		inside := p.blocks(item, width-len(indent), !n.IsTight)
		if len(inside) == 0 {
			inside = []string{""}
		}
		lines = append(lines, prefixed(inside, bullet, indent)...)
	}
	return lines
}

// table renders a table, with cells of several lines where it would be too wide.
func (p *page) table(n *tables.Table, width int) []string {
	t := table.New().BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).Wrap(true)
	columns := 0
	var rows [][]string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		code := ""
		if _, header := row.(*tables.TableHeader); header {
			code = bold
		}
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, p.inline(cell, code))
		}
		columns = max(columns, len(cells))
		rows = append(rows, cells)
	}
	if columns == 0 {
		return nil
	}
	natural := 3 * (columns - 1)
	for i := range columns {
		widest := 0
		for _, cells := range rows {
			if i < len(cells) {
				widest = max(widest, ansi.StringWidth(cells[i]))
				cells[i] = " " + cells[i] + " "
			}
		}
		natural += widest
	}
	if t.Headers(rows[0]...).Rows(rows[1:]...); natural > width-2 {
		t.Width(width)
	}
	return strings.Split(strings.Trim(t.String(), "\n"), "\n")
}

// prefixed puts one text before the first line and another before the rest.
func prefixed(lines []string, first, rest string) []string {
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else {
			lines[i] = rest + lines[i]
		}
	}
	return lines
}

func wrapped(s string, width int) []string { return strings.Split(ansi.Wrap(s, width, ""), "\n") }

// inline renders what is within a block, in a style.
func (p *page) inline(parent ast.Node, code string) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(p.words(p.unescaped(n), code))
			if n.HardLineBreak() {
				b.WriteByte('\n')
			} else if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.WriteString(p.words(Visible(string(n.Value)), code))
		case *ast.CodeSpan:
			b.WriteString(p.marked(n, "`", cyan, code))
		case *ast.Emphasis:
			if n.Level == 1 {
				b.WriteString(p.marked(n, "*", italic, code))
			} else {
				b.WriteString(p.marked(n, "**", bold, code))
			}
		case *tables.Strikethrough:
			b.WriteString(p.marked(n, "~~", struck, code))
		case *tables.TaskCheckBox:
			box := map[bool]string{true: "[x] ", false: "[ ] "}
			b.WriteString(box[n.IsChecked])
		case *ast.AutoLink:
			b.WriteString(p.words(string(n.URL(p.source)), joined(code, underlined)))
		case *ast.Link:
			b.WriteString(p.link(p.inline(n, joined(code, underlined)), string(n.Destination)))
		case *ast.Image:
			b.WriteString(p.link(cmp.Or(p.inline(n, code), "image"), string(n.Destination)))
		case *ast.RawHTML:
			b.WriteString(p.words(string(n.Segments.Value(p.source)), code))
		default:
			b.WriteString(p.inline(n, code))
		}
	}
	return b.String()
}

// Styles that only Markdown has.
const (
	italic     = "3"
	underlined = "4"
	struck     = "9"
)

// joined is both of two styles.
func joined(a, b string) string { return strings.Trim(a+";"+b, ";") }

// marked renders what stands between marks: in a style where there are any.
func (p *page) marked(n ast.Node, mark, style, code string) string {
	if p.screen.Colours {
		return p.inline(n, joined(code, style))
	}
	return mark + p.inline(n, code) + mark
}

// link shows where a link goes, unless its text says so.
func (p *page) link(label, to string) string {
	to = Visible(to)
	if to == "" || ansi.Strip(label) == to {
		return label
	}
	return label + " (" + to + ")"
}

// unescaped is a text with its entities and backslashes read, and nothing in it
// that a terminal would obey.
func (p *page) unescaped(n *ast.Text) string {
	b := n.Segment.Value(p.source)
	if !n.IsRaw() && n.Parent().Kind() != ast.KindCodeSpan {
		b = util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(b)))
	}
	return Visible(strings.ReplaceAll(string(b), "\t", " "))
}

// words styles a text word by word: lines are broken between words, and a style
// that went on over the end of a line would colour what is put before the next.
func (p *page) words(s, code string) string {
	if code == "" || !p.screen.Colours {
		return s
	}
	words := strings.Split(s, " ")
	for i, word := range words {
		words[i] = p.screen.style(code, word)
	}
	return strings.Join(words, " ")
}
