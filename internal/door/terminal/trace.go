package terminal

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// trace prints what happens in a conversation while it happens: the model
// decides, we execute, the model summarises.
type trace struct {
	chat    *Chat
	started time.Time

	mu      sync.Mutex
	bottom  live
	text    bool // a line of the answer has begun and has no end
	summary time.Duration
	calls   int
}

func newTrace(c *Chat) *trace {
	t := &trace{chat: c, started: time.Now(), bottom: live{screen: c.Trace}}
	t.waiting("decide", c.Model)
	return t
}

// observe is told each event.
func (t *trace) observe(e dragoman.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.Phase == dragoman.Decide:
		names := make([]string, len(e.Calls))
		for i, c := range e.Calls {
			names[i] = describe(&c)
		}
		t.line("decide", e.Duration, strings.Join(names, ", "))
	case e.Phase == dragoman.Summarise:
		t.summary = e.Duration
	case e.Result == nil:
		t.waiting("execute", describe(e.Call))
	default:
		t.calls++
		t.line("execute", e.Duration, describe(e.Call)+" "+t.outcome(e.Result))
		t.waiting("decide", t.chat.Model)
	}
}

// describe says what a call is, in short.
func describe(c *dragoman.Call) string {
	if c.Tool == nil {
		return OneLine(c.Name, 60) + " (no such tool)"
	}
	args := string(c.Arguments)
	if args == "{}" {
		args = ""
	}
	return OneLine(c.Tool.Name+" "+args, 100)
}

func (t *trace) outcome(r *dragoman.Result) string {
	s := t.chat.Trace
	switch {
	case r.Asks != nil:
		return s.Warn("? nobody is there to answer its question")
	case r.Problem != nil:
		return s.Bad("✗ " + OneLine(r.Problem.Error(), 160))
	case r.Failed:
		return s.Bad("✗ the tool reports an error")
	}
	return s.Good("✓") + s.Faint(fmt.Sprintf(" %d bytes", len(r.Content)))
}

// line prints one step.
func (t *trace) line(phase string, took time.Duration, what string) {
	if t.chat.Quiet {
		return
	}
	s := t.chat.Trace
	t.bottom.clear()
	if t.text {
		s.Printf("\n")
		t.text = false
	}
	s.Printf("%s", s.Fold(fmt.Sprintf("%s %s %s\n", s.style(cyan, fmt.Sprintf("%-9s", phase)), s.Faint(fmt.Sprintf("%7s", short(took))), what)))
}

// waiting shows a step that has begun, on a screen where it can be replaced.
func (t *trace) waiting(phase, what string) {
	if s := t.chat.Trace; !t.chat.Quiet && !t.text {
		t.bottom.show(s.style(cyan, fmt.Sprintf("%-9s", phase)) + " " + what)
	}
}

// progress shows how a call gets on.
func (t *trace) progress(tool *dragoman.Tool, p dragoman.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting("execute", progressLine(t.chat.Trace, tool.Name, p))
}

// status shows the text of the answer that is not out yet.
func (t *trace) status(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bottom.show(t.chat.Trace.Faint(text))
}

// room makes room for whole lines on the screen.
func (t *trace) room() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bottom.clear()
}

// pause makes room for a part of the answer's text, or for a question.
func (t *trace) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bottom.clear()
	t.text = true
}

// end prints the last line, where there were results to summarise: an answer that comes
// at once needs no account.
func (t *trace) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bottom.clear()
	t.text = false
	if t.summary > 0 && t.calls > 0 {
		t.line("summarise", t.summary, t.chat.Trace.Faint(Many(t.calls, "call")+", "+short(time.Since(t.started))+" in all"))
	}
}

// short prints a duration with two or three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
}
