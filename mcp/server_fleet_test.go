package mcp

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A memoryFleet is what servers in one process share as if they were in several.
type memoryFleet struct {
	mu      sync.Mutex
	notes   map[string][]byte
	nodes   []*fleetNode
	waiting []parcel // for whoever will hold their keys
}

type parcel struct {
	key, owner string
	body       []byte
}

// A fleetNode is a Fleet as one server sees it.
type fleetNode struct {
	*memoryFleet
	name   string
	dead   atomic.Bool
	away   atomic.Bool // what it shares cannot be reached
	holds  map[string]func(string, []byte)
	server *Server
}

func (n *fleetNode) Node() string { return n.name }

func (n *fleetNode) Seal(owner string, session []byte) string {
	return base64.RawURLEncoding.EncodeToString([]byte(owner + "\x00" + string(session)))
}

func (n *fleetNode) Open(owner, id string) ([]byte, bool) {
	b, err := base64.RawURLEncoding.DecodeString(id)
	session, ok := strings.CutPrefix(string(b), owner+"\x00")
	return []byte(session), err == nil && ok
}

// errAway is what a fleet says that cannot be reached.
var errAway = errors.New("the database cannot be reached")

// reached returns why what it shares cannot be reached; nil where it can.
func (n *fleetNode) reached(ctx context.Context) error {
	if n.away.Load() {
		return errAway
	}
	return ctx.Err()
}

func (n *fleetNode) Load(ctx context.Context, _, session string) ([]byte, error) {
	if err := n.reached(ctx); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.notes[session], nil
}

func (n *fleetNode) Change(ctx context.Context, _, session string, change func([]byte) ([]byte, bool)) ([]byte, error) {
	if err := n.reached(ctx); err != nil {
		return nil, err
	}
	n.mu.Lock()
	note, _ := change(n.notes[session])
	n.notes[session] = note
	others := slices.Clone(n.nodes)
	n.mu.Unlock()
	for _, other := range others {
		if other != n && !other.dead.Load() {
			other.server.Noted(session, note)
		}
	}
	return note, nil
}

func (n *fleetNode) Hold(key string, take func(string, []byte)) func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holds[key] = take
	n.waiting = slices.DeleteFunc(n.waiting, func(p parcel) bool {
		if p.key == key {
			go take(p.owner, p.body)
		}
		return p.key == key
	})
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.holds, key)
	}
}

func (n *fleetNode) Send(ctx context.Context, node, key, owner string, body []byte) (bool, error) {
	if err := n.reached(ctx); err != nil {
		return false, err
	}
	n.mu.Lock()
	var take func(string, []byte)
	alive := node == ""
	for _, other := range n.nodes {
		if (node == "" || node == other.name) && !other.dead.Load() {
			alive = true
			if held := other.holds[key]; held != nil {
				take = held
			}
		}
	}
	if take == nil && node == "" {
		n.waiting = append(n.waiting, parcel{key, owner, body})
	}
	n.mu.Unlock()
	if take != nil {
		take(owner, body)
	}
	return alive, nil
}

// inFleet makes servers of one fleet, behind a handler that gives each request to the
// next of them.
func inFleet(count int, host func(node int, r *http.Request) Host) (nodes []*fleetNode, next http.Handler) {
	fleet := &memoryFleet{notes: map[string][]byte{}}
	for i := range count {
		n := &fleetNode{memoryFleet: fleet, name: fmt.Sprint("n", i+1), holds: map[string]func(string, []byte){}}
		n.server = &Server{Fleet: n, Host: func(r *http.Request) (Host, error) { return host(i, r), nil }}
		n.server.init()
		fleet.nodes = append(fleet.nodes, n)
	}
	var turn atomic.Int64
	return fleet.nodes, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := fleet.nodes[int(turn.Add(1))%count]
		w.Header().Set("X-Node", n.name)
		n.server.ServeHTTP(w, r)
	})
}

func init() {
	served["lines of a fleet"] = func(t *testing.T, tools dragoman.Toolset) Transport {
		nodes, _ := inFleet(1, nil)
		return throughPipe(t, nodes[0].server, tools)
	}
	served["fleet"] = func(t *testing.T, tools dragoman.Toolset) Transport { return HTTP{URL: overThree(t, tools)} }
}

// overThree serves tools with a fleet of three.
func overThree(t *testing.T, tools dragoman.Toolset) (url string) {
	nodes, next := inFleet(3, func(_ int, r *http.Request) Host {
		return &toolsetHost{tools: tools, owner: r.Header.Get("X-Owner")}
	})
	srv := httptest.NewServer(next)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		for _, n := range nodes {
			n.server.Close()
		}
		srv.Close()
	})
	return srv.URL
}

// TestFleetPeers: the official SDK's client finds nothing odd about three servers that
// take turns.
func TestFleetPeers(t *testing.T) {
	inner := toolsettest.NewInner()
	changed := make(chan struct{}, 10)
	client := sdk.NewClient(&sdk.Implementation{Name: "peer", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"n": 3}}, nil
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: overThree(t, inner)}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 4 {
		usePeer(ctx, t, s)
	}
	inner.Change()
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("the client was not told that the list changed")
	}
}

// fleetInTime runs f in a bubble with two servers whose calls take so long. do sends a
// request to one of them.
func fleetInTime(t *testing.T, takes time.Duration, f func(t *testing.T, nodes []*fleetNode, do func(node int, method, body string, headers ...string) *http.Response)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner := toolsettest.NewInner()
		nodes, _ := inFleet(2, func(_ int, r *http.Request) Host {
			return &slowHost{takes: takes, toolsetHost: toolsetHost{tools: inner, owner: r.Header.Get("X-Owner")}}
		})
		to := []*HTTP{serveHTTP(t, nodes[0].server), serveHTTP(t, nodes[1].server)}
		defer nodes[0].server.Close()
		defer nodes[1].server.Close()
		f(t, nodes, func(node int, method, body string, headers ...string) *http.Response {
			return send(t, to[node], method, body, headers...)
		})
	})
}

// begun sends a greeting and returns the session.
func begun(do func(int, string, string, ...string) *http.Response, headers ...string) string {
	resp := do(0, "POST", greeting, headers...)
	_ = resp.Body.Close()
	return resp.Header.Get(headerSession)
}

// upTo reads a stream to a line that has a text in it, and returns the last event's id.
func upTo(lines *bufio.Scanner, text string) (last string) {
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			last = at
		}
		if strings.Contains(lines.Text(), text) {
			return last
		}
	}
	return ""
}

// TestFleetClientLeaves: what a client has said whole holds everywhere, though it has left
// without waiting for the answer.
func TestFleetClientLeaves(t *testing.T) {
	fleetInTime(t, time.Hour, func(t *testing.T, nodes []*fleetNode, do func(int, string, string, ...string) *http.Response) {
		id := begun(do)
		_ = do(0, "POST", legacyCall, headerSession, id).Body.Close()
		h := nodes[0].server
		h.mu.Lock()
		var session *httpSession
		for _, session = range h.sessions {
		}
		h.mu.Unlock()
		calls := func() int {
			synctest.Wait()
			session.legacyPeer.mu.Lock()
			defer session.legacyPeer.mu.Unlock()
			return len(session.running)
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		say := func(method, body string) {
			r := httptest.NewRequestWithContext(left, method, "/mcp", strings.NewReader(body))
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, headerSession: {id}}
			nodes[1].server.ServeHTTP(httptest.NewRecorder(), r)
		}
		if n := calls(); n != 1 {
			t.Fatalf("%d calls run, want 1", n)
		}
		say("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if n := calls(); n != 0 {
			t.Errorf("%d calls run that were cancelled", n)
		}
		say("DELETE", "")
		if synctest.Wait(); !session.gone() {
			t.Error("the session goes on")
		}
	})
}

// TestFleetResumes: a stream that broke is read on at another server, and where the one
// that had it has ended, the client is told to begin anew.
func TestFleetResumes(t *testing.T) {
	fleetInTime(t, 20*time.Second, func(t *testing.T, nodes []*fleetNode, do func(int, string, string, ...string) *http.Response) {
		id := begun(do)
		broken := func() string {
			resp := do(0, "POST", legacyCall, headerSession, id)
			defer resp.Body.Close()
			return upTo(bufio.NewScanner(resp.Body), `"begun"`)
		}
		last := broken()
		if !strings.HasPrefix(last, "n1.") {
			t.Fatalf("the last event was %q", last)
		}
		<-time.After(2 * time.Second)
		resp := do(1, "GET", "", headerSession, id, headerLast, last)
		rest, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || strings.Contains(string(rest), "begun") || !strings.Contains(string(rest), `"result":{"content":[]}`) || !strings.Contains(string(rest), "id: "+strings.TrimSuffix(last, "1")+"2\n") {
			t.Errorf("the rest after %s: %q, %v", last, rest, err)
		}
		<-time.After(3 * resumeLife) // it is forgotten
		resp = do(1, "GET", "", headerSession, id, headerLast, last)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("a stream that is forgotten: %s", resp.Status)
		}
		last = broken()
		nodes[0].dead.Store(true)
		resp = do(1, "GET", "", headerSession, id, headerLast, last)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("a stream of a server that has ended: %s", resp.Status)
		}
		resp = do(1, "POST", `{"jsonrpc":"2.0","id":"n1.1","result":{}}`, headerSession, id)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("an answer to a server that has ended: %s", resp.Status)
		}
	})
}

// TestFleetCancels: a request is cancelled by way of another server, and not by another
// owner.
func TestFleetCancels(t *testing.T) {
	fleetInTime(t, time.Hour, func(t *testing.T, nodes []*fleetNode, do func(int, string, string, ...string) *http.Response) {
		id := begun(do)
		resp := do(0, "POST", legacyCall, headerSession, id)
		defer resp.Body.Close()
		running := func() int {
			synctest.Wait()
			sealed, _ := nodes[0].Open("", id)
			session, _ := readSealedSession(sealed)
			nodes[0].server.mu.Lock()
			h := nodes[0].server.sessions[session.key]
			nodes[0].server.mu.Unlock()
			h.legacyPeer.mu.Lock()
			defer h.legacyPeer.mu.Unlock()
			return len(h.running)
		}
		if running() != 1 {
			t.Fatal("the call does not run")
		}
		const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
		refused := do(1, "POST", cancel, headerSession, id, "X-Owner", "mallory")
		_ = refused.Body.Close()
		if refused.StatusCode != http.StatusNotFound || running() != 1 {
			t.Errorf("another owner: %s, %d calls run", refused.Status, running())
		}
		_ = do(1, "POST", cancel, headerSession, id).Body.Close()
		if running() != 0 {
			t.Error("the call goes on")
		}
	})
}

// TestFleetEnds: a session that was ended at one server is ended at all, one that nobody
// sealed is none, and what a client set at one holds at all.
func TestFleetEnds(t *testing.T) {
	fleetInTime(t, 0, func(t *testing.T, nodes []*fleetNode, do func(int, string, string, ...string) *http.Response) {
		status := func(node int, method, body, id string) int {
			t.Helper()
			resp := do(node, method, body, headerSession, id)
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
		id := begun(do)
		if got := status(1, "POST", ping, id); got != http.StatusOK {
			t.Fatalf("at the other server: %d", got)
		}
		for _, forged := range []string{"x", id + "A", rawSession("x"), rawSession(strings.Repeat("x", 60))} {
			if got := status(1, "POST", ping, forged); got != http.StatusNotFound {
				t.Errorf("forged %q: %d", forged, got)
			}
		}
		if got := status(0, "POST", `{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"error"}}`, id); got != http.StatusOK {
			t.Errorf("the level: %d", got)
		}
		for _, n := range nodes {
			sealed, _ := n.Open("", id)
			session, _ := readSealedSession(sealed)
			n.server.mu.Lock()
			level := n.server.sessions[session.key].level.Load()
			n.server.mu.Unlock()
			if level == nil || string(*level) != `"error"` {
				t.Errorf("%s: the level is %s", n.name, *level)
			}
		}
		stream := do(1, "GET", "", headerSession, id)
		if got := status(0, "DELETE", "", id); got != http.StatusNoContent {
			t.Errorf("ending: %d", got)
		}
		if _, err := io.ReadAll(stream.Body); err != nil {
			t.Errorf("the stream: %v", err)
		}
		_ = stream.Body.Close()
		for node := range nodes {
			if got := status(node, "POST", ping, id); got != http.StatusNotFound {
				t.Errorf("server %d after the end: %d", node, got)
			}
		}
	})
}

// TestFleetForgetsWhoListens: who listens is kept for a shorter time than a session lasts, and
// a client that comes to listen after that is heard, and its older stream ends.
func TestFleetForgetsWhoListens(t *testing.T) {
	fleetInTime(t, 0, func(t *testing.T, nodes []*fleetNode, do func(int, string, string, ...string) *http.Response) {
		id := begun(do)
		listen := func(node int) *http.Response { return do(node, "GET", "", headerSession, id) }
		_ = listen(0).Body.Close()
		older := listen(0)
		nodes[0].mu.Lock()
		clear(nodes[0].notes)
		nodes[0].mu.Unlock()
		newer := listen(1)
		synctest.Wait()
		for _, n := range nodes {
			sealed, _ := n.Open("", id)
			session, _ := readSealedSession(sealed)
			n.server.mu.Lock()
			h := n.server.sessions[session.key]
			n.server.mu.Unlock()
			h.mu.Lock()
			if hears := h.hears != nil; hears != (n == nodes[1]) {
				t.Errorf("%s hears for the client: %t", n.name, hears)
			}
			h.mu.Unlock()
		}
		_ = older.Body.Close()
		_ = newer.Body.Close()
	})
}

// TestFleetAway: while what the servers share cannot be reached, a client is told when to come
// again, whatever it wants of another server.
func TestFleetAway(t *testing.T) {
	fleetInTime(t, 0, func(t *testing.T, nodes []*fleetNode, do func(int, string, string, ...string) *http.Response) {
		try := func(what string, want int, method, body string, headers ...string) {
			t.Helper()
			resp := do(1, method, body, headers...)
			_ = resp.Body.Close()
			if resp.StatusCode != want || resp.Header.Get("Retry-After") == "" && want == http.StatusServiceUnavailable {
				t.Errorf("%s: %s, %q", what, resp.Status, resp.Header.Get("Retry-After"))
			}
		}
		known, unknown := begun(do), begun(do)
		try("a session", http.StatusOK, "POST", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, headerSession, known)
		nodes[1].away.Store(true)
		try("an answer", http.StatusServiceUnavailable, "POST", `{"jsonrpc":"2.0","id":"n1.1","result":{}}`, headerSession, known)
		try("a stream to go on", http.StatusServiceUnavailable, "GET", "", headerSession, known, headerLast, "n1.1-1")
		try("a listening stream", http.StatusServiceUnavailable, "GET", "", headerSession, known)
		try("an end", http.StatusServiceUnavailable, "DELETE", "", headerSession, known)
		try("a session of another's", http.StatusServiceUnavailable, "POST", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, headerSession, unknown)
	})
}

func rawSession(s string) string { return (&fleetNode{}).Seal("", []byte(s)) }

// A tellingHost tells when it is told to, and has a list that can change.
type tellingHost struct {
	toolsetHost
	tell    chan dragoman.Notification
	digests atomic.Uint64
}

func (h *tellingHost) Describe(context.Context) Description {
	return Description{Capabilities: json.RawMessage(`{"tools":{"listChanged":true},"resources":{"subscribe":true}}`)}
}

func (h *tellingHost) Digests(context.Context) [3]uint64 { return [3]uint64{h.digests.Load(), 5, 6} }

func (h *tellingHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	call.Notify(dragoman.Notification{Method: Acknowledged})
	for {
		select {
		case n := <-h.tell:
			call.Notify(n)
		case <-ctx.Done():
			return dragoman.Result{}, ctx.Err()
		}
	}
}

// TestFleetListens: a listening stream tells of lists that changed before it was opened,
// and of what was subscribed to at other servers; a newer stream ends it.
func TestFleetListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &tellingHost{tell: make(chan dragoman.Notification)}
		nodes, _ := inFleet(2, func(int, *http.Request) Host { return host })
		to := []*HTTP{serveHTTP(t, nodes[0].server), serveHTTP(t, nodes[1].server)}
		defer nodes[0].server.Close()
		defer nodes[1].server.Close()
		do := func(node int, method, body string, headers ...string) *http.Response {
			return send(t, to[node], method, body, headers...)
		}
		id := begun(do)
		subscribe := func(node int, uri string) {
			resp := do(node, "POST", `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`, headerSession, id)
			if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), `"result"`) {
				t.Errorf("subscribing: %s", body)
			}
			_ = resp.Body.Close()
		}
		subscribe(0, "r:early")
		host.digests.Store(1)
		stream := do(1, "GET", "", headerSession, id)
		lines := bufio.NewScanner(stream.Body)
		if upTo(lines, "notifications/tools/list_changed") == "" || upTo(lines, `"r:early"`) == "" {
			t.Fatal("what changed before is not told")
		}
		subscribe(0, "r:late")
		if upTo(lines, `"r:late"`) == "" {
			t.Fatal("what was subscribed to at the other server is not heard")
		}
		again := do(0, "GET", "", headerSession, id)
		if lines.Scan(); lines.Scan() {
			t.Errorf("the older stream goes on: %q", lines.Text())
		}
		if upTo(bufio.NewScanner(again.Body), `"r:late"`) == "" {
			t.Error("the newer stream does not hear")
		}
		_ = stream.Body.Close()
		_ = again.Body.Close()
	})
}

// Digests implements [Digester].
func (h *toolsetHost) Digests(ctx context.Context) (all [3]uint64) {
	list, err := h.tools.List(ctx)
	if err != nil {
		return all
	}
	sum := fnv.New64()
	for _, tool := range list.Tools.All() {
		_, _ = sum.Write(tool.Pin[:])
	}
	all[0] = sum.Sum64()
	return all
}

// TestFleetFlood: what one client sends to other servers is bounded.
func TestFleetFlood(t *testing.T) {
	fleetInTime(t, 0, func(t *testing.T, nodes []*fleetNode, do func(int, string, string, ...string) *http.Response) {
		id := begun(do)
		for n := range maxSent + 10 {
			resp := do(0, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n), headerSession, id)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted {
				t.Errorf("cancellation %d: %s", n, resp.Status)
			}
		}
		nodes[0].mu.Lock()
		sent := len(nodes[0].waiting)
		nodes[0].mu.Unlock()
		if sent != maxSent {
			t.Errorf("%d were sent, want %d", sent, maxSent)
		}
	})
}
