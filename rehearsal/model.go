package rehearsal

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// DefaultName is the name of a Model that was given none.
const DefaultName = "rehearsal"

// Fingerprint is the system_fingerprint of every completion. It changes when
// the same request would get another answer.
const Fingerprint = "rehearsal-2"

// Note is the sentence in the field dragoman.note of every completion.
const Note = "rehearsal is a deterministic stand-in, not a language model"

// MaxBody is the size in bytes above which a request is refused with 413.
const MaxBody = 64 << 20

// Model is the stand-in. The zero value is ready, strict and well-behaved. It
// serves any number of requests at once, and must not be copied or changed
// once it does.
type Model struct {
	// Name is what GET /v1/models lists, and the part before the colon where
	// a request's model names misbehaviours. Empty is [DefaultName].
	// Requests for any other model are served too, and told the name they
	// asked for.
	Name string

	// Misbehave applies to every request, beside those its model names.
	Misbehave []Misbehaviour

	// Delay is how long [Slow] waits before the first byte, and [SlowStream]
	// before each event. Zero is 2 s for the first and 100 ms for the second.
	Delay time.Duration

	// Now gives the time in the field created. Nil is [time.Now].
	Now func() time.Time

	// Lenient turns off the checks that strict providers make and others do
	// not. Requests that make no sense at all are refused in any case.
	Lenient bool

	once429 memory
}

func (m *Model) name() string {
	if m.Name == "" {
		return DefaultName
	}
	return m.Name
}

func (m *Model) created() int64 {
	if m.Now == nil {
		return time.Now().Unix()
	}
	return m.Now().Unix()
}

// ServeHTTP serves POST /v1/chat/completions, GET /v1/models and
// GET /v1/models/{id}, each also without /v1. Everything else, the Responses
// API included, is answered 404 in OpenAI's form.
func (m *Model) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := strings.TrimSuffix(req.URL.Path, "/")
	path = strings.TrimPrefix(path, "/v1")
	id, oneModel := strings.CutPrefix(path, "/models/")
	switch {
	case path == "/chat/completions":
		if allow(w, req, http.MethodPost) {
			m.complete(w, req)
		}
	case path == "/models":
		if allow(w, req, http.MethodGet, http.MethodHead) {
			writeJSON(w, http.StatusOK, list{"list", []modelInfo{m.info(m.name())}})
		}
	case oneModel:
		if !allow(w, req, http.MethodGet, http.MethodHead) {
			return
		}
		if _, p := m.traits(id); p != nil || !m.owns(id) {
			writeProblem(w, &problem{404, fmt.Sprintf("The model '%s' does not exist; this server has '%s'.", id, m.name()), "invalid_request_error", "model", "model_not_found"})
			return
		}
		writeJSON(w, http.StatusOK, m.info(id))
	default:
		hint := ""
		if strings.HasPrefix(path, "/responses") {
			hint = " rehearsal speaks Chat Completions only."
		}
		writeProblem(w, &problem{404, fmt.Sprintf("Invalid URL (%s %s).%s", req.Method, req.URL.Path, hint), "invalid_request_error", "", "unknown_url"})
	}
}

func allow(w http.ResponseWriter, req *http.Request, methods ...string) bool {
	if slices.Contains(methods, req.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	writeProblem(w, &problem{405, fmt.Sprintf("Not allowed to %s on %s.", req.Method, req.URL.Path), "invalid_request_error", "", "method_not_supported"})
	return false
}

type list struct {
	Object string      `json:"object"`
	Data   []modelInfo `json:"data"`
}

type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (m *Model) info(id string) modelInfo { return modelInfo{id, "model", 0, "dragoman"} }

// complete answers one chat completion request.
func (m *Model) complete(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBody))
	if err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			writeProblem(w, &problem{413, fmt.Sprintf("The request is larger than %d bytes.", tooLarge.Limit), "invalid_request_error", "", "request_too_large"})
		}
		return // otherwise the client is gone
	}
	r, p := decode(body)
	if p != nil {
		writeProblem(w, p)
		return
	}
	w.Header().Set("X-Request-Id", "req_"+r.id())
	bad, p := m.traits(r.model)
	if p == nil && !m.Lenient {
		p = check(r)
	}
	if p == nil {
		p = bad.objections(r)
	}
	if p != nil {
		writeProblem(w, p)
		return
	}
	if bad[Slow] && !wait(req.Context(), m.delay(2*time.Second)) {
		return
	}
	if m.refuse(w, r, bad) {
		return
	}
	answer := r.decide()
	bad.spoil(&answer, r)
	replies := make([]reply, r.n)
	for i := range replies {
		replies[i] = bad.finish(r.finish(answer, i))
	}
	c := m.completion(r, replies)
	if r.stream && !bad[JSONForStream] {
		m.stream(w, req, r, bad, c, replies)
		return
	}
	if bad[CutStream] {
		data := encode(c)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		abortAfter(w, data[:len(data)/2])
	}
	writeJSON(w, http.StatusOK, c)
}

func (m *Model) delay(normally time.Duration) time.Duration {
	if m.Delay > 0 {
		return m.Delay
	}
	return normally
}

// memory remembers which requests it saw, up to a number.
type memory struct {
	mu   sync.Mutex
	seen map[string]bool
}

// first says whether the key is new.
func (m *memory) first(key string) bool {
	const most = 4096
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen[key] {
		return false
	}
	if m.seen == nil || len(m.seen) >= most {
		m.seen = make(map[string]bool)
	}
	m.seen[key] = true
	return true
}

type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (p *problem) body() errorBody {
	optional := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return errorBody{errorDetail{p.message, p.typ, optional(p.param), optional(p.code)}}
}

func writeProblem(w http.ResponseWriter, p *problem) { writeJSON(w, p.status, p.body()) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	write(w, status, "application/json", encode(v))
}

func write(w http.ResponseWriter, status int, contentType string, data []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that left needs no answer
}
