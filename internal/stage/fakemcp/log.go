package fakemcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// Pseudo methods of log entries that are not messages of the client.
const (
	// Started: a process began; PID says which.
	Started = "(started)"
	// GrandchildStarted: a child of the process began; PID says which.
	GrandchildStarted = "(grandchild)"
	// StdinClosed: the client closed its end.
	StdinClosed = "(stdin closed)"
	// Signalled: a Stubborn process was asked to end, and did not.
	Signalled = "(signalled)"
	// Ran: a tool was run; Tool says which.
	Ran = "(ran)"
	// Disconnected: an HTTP client went away before its answer; ID says which
	// request. In the modern era that is a cancellation.
	Disconnected = "(disconnected)"
	// Response: the client answered a request of the server.
	Response = "(response)"
)

// An Entry is one thing that happened to a server, in the order of happening.
type Entry struct {
	// Method is the JSON-RPC method of a message, "GET" or "DELETE" for those
	// HTTP requests, or one of the pseudo methods.
	Method string
	// ID is the request's id; nil for notifications.
	ID json.RawMessage `json:",omitempty"`
	// Message is the whole message, byte for byte.
	Message string `json:",omitempty"`
	// Header is the HTTP header that the message came with.
	Header http.Header `json:",omitempty"`
	// Tool is the tool that Ran.
	Tool string `json:",omitempty"`
	// PID is the process that Started.
	PID int `json:",omitempty"`
}

// A Log is what a server received and did. It is safe for concurrent use.
type Log struct {
	keep int
	file *os.File

	mu      sync.Mutex
	entries []Entry
	counts  map[string]int // by method, and by "(ran) " + tool
	changed chan struct{}  // closed when something is added; nil when nobody waits
}

func newLog(cfg *Config) (*Log, error) {
	l := &Log{keep: cfg.Keep, counts: make(map[string]int)}
	if l.keep == 0 {
		l.keep = 10_000
	}
	if cfg.LogFile != "" {
		file, err := os.OpenFile(cfg.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the log of a fake server: %w", err)
		}
		l.file = file
	}
	return l, nil
}

// add takes e over; the message behind it may be in a buffer that is used again.
func (l *Log) add(e Entry, message []byte) {
	if l.keep > 0 || l.file != nil {
		e.ID = bytes.Clone(e.ID)
		e.Message = string(message)
		e.Header = e.Header.Clone()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[e.Method]++
	if e.Tool != "" {
		l.counts[ranKey(e.Tool)]++
	}
	if l.keep > 0 {
		if len(l.entries) >= 2*l.keep {
			l.entries = append(l.entries[:0], l.entries[l.keep:]...)
		}
		l.entries = append(l.entries, e)
	}
	if l.file != nil {
		if line, err := json.Marshal(e); err == nil {
			l.file.Write(append(line, '\n'))
		}
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func ranKey(tool string) string { return Ran + " " + tool }

// Entries returns what is kept of the log.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries[max(0, len(l.entries)-max(0, l.keep)):])
}

// Received returns the kept entries of one method.
func (l *Log) Received(method string) []Entry { return filter(l.Entries(), method) }

// Count is how many entries of that method there were.
func (l *Log) Count(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[method]
}

// Executions is how often the tool of that name ran.
func (l *Log) Executions(tool string) int { return l.Count(ranKey(tool)) }

// Wait returns when there were at least n entries of that method, or with an
// error when ctx ends before.
func (l *Log) Wait(ctx context.Context, method string, n int) error {
	for {
		l.mu.Lock()
		have := l.counts[method]
		if have >= n {
			l.mu.Unlock()
			return nil
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d × %s (have %d): %w", n, method, have, ctx.Err())
		}
	}
}

// ReadLog reads the log that a server wrote to Config.LogFile so far. A file
// that does not exist yet is an empty log, and a last line that is still being
// written is left out.
func ReadLog(path string) ([]Entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the log of a fake server: %w", err)
	}
	var entries []Entry
	for {
		line, rest, found := bytes.Cut(data, []byte("\n"))
		if !found {
			return entries, nil
		}
		data = rest
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read the log of a fake server: %w", err)
		}
		entries = append(entries, e)
	}
}

// PIDs returns the processes that the entries tell of.
func PIDs(entries []Entry) []int {
	var pids []int
	for _, e := range entries {
		if e.PID != 0 {
			pids = append(pids, e.PID)
		}
	}
	return pids
}

// WaitGone returns when none of the processes is [Alive], or with an error when
// ctx ends before. It looks every few milliseconds: no system tells one about
// processes that are not one's own children.
func WaitGone(ctx context.Context, pids ...int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		alive := slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !Alive(pid) })
		if len(alive) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for processes %v to end: %w", alive, ctx.Err())
		}
	}
}

func filter(entries []Entry, method string) []Entry {
	var some []Entry
	for _, e := range entries {
		if e.Method == method {
			some = append(some, e)
		}
	}
	return some
}
