package session

import (
	"io"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Passed is a request to a model that goes on to its API as it is, for those who watch:
// one message, without calls of ours. A nil Passed is told nothing. It is safe for
// concurrent use.
type Passed struct {
	live  *Live
	run   *Run
	began time.Time
	asked string
	sent  int

	mu      sync.Mutex
	said    []byte
	read    int
	in, out int
}

// Passes begins to tell of such a request, with its body; nil where nobody wants to know.
func (o *Opener) Passes(who caller.Caller, door, model, request string, body []byte) *Passed {
	l := o.o.Live
	if !l.wants(who) {
		return nil
	}
	s := &Session{Caller: who, door: door, asked: model, Request: request, live: l}
	s.client.Conversation = named(body)
	run := l.begin(s)
	if run == nil {
		return nil
	}
	return &Passed{live: l, run: run, began: time.Now(), asked: asked([][]byte{body}), sent: len(body)}
}

// named is whose a request says it is, in the form in which a conversation's owner says it.
func named(body []byte) string {
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return ""
	}
	user := o.Get("user")
	if metadata, err := rawjson.ParseObject(o.Get("metadata")); err == nil && user == nil {
		user = metadata.Get("user_id")
	}
	text := func(value []byte) string {
		said, _ := rawjson.String(value)
		return string(rawjson.Quote(said))
	}
	return "\x00" + text(user) + "\x00" + text(o.Get("safety_identifier")) + "\x00\"\"\x00"
}

// Answer returns the body of the answer, of which the beginning is kept as it is read.
func (p *Passed) Answer(body io.ReadCloser) io.ReadCloser {
	if p == nil {
		return body
	}
	return &passedAnswer{body, p}
}

type passedAnswer struct {
	io.ReadCloser
	of *Passed
}

func (a *passedAnswer) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.of.read += n
	if room := maxLiveText + 1 - len(a.of.said); room > 0 {
		a.of.said = append(a.of.said, b[:min(n, room)]...)
	}
	return n, err
}

// Used says how many tokens its API counted.
func (p *Passed) Used(in, out int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in, p.out = int(in), int(out)
}

// End says that it is over: problem is what became of it, empty for nothing.
func (p *Passed) End(problem string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	s := Step{At: time.Now(), Phase: "summarise", Took: time.Since(p.began), Asked: p.asked, Said: clip.Text(string(p.said), maxLiveText), In: p.in, Out: p.out, Problem: clip.Text(problem, 400), Passed: true}
	if s.In+s.Out == 0 {
		s.In, s.Out, s.Guessed = p.sent/3, p.read/3, true
	}
	p.mu.Unlock()
	p.live.add(p.run, s)
	p.live.end(p.run, nil)
}
