package result

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
)

// pageOverhead is what stands around items in the message of a page: the
// envelope or, in the Text profile, heading and fence, and the page's own
// members.
const pageOverhead = 480

// pageDepth is more than the levels that a page puts around its items.
const pageDepth = 4

// A page is the answer of read_more in the making.
type page struct {
	*request
	pointer []byte // from the root of the message
	unit    Unit
	room    int // characters for items and cuts
	most    int // units
	total   int

	count int
	items []byte
	cuts  []cut
}

// read makes the page of the value that d is.
func (p *page) read(d *doc) (*page, *dragoman.Problem) {
	n := d.root
	own := map[byte]Unit{'[': Items, '{': Members, '"': Characters}[n.kind]
	if own == "" || own != Characters && !n.pageable(p.pointer) {
		own = JSONText
	}
	p.unit = p.Unit
	if p.unit == "" {
		p.unit = own
	}
	switch {
	case p.unit == JSONText:
		return p.jsonText(d)
	case p.unit == Lines && n.kind == '"':
		return p.lines(d)
	case p.unit == own && own == Characters:
		return p.characters(d.b[n.start+1:n.end-1], n.count)
	case p.unit == own:
		return p.elements(d)
	}
	return nil, badArgument(fmt.Sprintf("This value has no %s.", visible(string(p.unit), 20)),
		dragoman.Field{Path: "/unit", Expected: expectedUnits(own)})
}

func expectedUnits(own Unit) string {
	switch own {
	case Characters:
		return "'characters', 'lines' or 'json'"
	case JSONText:
		return "'json'"
	}
	return "'" + string(own) + "' or 'json'"
}

// begin checks the offset against the total.
func (p *page) begin(total int) *dragoman.Problem {
	p.total = total
	if p.Offset > total {
		return badArgument(fmt.Sprintf("The offset is beyond the end: there are %d %s.", total, p.unit),
			dragoman.Field{Path: "/offset", Expected: fmt.Sprintf("at most %d", total)})
	}
	return nil
}

// elements reads items or members.
func (p *page) elements(d *doc) (*page, *dragoman.Problem) {
	n := d.root
	if problem := p.begin(n.count); problem != nil {
		return nil, problem
	}
	c := &cutter{doc: d, ptr: p.pointer, spread: -1}
	left := p.room
	c.out = append(c.out, n.kind)
	cur := d.cursor(n)
	for k := range n.count {
		ch, _ := cur.next()
		if k < p.Offset {
			continue
		}
		if p.count == p.most {
			break
		}
		mark := len(c.out)
		if p.count > 0 {
			c.out = append(c.out, ',')
		}
		if ch.name != nil {
			c.out = append(appendClean(c.out, ch.name), ':')
		}
		width := utf8.RuneCount(c.out[mark:])
		if p.count > 0 && !ch.fits(pageDepth, left-width) {
			c.out = c.out[:mark]
			break
		}
		back := c.push(k, ch)
		took, ok := c.put(ch.node, pageDepth, left-width)
		c.ptr = c.ptr[:back]
		if !ok {
			c.out = c.out[:mark]
			break
		}
		left -= took + width
		p.count++
	}
	p.items = append(c.out, n.kind+2)
	p.cuts = c.cuts
	return p, nil
}

// characters reads the inside of a string literal.
func (p *page) characters(inside []byte, total int) (*page, *dragoman.Problem) {
	if problem := p.begin(total); problem != nil {
		return nil, problem
	}
	from := offsetOf(inside, p.Offset)
	inside = inside[from:]
	size, _, count := prefix(inside, p.room)
	if count > p.most {
		size, count = offsetOf(inside, p.most), p.most
	}
	p.count = count
	p.items = append(p.items, '"')
	p.items = appendInside(p.items, inside[:size])
	p.items = append(p.items, '"')
	return p, nil
}

// offsetOf returns where the n-th character inside a literal begins.
func offsetOf(b []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		if class[b[i]] == 0 {
			i++
			continue
		}
		size, _, _ := unit(b[i:])
		i += size
	}
	return i
}

// jsonText reads any value as the characters of its JSON text.
func (p *page) jsonText(d *doc) (*page, *dragoman.Problem) {
	if problem := p.begin(d.root.chars); problem != nil {
		return nil, problem
	}
	text := d.b[d.root.start:d.root.end]
	if !d.root.plain {
		text = appendClean(make([]byte, 0, len(text)), text)
	}
	text = text[runes(text, p.Offset):]
	text = text[:runes(text, min(p.most, p.room))]
	literal := appendQuoted(nil, string(text))
	size, _, count := prefix(literal[1:len(literal)-1], p.room)
	p.count = count
	p.items = append(literal[:1+size], '"')
	return p, nil
}

// runes returns where the first n characters of b end.
func runes(b []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// lines reads a string by lines.
func (p *page) lines(d *doc) (*page, *dragoman.Problem) {
	text := string(appendDecoded(nil, d.b[d.root.start:d.root.end]))
	if problem := p.begin(strings.Count(text, "\n") + 1); problem != nil {
		return nil, problem
	}
	left, start, k := p.room, 0, 0
	p.items = append(p.items, '[')
	for line := range strings.SplitSeq(text, "\n") {
		if k < p.Offset {
			start += utf8.RuneCountInString(line) + 1
			k++
			continue
		}
		if p.count == p.most {
			break
		}
		mark := len(p.items)
		if p.count > 0 {
			p.items = append(p.items, ',')
		}
		p.items = appendQuoted(p.items, line)
		width := utf8.RuneCount(p.items[mark:])
		if width > left {
			p.items = p.items[:mark]
			if p.count == 0 {
				return nil, badArgument(
					fmt.Sprintf("Line %d is too long for one answer: it has %d characters and begins at character %d. Read it with unit characters.", p.Offset, utf8.RuneCountInString(line), start),
					dragoman.Field{Path: "/unit", Expected: fmt.Sprintf("'characters', with offset %d", start)})
			}
			break
		}
		left -= width
		p.count++
	}
	p.items = append(p.items, ']')
	return p, nil
}

// bytes reads binary data.
func (p *page) bytes(bin binary) (*page, *dragoman.Problem) {
	p.unit = Bytes
	if p.Unit != "" && p.Unit != Bytes || p.Pointer != "" {
		return nil, badArgument("This handle names binary data: it is read in bytes and has no parts.",
			dragoman.Field{Path: "/unit", Expected: "'bytes', and no pointer"})
	}
	if problem := p.begin(bin.size); problem != nil {
		return nil, problem
	}
	p.count = min(bin.size-p.Offset, p.most, (p.room-2)/4*3)
	from, skip := p.Offset/3*4, p.Offset%3
	end := min(len(bin.base64), from+(skip+p.count+2)/3*4)
	raw := make([]byte, base64.StdEncoding.DecodedLen(end-from))
	n, err := base64.StdEncoding.Decode(raw, bin.base64[from:end])
	if err != nil || n < skip+p.count {
		return nil, badHandle()
	}
	p.items = append(p.items, '"')
	p.items = base64.StdEncoding.AppendEncode(p.items, raw[skip:skip+p.count])
	p.items = append(p.items, '"')
	return p, nil
}

// result writes the page as an MCP result.
func (p *page) result() dragoman.Result {
	next := p.Offset + p.count
	out := append([]byte(nil), `{"content":[],"structuredContent":{"total":`...)
	number := func(name string, n int) {
		out = append(out, name...)
		out = strconv.AppendInt(out, int64(n), 10)
	}
	out = strconv.AppendInt(out, int64(p.total), 10)
	number(`,"count":`, p.count)
	number(`,"offset":`, p.Offset)
	out = append(out, `,"unit":"`...)
	out = append(out, p.unit...)
	out = append(out, `","items":`...)
	out = append(out, p.items...)
	if next < p.total {
		out = append(out, `,"has_more":true`...)
		number(`,"next_offset":`, next)
	} else {
		out = append(out, `,"has_more":false,"next_offset":null`...)
	}
	if len(p.cuts) > 0 {
		out = append(out, `,"cut":[`...)
		out = appendCuts(out, p.cuts)
		out = append(out, ']')
	}
	return dragoman.Result{Content: append(out, "}}"...)}
}
