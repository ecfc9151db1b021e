package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// A wire is one way to a server that is watched. The tolerant client of package
// mcp speaks over it, and beside it single messages can be sent that no client
// would send; their answers are kept from the client.
type wire interface {
	// exchange sends one message, which need not be a valid one, and waits for
	// the answer with that id; an empty id waits for one without. Headers are for
	// HTTP.
	exchange(ctx context.Context, m raw) Answer
	// gone is closed when the server is.
	gone() <-chan struct{}
	// end closes the wire.
	end()
}

// A raw is one message to send.
type raw struct {
	body   []byte
	id     string // as it stands in body; empty for none
	method string
	header map[string]string // instead of, or beside, the usual ones; empty value: leave out
	silent bool              // a notification: no answer is waited for
	wrote  chan<- struct{}   // is closed when it was sent over lines; may be nil
	words  string            // what it is, in words; empty: made of the method
}

// Limits of what is kept of a server's words.
const (
	maxMessage = 16 << 20
	maxStray   = 20
	maxText    = 64 << 10
)

var errTooLarge = errors.New("the message is over 16 MiB")

// A record is what was seen on all wires to one server. Wires write to it from
// goroutines of their own, some of which outlive the audit by a moment: what comes
// after it was sealed is dropped, so that rules read what nobody changes.
type record struct {
	mu     sync.Mutex
	live   *Live
	mask   secret.Mask
	sealed bool
	last   string // what was asked last, in words
	bytes  int64
	limit  int64
	stop   func() // ends everything once there is too much
	busy   bool   // the machine has more to do than it can
}

// write changes what was seen, unless it was sealed.
func (r *record) write(change func(*Live)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.sealed {
		change(r.live)
	}
}

func (r *record) seal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sealed = true
}

// count takes bytes from the budget.
func (r *record) count(n int) {
	r.write(func(l *Live) {
		r.bytes += int64(n)
		if r.bytes > r.limit && l.Flooded == "" {
			l.Flooded = "more than " + megabytes(r.limit) + " in all"
			r.stop()
		}
	})
}

func megabytes(n int64) string { return count(int(n>>20), "megabyte") }

func (r *record) flooded(what string) {
	r.write(func(l *Live) {
		if l.Flooded == "" {
			l.Flooded = what
		}
	})
}

func (r *record) stray(line []byte) {
	r.write(func(l *Live) {
		if len(l.Stray) < maxStray {
			l.Stray = append(l.Stray, quote(string(line)))
		}
	})
}

func (r *record) odd(what string) {
	r.write(func(l *Live) {
		if len(l.Odd) < maxStray {
			l.Odd = append(l.Odd, what)
		}
	})
}

// sent notes what goes out: for the log, and in words for what happens next.
func (r *record) sent(line, words string) {
	r.write(func(l *Live) {
		l.Log = append(l.Log, line)
		r.last = words
	})
}

// stderr and logs append to the bounded texts of that name.
func (r *record) stderr(line string) {
	r.write(func(l *Live) {
		l.StderrLines++
		bounded(&l.Stderr, r.mask.Hide(line))
	})
}

// progress notes what is wrong with a notification of progress; empty for nothing.
func (r *record) progress(fault string) {
	r.write(func(l *Live) {
		if fault != "" && len(l.Progress) < maxStray {
			l.Progress = append(l.Progress, fault)
		}
	})
}
func (r *record) logs(line string) { r.write(func(l *Live) { bounded(&l.Logs, r.mask.Hide(line)) }) }

func bounded(to *string, line string) {
	if room := maxText - len(*to); room > 0 {
		line += "\n"
		*to += line[:min(len(line), room)]
	}
}

// died notes that the server is gone after what was asked last, unless it is known
// already why.
func (r *record) died() {
	r.write(func(l *Live) {
		if l.Rough.Died == "" && l.Flooded == "" {
			l.Rough = Rough{Tried: true, Died: r.last, Why: "the server was gone", Gone: true}
		}
	})
}

// message notes what a message of the server shows beside being an answer.
func (r *record) message(m rpc) {
	if fault := m.fault(); fault != "" {
		r.write(func(l *Live) {
			if len(l.Malformed) < maxStray {
				l.Malformed = append(l.Malformed, fault)
			}
		})
	}
	switch {
	case m.Method == "notifications/message":
		r.logs(string(m.Params))
	case m.Method == "notifications/tools/list_changed":
		r.write(func(l *Live) { l.Announced = true })
	case m.Method == "" && m.Error != nil:
		r.write(func(l *Live) { l.Errors[m.Error.code()] = m.Error.Message })
	}
}

// waiting are those who wait for the answers to raw messages, by id.
type waiting struct {
	mu       sync.Mutex
	byID     map[string]chan rpc
	late     map[string]bool   // ids for whose answer nobody waits any more
	progress map[string]*steps // by raw token
	asked    map[string]bool   // ids of the client's own requests; nil when they cannot be told
}

func newWaiting() *waiting {
	return &waiting{byID: map[string]chan rpc{}, late: map[string]bool{}, progress: map[string]*steps{}, asked: map[string]bool{}}
}

func (w *waiting) add(id string) <-chan rpc {
	c := make(chan rpc, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id] = c
	return c
}

func (w *waiting) drop(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byID, id)
}

// expect takes in what the client writes: the ids of its requests.
func (w *waiting) expect(text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked == nil {
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	switch err := json.Unmarshal(text, &m); {
	case err != nil && len(bytes.TrimSpace(text)) > 0:
		w.asked = nil // it does not write message by message
	case m.Method != "" && m.ID != nil:
		w.asked[string(m.ID)] = true
	}
}

// stranger reports whether a message is an answer to nothing that was asked.
func (w *waiting) stranger(m rpc) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := string(m.ID)
	return w.asked != nil && m.Method == "" && id != "" && id != "null" && !w.asked[id]
}

// take hands a message to who waits for it, and reports whether it was for us:
// an answer to a raw message, the first one or another, or its progress.
func (w *waiting) take(m rpc) (ours, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Method == "notifications/progress" {
		return bytes.HasPrefix(tokenOf(m), []byte(`"lint-`)), false
	}
	if m.Method != "" {
		return false, false
	}
	id := string(m.ID)
	if id == "null" {
		id = ""
	}
	if c := w.byID[id]; c != nil {
		delete(w.byID, id)
		c <- m // has room for one
		return true, false
	}
	if w.late[id] {
		delete(w.late, id)
		return true, false
	}
	ours = strings.HasPrefix(id, `"lint-`)
	return ours, ours
}

// steps are the notifications of progress of one request.
type steps struct {
	n    int
	last float64
	done bool
}

// stepsOf are those of a token, which is the id of its request. The lock is held.
func (w *waiting) stepsOf(token string) *steps {
	s := w.progress[token]
	if s == nil {
		s = &steps{}
		w.progress[token] = s
	}
	return s
}

// tokenOf returns the raw token of a notification of progress; nil where it has none.
func tokenOf(m rpc) json.RawMessage {
	var p struct {
		Token json.RawMessage `json:"progressToken"`
	}
	_ = json.Unmarshal(m.Params, &p) // without a token it is nobody's
	return p.Token
}

// progressed takes in a notification of progress, or the end of a request, and says
// what is wrong with it; empty for nothing. Progress MUST rise, and MUST stop at the end
// (MCP, Basic: Progress).
func (w *waiting) progressed(m rpc) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Method == "" && m.ID != nil {
		w.stepsOf(string(m.ID)).done = true
		return ""
	}
	token := tokenOf(m)
	if m.Method != "notifications/progress" || !bytes.HasPrefix(token, []byte(`"lint-`)) {
		return ""
	}
	var p struct{ Progress float64 }
	_ = json.Unmarshal(m.Params, &p) // what is no number stays 0
	s := w.stepsOf(string(token))
	s.n++
	before := s.last
	s.last = p.Progress
	switch {
	case s.done:
		return "progress came after the answer"
	case s.n > 1 && p.Progress <= before:
		return fmt.Sprintf("progress went from %v to %v", before, p.Progress)
	}
	return ""
}

// wait waits for an answer.
func (w *waiting) wait(ctx context.Context, id string, answers <-chan rpc, gone <-chan struct{}, since time.Time) Answer {
	defer w.drop(id)
	var a Answer
	select {
	case m := <-answers:
		a = m.answer()
	case <-ctx.Done():
		select {
		case m := <-answers:
			a = m.answer()
		default:
			a.Err = errSilent
			w.mu.Lock()
			w.late[id] = w.byID[id] != nil
			w.mu.Unlock()
		}
	case <-gone:
		select {
		case m := <-answers:
			a = m.answer()
		default:
			a.Err = errGone
		}
	}
	a.Took = time.Since(since)
	w.mu.Lock()
	a.Progress = w.stepsOf(id).n
	w.mu.Unlock()
	return a
}

var (
	errSilent = errors.New("nothing in time")
	errGone   = errors.New("the server is gone")
)
