package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Fleet is what servers in several processes share, behind a load balancer that gives a
// request to any of them, or one after the other: each serves the sessions of legacy clients
// that another began ([Server].Fleet). Clients of the modern era need none of it. It is safe
// for concurrent use.
type Fleet interface {
	// Node names this process: a word of letters and digits that no other one has or had.
	Node() string
	// Seal makes an id of what a session is, for its owner: visible ASCII, as a header
	// takes it. Open undoes it in every process, as long as a session may last. It reports
	// false for what was not made by Seal for that owner.
	Seal(owner string, session []byte) (id string)
	Open(owner, id string) (session []byte, ok bool)
	// Load returns what is written down about a session; nil for nothing.
	Load(ctx context.Context, owner, session string) (note []byte, err error)
	// Change writes down what change makes of what is written down about a session, and
	// returns it. It may run change more than once. Each other process is to tell its
	// server with [Server.Noted], within two seconds. What is to last is kept as long as a
	// session may last; for the rest a day is enough.
	Change(ctx context.Context, owner, session string, change func(note []byte) (changed []byte, lasts bool)) ([]byte, error)
	// Hold has what is sent to a key handed to take, here, until release is called. It
	// costs next to nothing. take does not block.
	Hold(key string, take func(owner string, body []byte)) (release func())
	// Send sends something to whoever holds a key: at a node, or, where that is empty, at
	// the first that does, if any does within seconds. It is delivered at most once. alive is
	// false where the node has ended, or has nobody for the key.
	Send(ctx context.Context, node, key, owner string, body []byte) (alive bool, err error)
}

// A Digester is a [Host] that says what its lists are like. In a [Fleet], a client that
// begins to listen at one process is told what has changed since another greeted it.
type Digester interface {
	// Digests returns a number for the lists of tools, of prompts, and of resources with
	// their templates: the same in every process, as long as the list is.
	Digests(context.Context) [3]uint64
}

// listsChanged tell of the lists of [Digester].
var listsChanged = [3]string{"tools", "prompts", "resources"}

// fleetKey is the key to which the servers of a fleet send what is for a session at one
// of them.
const fleetKey = "mcp"

// A sealedSession is what the id of a session says: all that its initialize did.
type sealedSession struct {
	key     string // by which the processes know it
	version string
	can     dragoman.Kind
	digests [3]uint64 // of what the client was told about
}

// keyBytes is the size of a session's key.
const keyBytes = 12

func (s *sealedSession) bytes() []byte {
	b, _ := base64.RawURLEncoding.DecodeString(s.key)
	b = binary.BigEndian.AppendUint32(b, uint32(s.can))
	for _, d := range s.digests {
		b = binary.BigEndian.AppendUint64(b, d)
	}
	return append(b, s.version...)
}

func readSealedSession(b []byte) (s sealedSession, ok bool) {
	if len(b) < keyBytes+4+3*8 {
		return s, false
	}
	s.key, b = base64.RawURLEncoding.EncodeToString(b[:keyBytes]), b[keyBytes:]
	s.can, b = dragoman.Kind(binary.BigEndian.Uint32(b)), b[4:]
	for i := range s.digests {
		s.digests[i], b = binary.BigEndian.Uint64(b), b[8:]
	}
	s.version = string(b)
	return s, slices.Contains(legacyVersions, s.version)
}

// A sessionNote is what is written down about a session, once there is anything: most
// have none.
type sessionNote struct {
	// Number grows with each change, also where the one before is kept no longer: it is not
	// less than the time, in microseconds.
	Number int64 `json:"n"`
	// Ended says that the client has ended it.
	Ended bool `json:"ended,omitempty"`
	// Level is that of log messages, as the client set it.
	Level json.RawMessage `json:"level,omitempty"`
	// Watched are the resources that the client has subscribed to.
	Watched []string `json:"watched,omitempty"`
	// Stream is the listening stream that was opened last; an older one ends.
	Stream string `json:"stream,omitempty"`
}

// lasts reports whether it says more than who listens, which every client that listens leaves
// behind.
func (n *sessionNote) lasts() bool { return n.Ended || n.Level != nil || len(n.Watched) > 0 }

func readNote(b []byte) (n sessionNote) {
	_ = json.Unmarshal(b, &n) // ours, or nothing
	return n
}

// joinFleet takes what others of the fleet send.
func (s *Server) joinFleet() {
	if s.Fleet != nil {
		s.leaveFleet = s.Fleet.Hold(fleetKey, s.sent)
	}
}

// Noted tells the server what another process of its [Fleet] has written down about a
// session.
func (s *Server) Noted(session string, note []byte) {
	s.init()
	s.mu.Lock()
	h := s.sessions[session]
	s.mu.Unlock()
	if h != nil {
		h.apply(readNote(note), true)
	}
}

// note writes down a change of the session, and does here what it says.
func (h *httpSession) note(ctx context.Context, change func(*sessionNote)) error {
	b, err := h.server.Fleet.Change(ctx, h.owner, h.id, func(old []byte) ([]byte, bool) {
		n := readNote(old)
		n.Number = max(n.Number+1, time.Now().UnixMicro())
		change(&n)
		b, _ := json.Marshal(&n)
		return b, n.lasts()
	})
	if err != nil {
		if ctx.Err() == nil { // else the client has left
			h.server.log.Error("what an MCP client wants cannot be written down", "error", err)
		}
		return errNotNow
	}
	h.apply(readNote(b), false)
	return nil
}

// errNotNow: the fleet could not be told, or asked.
var errNotNow = &RPCError{Code: codeInternal, Message: "this cannot be written down now; try again later"}

// apply does here what is written down about the session. elsewhere says that another
// process wrote it.
func (h *httpSession) apply(n sessionNote, elsewhere bool) {
	h.mu.Lock()
	if n.Number <= h.noted.Number {
		h.mu.Unlock()
		return
	}
	h.noted = n
	hears := h.hears
	h.mu.Unlock()
	if n.Ended {
		h.leave()
		return
	}
	if n.Level != nil {
		h.level.Store(&n.Level)
	}
	switch {
	case hears == nil:
	case hears.stream.id != n.Stream:
		hears.stop()
	case elsewhere:
		h.spawn(func() { hears.watch(n.Watched, true) })
	default:
		hears.watch(n.Watched, false)
	}
}

// admit returns the session that an id says, which may have begun in another process; nil
// for none.
func (s *Server) admit(ctx context.Context, host Host, id string) (*httpSession, error) {
	plain, ok := s.Fleet.Open(host.Owner(), id)
	if !ok {
		return nil, nil
	}
	sealed, ok := readSealedSession(plain)
	if !ok {
		return nil, nil
	}
	s.mu.Lock()
	h := s.sessions[sealed.key]
	s.mu.Unlock()
	if h == nil {
		h = s.newSession(host, sealed)
		if other, kept := s.keep(h); !kept && other == nil {
			h.timer.Stop()
			h.stop()
			return nil, errCrowded
		} else if other != nil {
			h.timer.Stop()
			h.stop()
			h = other
		}
	}
	if err := h.load(ctx); err != nil {
		return nil, err
	}
	if h.gone() {
		return nil, nil
	}
	return h, nil
}

// load reads what is written down about the session, once.
func (h *httpSession) load(ctx context.Context) error {
	h.loading.Lock()
	defer h.loading.Unlock()
	if h.loaded {
		return nil
	}
	b, err := h.server.Fleet.Load(ctx, h.owner, h.id)
	if err != nil {
		if ctx.Err() == nil { // else the client has left
			h.server.log.Error("what is written down about the session of an MCP client cannot be read", "error", err)
		}
		return errNotNow
	}
	h.loaded = true
	if b != nil {
		h.apply(readNote(b), true)
	}
	return nil
}

// A fleetMessage is what one process of a fleet sends to another.
type fleetMessage struct {
	Session string `json:"session"`
	// ID and Result answer a request of ours. Result is nil for an error.
	ID     []byte `json:"id,omitempty"`
	Result []byte `json:"result,omitempty"`
	// Read asks for the events of a stream after a number, to be sent to a node and key,
	// and with Stop, or once nothing is heard for a while, for no more.
	Read  string `json:"read,omitempty"`
	After int    `json:"after,omitempty"`
	Node  string `json:"node,omitempty"`
	Key   string `json:"key,omitempty"`
	Stop  bool   `json:"stop,omitempty"`
}

// sent takes a message of another process.
func (s *Server) sent(owner string, body []byte) {
	var m fleetMessage
	if json.Unmarshal(body, &m) != nil {
		return
	}
	s.mu.Lock()
	h := s.sessions[m.Session]
	s.mu.Unlock()
	switch {
	case h != nil && h.owner != owner:
	case m.Key != "":
		s.lend(h, owner, m)
	case h != nil && m.ID != nil:
		h.take(m.ID, m.Result)
	}
}

// callKey is the key that whoever runs a request of a client holds, since nothing else
// says where that is.
func (h *httpSession) callKey(id json.RawMessage) string {
	sum := sha256.Sum256(append([]byte(h.id+" "), id...))
	return "mcp call " + base64.RawURLEncoding.EncodeToString(sum[:18])
}

// forward takes a notification or an answer of the client, and hands it to the process
// that it is for. It reports false for the answer to a request of a process that has ended.
func (h *httpSession) forward(ctx context.Context, in *inbound) (known bool, err error) {
	fleet := h.server.Fleet
	switch {
	case fleet == nil:
	case in.method == "":
		node, ok := nodeOf(in.id)
		if !ok || node == fleet.Node() {
			break
		}
		if !h.maySend() {
			return false, errNotNow
		}
		m := fleetMessage{Session: h.id, ID: in.id, Result: in.result}
		body, err := json.Marshal(&m)
		if err != nil {
			return false, err
		}
		return fleet.Send(ctx, node, fleetKey, h.owner, body)
	case in.method == "notifications/cancelled":
		id := in.members.Get("requestId")
		h.legacyPeer.mu.Lock()
		here := h.running[string(id)] != nil
		h.legacyPeer.mu.Unlock()
		if here || !validID(id) {
			break
		}
		if !h.maySend() {
			return true, nil // who gives up so much cannot be told apart from who floods
		}
		_, err := fleet.Send(ctx, "", h.callKey(id), h.owner, nil) // whoever runs it, if anybody does
		return true, err
	}
	h.handleMessage(in)
	return true, nil
}

// cancelledAnywhere lets a request that runs here be cancelled by way of any process, until
// the function that it returns is called in place of done.
func (h *httpSession) cancelledAnywhere(id json.RawMessage, done func()) func() {
	release := h.server.Fleet.Hold(h.callKey(id), func(owner string, _ []byte) {
		if owner == h.owner {
			h.cancel(id)
		}
	})
	return func() {
		release()
		done()
	}
}

// endBy answers the DELETE of a client.
func (h *httpSession) endBy(w http.ResponseWriter, r *http.Request) {
	if h.shared != nil {
		if h.shared(r.Context(), func(n *sessionNote) { *n = sessionNote{Number: n.Number, Ended: true} }) != nil {
			refuseHTTP(w, http.StatusServiceUnavailable, nil, errNotNow)
			return
		}
	}
	h.end()
	w.WriteHeader(http.StatusNoContent)
}

// shareWatched writes down that the client watches a resource, or no more.
func (c *legacyPeer) shareWatched(ctx context.Context, uri string, want bool) error {
	full := false
	err := c.shared(ctx, func(n *sessionNote) {
		at := slices.Index(n.Watched, uri)
		full = want && at < 0 && !canWatch(uri, slices.Values(n.Watched))
		switch {
		case want && at < 0 && !full:
			n.Watched = append(n.Watched, uri)
		case !want && at >= 0:
			n.Watched = slices.Delete(n.Watched, at, at+1)
		}
	})
	if err == nil && full {
		return errWatchesMuch
	}
	return err
}

// newSessionKey returns what no session had.
func newSessionKey() string {
	var b [keyBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// maxSent is how much a client may have sent to other processes in a second, by each
// process: a message of each costs a transaction.
const maxSent = 64

// maySend counts what the client has sent to other processes, and reports whether it is not
// too much.
func (h *httpSession) maySend() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.sentSince) >= time.Second {
		h.sentSince, h.sent = now, 0
	}
	h.sent++
	return h.sent <= maxSent
}

// nodeOf returns the node that an id of ours names.
func nodeOf(id json.RawMessage) (node string, ok bool) {
	text, _ := rawjson.String(id)
	node, _, ok = strings.Cut(text, ".")
	return node, ok && node != ""
}

// postForwarded answers the POST of a notification or of an answer.
func (h *httpSession) postForwarded(w http.ResponseWriter, r *http.Request, in *inbound) {
	switch known, err := h.forward(r.Context(), in); {
	case err != nil:
		h.server.log.Error("what an MCP client says cannot be handed to the replica that it is for", "error", err)
		refuseHTTP(w, http.StatusServiceUnavailable, nil, errNotNow)
	case !known:
		refuseHTTP(w, http.StatusNotFound, nil, &RPCError{Code: codeInvalidRequest, Message: "whoever asked this has ended: begin anew with initialize"})
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}
