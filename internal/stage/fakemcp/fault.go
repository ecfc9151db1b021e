package fakemcp

import (
	"bytes"
	"sync"
	"time"
)

// A Fault is one way to misbehave, and when.
type Fault struct {
	// Kind is the way.
	Kind Kind
	// Method restricts the fault to requests of this JSON-RPC method. Empty means
	// what Kind documents.
	Method string `json:",omitempty"`
	// Tool restricts the fault further to calls of this tool.
	Tool string `json:",omitempty"`
	// After lets that many requests through before the fault strikes.
	After int `json:",omitempty"`
	// Times is how often the fault strikes at most; zero means always.
	Times int `json:",omitempty"`

	// Status is the HTTP status of a Status fault.
	Status int `json:",omitempty"`
	// RetryAfter is sent as the Retry-After header of a Status fault, in
	// seconds; zero sends none.
	RetryAfter int `json:",omitempty"`
	// Size is the size of what HugeLine (default 64 MiB), Bomb (256 MiB
	// unpacked) and Deep (10,000 levels) send.
	Size int `json:",omitempty"`
	// Every is how long SlowLoris waits between two bytes; zero means 50 ms.
	Every time.Duration `json:",omitempty"`
	// Resumable lets a client get the answer that BrokenStream cut off, by a GET
	// with Last-Event-ID.
	Resumable bool `json:",omitempty"`
	// Code is the exit code of DieAtStart and DieOnCall.
	Code int `json:",omitempty"`
}

// A Kind is a way to misbehave.
type Kind string

// Faults of any server.
const (
	// Hang never answers a request of Method (empty: any), but goes on reading.
	// Hang on server/discover is a legacy server that ignores methods it does
	// not know.
	Hang Kind = "hang"
	// WrongID answers a call with an id that nobody used.
	WrongID Kind = "wrong_id"
	// Twice answers a call twice.
	Twice Kind = "twice"
	// Deep answers a call with structuredContent nested Size levels deep.
	Deep Kind = "deep"
	// BadUTF8 answers a call with bytes that are not UTF-8 in a text.
	BadUTF8 Kind = "bad_utf8"
	// HugeLine sends, before the answer to a call, Size bytes that are no
	// message: one line over stdio, one event or body over HTTP.
	HugeLine Kind = "huge_line"
	// DieOnCall ends the process, or breaks the connection in place of a process,
	// before a call is answered, and whatever comes after.
	DieOnCall Kind = "die_on_call"
	// ListChanged replaces the tools after a call and says so: the first tool
	// gets another description and one named "added" joins.
	ListChanged Kind = "list_changed"

	// RepeatCursor names the same next page again and again.
	RepeatCursor Kind = "repeat_cursor"
	// EndlessCursors always has one more page of one more tool.
	EndlessCursors Kind = "endless_cursors"
	// EqualNames lists a second tool with the name of the first.
	EqualNames Kind = "equal_names"
	// InvalidEntries lists, between good tools, entries that are none: a string,
	// null, no name, a name that is a number, no schema, a schema that is an
	// array, one with an unknown type.
	InvalidEntries Kind = "invalid_entries"
)

// Faults of a server on stdio.
const (
	// Garbage writes lines that are no messages before each answer: blank ones,
	// log output, broken and irrelevant JSON.
	Garbage Kind = "garbage"
	// DieAtStart ends the process with Code at once, after Config.Stderr was
	// written.
	DieAtStart Kind = "die_at_start"
	// Stubborn ignores the end of stdin, SIGINT and SIGTERM.
	Stubborn Kind = "stubborn"
	// Grandchild starts a process that inherits stdin, stdout and stderr and
	// ignores the end of stdin; with Stubborn it ignores signals, too.
	Grandchild Kind = "grandchild"
)

// Faults of a server on HTTP.
const (
	// Status answers with an HTTP status and a text that is not JSON. 401 brings
	// a WWW-Authenticate header.
	Status Kind = "status"
	// HTML answers 200 and a web page.
	HTML Kind = "html"
	// Bomb answers with a small gzip body that unpacks to Size bytes.
	Bomb Kind = "bomb"
	// SlowLoris sends a byte of the answer every Every, without end.
	SlowLoris Kind = "slow_loris"
	// DropSession forgets the client's session, so that the request gets 404.
	DropSession Kind = "drop_session"
	// BrokenStream begins an event stream, runs the call, and cuts the stream
	// before the answer.
	BrokenStream Kind = "broken_stream"
)

// defaultMethods are what an empty Fault.Method means; kinds that are not here
// strike at any request.
var defaultMethods = map[Kind]string{
	WrongID: "tools/call", Twice: "tools/call", Deep: "tools/call", BadUTF8: "tools/call",
	HugeLine: "tools/call", DieOnCall: "tools/call", ListChanged: "tools/call",
	BrokenStream: "tools/call",
	RepeatCursor: "tools/list", EndlessCursors: "tools/list",
	EqualNames: "tools/list", InvalidEntries: "tools/list",
}

// faults decides which faults strike. Nil decides nothing and costs nothing.
type faults struct {
	mu    sync.Mutex
	armed []armed
}

type armed struct {
	Fault
	seen, struck int
}

func newFaults(list []Fault) *faults {
	if len(list) == 0 {
		return nil
	}
	f := &faults{armed: make([]armed, len(list))}
	for i, fault := range list {
		if fault.Method == "" {
			fault.Method = defaultMethods[fault.Kind]
		}
		f.armed[i].Fault = fault
	}
	return f
}

// strike reports whether a fault of that kind strikes at this request, and which
// one. Each request asks at most once for each kind.
func (f *faults) strike(kind Kind, m *message) (Fault, bool) {
	if f == nil {
		return Fault{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.armed {
		a := &f.armed[i]
		if a.Kind != kind || a.Method != "" && a.Method != m.Method || a.Tool != "" && a.Tool != m.Params.Name {
			continue
		}
		a.seen++
		if a.seen <= a.After || a.Times > 0 && a.struck >= a.Times {
			continue
		}
		a.struck++
		return a.Fault, true
	}
	return Fault{}, false
}

// garbageLines are what Garbage writes to stdout: what real servers print there
// by mistake, and what a parser may trip over.
var garbageLines = []string{
	"",
	"Server listening on stdio",
	"\x1b[32mINFO\x1b[0m ready",
	`{"level":"info","msg":"a log line that is JSON"}`,
	`{"jsonrpc":"2.0","id":`,
	"null", "42", `"text"`, "[]", "{}",
}

// spoiled is a peer whose answers arrive as the faults want it.
type spoiled struct {
	peer
	id                    string
	wrong, twice, garbled bool
	huge                  int
}

// spoil wraps p in the faults that strike at the answer to m.
func (s *Server) spoil(p peer, m *message) peer {
	sp := spoiled{peer: p, id: string(m.ID)}
	_, sp.wrong = s.faults.strike(WrongID, m)
	_, sp.twice = s.faults.strike(Twice, m)
	_, sp.garbled = s.faults.strike(Garbage, m)
	if f, ok := s.faults.strike(HugeLine, m); ok {
		sp.huge = f.Size
		if sp.huge == 0 {
			sp.huge = 64 << 20
		}
	}
	return sp
}

func (p spoiled) respond(code int, answer []byte) {
	if p.garbled {
		for _, line := range garbageLines {
			p.garbage(line)
		}
	}
	if p.huge > 0 {
		p.flood(p.huge)
	}
	if p.wrong {
		answer = bytes.Replace(answer, []byte(`"id":`+p.id), []byte(`"id":"an id that nobody used"`), 1)
	}
	if p.twice {
		p.notify(answer)
	}
	p.peer.respond(code, answer)
}
