package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/headervalue"
)

// A finder returns who answers a request.
type finder func(*http.Request) (Host, error)

// known returns the finder of a host that is known.
func known(host Host) finder { return func(*http.Request) (Host, error) { return host, nil } }

// ServeHTTP serves Streamable HTTP, both eras. It trusts that whoever calls it has
// looked at Host and Origin, and at who is asking.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r, s.Host) }

// ServeAs is ServeHTTP where host says who answers the request, in place of
// [Server.Host].
func (s *Server) ServeAs(w http.ResponseWriter, r *http.Request, host func(*http.Request) (Host, error)) {
	s.serve(w, r, host)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, find finder) {
	s.init()
	session := r.Header.Get(headerSession)
	switch {
	case r.Method == http.MethodPost:
		s.post(w, r, find)
	case r.Method == http.MethodGet && session != "":
		s.listenAgain(w, r, find)
	case r.Method == http.MethodDelete && session != "":
		r, done := s.said(r)
		defer done()
		if found := s.found(w, r, find); found != nil {
			found.endBy(w, r)
		}
	default:
		// In the modern era there is nothing but POST; in the legacy era nothing else
		// without a session.
		w.Header().Set("Allow", http.MethodPost)
		refuseHTTP(w, http.StatusMethodNotAllowed, nil, &RPCError{Code: codeInvalidRequest, Message: "only POST is served here"})
	}
}

// refuseHTTP answers a request with an error and a status. id may be nil.
func refuseHTTP(w http.ResponseWriter, status int, id json.RawMessage, e *RPCError) {
	if e == errNotNow {
		w.Header().Set("Retry-After", "2") // seconds
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_, _ = w.Write(replyError(id, e))
}

// An httpRequest is a POST that was read.
type httpRequest struct {
	*inbound
	host         Host
	plain, event bool // which answers the client takes
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, find finder) {
	q := &httpRequest{}
	status, e := s.read(r, q, find)
	if e != nil {
		var id json.RawMessage
		if q.inbound != nil && q.method != "" {
			id = q.id
		}
		refuseHTTP(w, status, id, e)
		return
	}
	if refused := q.refusedBy(r.Context(), q.host); refused != nil {
		refused.write(w, q.id)
		return
	}
	switch {
	case !q.modern:
		s.postLegacy(w, r, q)
	case q.method == "":
		refuseHTTP(w, http.StatusBadRequest, nil, &RPCError{Code: codeInvalidRequest, Message: "a server asks nothing in the modern era, so there is nothing to answer"})
	case q.id == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		s.postModern(w, r, q)
	}
}

// refusedBy asks the host whether it answers a request at all.
func (in *inbound) refusedBy(ctx context.Context, host Host) *Refused {
	keeper, ok := host.(Gatekeeper)
	if !ok || in.method == "" || in.id == nil {
		return nil
	}
	name, _ := in.name()
	if deputy, ok := host.(Deputy); ok && in.method == "tools/call" {
		name = deputy.Meant(ctx, name, in.members.Get("arguments"))
	}
	return keeper.Admit(ctx, in.method, name)
}

// write answers a request that is refused.
func (refused *Refused) write(w http.ResponseWriter, id json.RawMessage) {
	if refused.Challenge != "" {
		w.Header().Set("WWW-Authenticate", refused.Challenge)
	}
	refuseHTTP(w, refused.Status, id, &RPCError{Code: codeInvalidRequest, Message: refused.Message})
}

// read reads and judges a POST.
func (s *Server) read(r *http.Request, q *httpRequest, find finder) (status int, e *RPCError) {
	if mediaType(r.Header) != typeJSON {
		return http.StatusUnsupportedMediaType, &RPCError{Code: codeInvalidRequest, Message: "the body has to be application/json"}
	}
	if q.plain, q.event = accepts(r.Header); !q.plain && !q.event {
		return http.StatusNotAcceptable, &RPCError{Code: codeInvalidRequest, Message: "the answer is application/json or text/event-stream"}
	}
	most := s.message.Load()
	body, err := readAll(r.Body, r.ContentLength, most+1)
	switch {
	case err != nil:
		return http.StatusBadRequest, &RPCError{Code: codeParse, Message: "the body could not be read"}
	case int64(len(body)) > most:
		return http.StatusRequestEntityTooLarge, &RPCError{Code: codeInvalidRequest, Message: "the message is too large"}
	}
	if q.inbound, e = readInbound(body); e != nil {
		return http.StatusBadRequest, e
	}
	if q.host, err = find(r); err != nil {
		if e, ok := errors.AsType[*RPCError](err); ok {
			return http.StatusBadRequest, e
		}
		s.log.Error("no host for an MCP client", "error", err)
		return http.StatusInternalServerError, &RPCError{Code: codeInternal, Message: "the request failed here"}
	}
	versions := r.Header.Values(headerVersion)
	header := r.Header.Get(headerVersion)
	if e := q.judgeEra(header); e != nil {
		if status = statusOf(e); status == http.StatusOK {
			status = http.StatusBadRequest
		}
		return status, e
	}
	if !q.modern {
		if header != "" && !slices.Contains(legacyVersions, header) {
			return http.StatusBadRequest, &RPCError{Code: codeInvalidRequest, Message: "this version of the protocol is not spoken here"}
		}
		return 0, nil
	}
	if q.id != nil && q.method != "" && (len(versions) != 1 || header != q.version) {
		return http.StatusBadRequest, mismatch(headerVersion)
	}
	if e := s.agree(r, q); e != nil {
		return statusOf(e), e
	}
	return 0, nil
}

// accepts reads an Accept header; without one, everything is taken.
func accepts(h http.Header) (plain, event bool) {
	values := h.Values("Accept")
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*":
				return true, true
			case typeJSON, "application/*":
				plain = true
			case typeStream, "text/*":
				event = true
			}
		}
	}
	return plain, event
}

// startSize is how much room a body gets at once, whatever it says of its length.
const startSize = 16 << 10

// readAll reads all of r, which says that it has length bytes, or the first most of them.
func readAll(r io.Reader, length, most int64) ([]byte, error) {
	b := make([]byte, 0, min(max(length, 511), startSize)+1) // one more, to see the end
	for int64(len(b)) < most {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):min(int64(cap(b)), most)])
		b = b[:len(b)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// statusOf is the status with which the modern era sends an error.
func statusOf(e *RPCError) int {
	switch {
	case e == nil:
		return http.StatusOK
	case e.Code == codeMethodNotFound:
		return http.StatusNotFound
	case e.modern():
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// statusOf is the status with which what the host answered goes to a client of the modern
// era. That there is no such method is 404, which clients take for the words of HTTP and not
// of the server. It is not said of a method that is offered here: servers behind us have the
// same code for a tool, or a resource, that they do not know.
func (q *httpRequest) statusOf(ctx context.Context, e *RPCError) int {
	if e != nil && e.Code == codeMethodNotFound {
		if what := feature(q.method); what != "" && object(q.host.Describe(ctx).Capabilities).Get(what) != nil {
			return http.StatusOK
		}
	}
	return statusOf(e)
}

// feature returns the capability that promises a method whose requests name what they are
// about; empty for any other method.
func feature(method string) string {
	switch method {
	case "tools/call":
		return "tools"
	case "prompts/get":
		return "prompts"
	case "resources/read":
		return "resources"
	case "completion/complete":
		return "completions"
	}
	return ""
}

func mismatch(header string) *RPCError {
	return &RPCError{Code: codeHeaderMismatch, Message: "the header " + header + " does not say what the body says"}
}

// agree checks that the headers of a modern request say what its body says, since
// others on the way decide by them (MCP 2026-07-28, "Streamable HTTP").
func (s *Server) agree(r *http.Request, q *httpRequest) *RPCError {
	if q.id == nil {
		return nil
	}
	one := func(name string) (string, bool) {
		values := r.Header.Values(name)
		if len(values) != 1 {
			return "", false
		}
		return headervalue.Decode(values[0])
	}
	if method, ok := one("Mcp-Method"); !ok || method != q.method {
		return mismatch("Mcp-Method")
	}
	if want, has := q.name(); has {
		if name, ok := one("Mcp-Name"); !ok || name != want {
			return mismatch("Mcp-Name")
		}
	}
	schemas, ok := q.host.(Describer)
	if q.method != methodTool || q.unread != nil || !ok {
		return nil
	}
	tool, _ := q.name()
	annotated, err := paramHeaders(schemas.InputSchema(r.Context(), tool))
	if err != nil {
		return nil // nobody was offered such a tool
	}
	want := map[string]string{}
	for _, h := range annotated.of(q.members.Get("arguments")) {
		want[h.name] = h.value
	}
	for _, p := range annotated {
		value, told := want[p.header]
		got, ok := one(p.header)
		plain, _ := headervalue.Decode(value)
		switch {
		case !told && len(r.Header.Values(p.header)) == 0:
		case !told, !ok, got != plain && !sameNumber(got, plain):
			return mismatch(p.header)
		}
	}
	return nil
}

func sameNumber(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// postModern answers a request of the modern era. When the client goes, what it
// asked for ends.
func (s *Server) postModern(w http.ResponseWriter, r *http.Request, q *httpRequest) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a := &answerStream{}
	defer a.begin(q, func() {
		defer cancel()
		s.send(w, r, q, &a.serverStream, false)
	})()
	v := &incomingRequest{server: s, host: q.host, in: q.inbound, to: a}
	result, err := v.result(ctx)
	if err == nil && q.plain && a.lazy.neverStarted() {
		sendWhole(w, q.id, result)
		return
	}
	a.finish(v.message(result, err))
	if a.lazy.neverStarted() {
		s.send(w, r, q, &a.serverStream, false)
		return
	}
	a.lazy.wait()
}

// wholeSize is up to what size an answer is put together before it is sent: what is as
// small is copied for less than another write costs.
const wholeSize = 16 << 10

// wholes has room for them.
var wholes = sync.Pool{New: func() any { return new([]byte) }}

// sendWhole sends an answer without a stream, and without putting it together in
// memory first: it may be a list of megabytes that is kept ready.
func sendWhole(w http.ResponseWriter, id, result json.RawMessage) {
	head := replyHead(id)
	w.Header()["Content-Type"] = jsonBody
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(result)+1))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writePatience))
	if len(result) <= wholeSize {
		whole := wholes.Get().(*[]byte)
		*whole = append(append(append((*whole)[:0], head...), result...), '}')
		_, _ = w.Write(*whole)
		wholes.Put(whole)
		return
	}
	for _, part := range [][]byte{head, result, {'}'}} {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// send sends what is on t: the answer alone where that is all, else a stream.
func (s *Server) send(w http.ResponseWriter, r *http.Request, q *httpRequest, t *serverStream, prime bool) {
	if msg, failed, ok := t.alone(); ok && q.plain {
		t.sentPlain()
		w.Header()["Content-Type"] = jsonBody
		w.Header().Set("Content-Length", strconv.Itoa(len(msg)))
		status := http.StatusOK
		if q.modern {
			status = q.statusOf(r.Context(), failed)
		}
		w.WriteHeader(status)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writePatience))
		_, _ = w.Write(msg)
		return
	}
	out := newStreamWriter(w)
	out.begin()
	out.follow(r.Context().Done(), t, 0, prime)
}

// sayPatience is how long what a client has said may take to reach the other processes.
const sayPatience = 10 * time.Second

// said returns a request that asks nothing as one that goes on when its client leaves: what
// was said whole holds, though nobody waits for the answer. Without a fleet nothing is
// waited for.
func (s *Server) said(r *http.Request) (*http.Request, context.CancelFunc) {
	if s.Fleet == nil {
		return r, func() {}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sayPatience)
	return r.WithContext(ctx), cancel
}
