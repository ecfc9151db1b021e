package terminal

import (
	"fmt"
	"regexp"
	"strings"
)

// An answer is the text of a model as it arrives. On a terminal its Markdown is
// rendered, a block at a time, when the block is whole; elsewhere the text goes out
// as it came.
type answer struct {
	out   *Screen
	trace *trace
	rest  string // of the text, that is not out yet
	open  bool   // the last line has no end

	between bool // a blank line is due before the next block
}

func newAnswer(out *Screen, t *trace) *answer { return &answer{out: out, trace: t} }

// say takes the next piece of the text.
func (a *answer) say(piece string) {
	if !a.out.Live {
		a.trace.pause()
		fmt.Fprint(a.out, Visible(piece))
		a.open = !strings.HasSuffix(piece, "\n")
		return
	}
	a.rest += piece
	// In the middle of a line no block can end.
	for strings.Contains(piece, "\n") || len(a.rest)-strings.LastIndexByte(a.rest, '\n') < 16+len(piece) {
		block, rest, whole := cutBlock(a.rest)
		if !whole {
			break
		}
		a.rest = rest
		a.print(block)
	}
	lines := strings.Split(strings.TrimSpace(a.rest), "\n")
	a.trace.status(OneLine(lines[len(lines)-1], 10_000))
}

// flush writes what is left: somebody is asked something, or the text has ended.
func (a *answer) flush() {
	if a.out.Live {
		a.print(a.rest)
		a.rest = ""
	}
}

// end ends the text with the end of a line.
func (a *answer) end() {
	a.flush()
	if a.open {
		fmt.Fprintln(a.out)
	}
	a.open = false
}

func (a *answer) print(block string) {
	if strings.TrimSpace(block) == "" {
		return
	}
	a.trace.room()
	if a.between {
		fmt.Fprintln(a.out)
	}
	a.between = true
	fmt.Fprint(a.out, markdown(Visible(block), a.out.Width(), a.out.Colours))
}

var (
	fence = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	// A list goes on over blank lines where the next line is one of it.
	listLine = regexp.MustCompile(`^([ \t]|[-*+] |[0-9]{1,9}[.)] )`)
)

// cutBlock takes the first whole block off a text: what stands before a blank line
// that is neither within a fence nor within a list. Whether a list goes on is known
// only when the line behind the blank one has begun.
func cutBlock(text string) (block, rest string, whole bool) {
	inFence, begun, list, blank, at := "", false, false, false, 0
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		ended := len(bare) < len(line)
		switch m := fence.FindStringSubmatch(line); {
		case inFence != "":
			if ended && strings.HasPrefix(strings.TrimSpace(bare), inFence) && strings.Trim(strings.TrimSpace(bare), inFence[:1]) == "" {
				inFence = ""
			}
		case strings.TrimSpace(bare) == "":
			blank = blank || begun && ended
		case blank && !list:
			return text[:at], text[at:], true
		case blank && !listLine.MatchString(bare):
			if !ended && len(bare) < 11 && mayBeList(bare) {
				return "", text, false
			}
			return text[:at], text[at:], true
		case m != nil:
			inFence, begun, blank = m[1], true, false
		default:
			list = list || !begun && listLine.MatchString(bare) && !strings.HasPrefix(bare, " ")
			begun, blank = true, false
		}
		at += len(line)
	}
	return "", text, false
}

// mayBeList reports whether a line that has just begun may become one of a list.
func mayBeList(line string) bool { return strings.Trim(line, "0123456789.)-*+") == "" }
