package door

import (
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// A Handler answers a request of a caller. Path values of the route's pattern are set.
type Handler func(w http.ResponseWriter, r *http.Request, who caller.Caller)

// A Route is one way in.
type Route struct {
	// Pattern is a pattern of [http.ServeMux].
	Pattern string
	// Serve answers.
	Serve Handler
	// Who finds out who asks, where the route has a way of its own; nil for the key or
	// token in the request's headers. What goes wrong is a [*caller.Refusal].
	Who func(*http.Request) (caller.Caller, error)
	// Form is how errors look to the clients of the route; [OpenAI] if nil.
	Form Form
	// FormOf is in place of Form where errors look as the request wants it, such as in the
	// language of its reader; nil for Form.
	FormOf func(*http.Request) Form
	// Shed says how soon the route is closed when memory is short.
	Shed Shed
	// Lasts says that a request may have no end of its own, such as a stream on which
	// an MCP client listens: it ends when what its caller showed does.
	Lasts func(*http.Request) bool
}

// Shed says how soon a route is closed when memory is short.
type Shed int

const (
	// ShedFirst, the zero Shed, is for what begins something: conversations, calls.
	ShedFirst Shed = iota
	// ShedLast is for what may belong to something that has begun.
	ShedLast
	// ShedNever is for what others wait for, such as the answers of operators.
	ShedNever
)

// Enter lets a request in: it finds out who asks, once, and calls serve; or it refuses,
// in the route's form.
type Enter func(w http.ResponseWriter, r *http.Request, route *Route)

// A Mux has the routes of all doors. Make it with [NewMux].
type Mux struct {
	enter Enter
	mux   *http.ServeMux
	exact map[string]map[string]http.HandlerFunc // of patterns without wildcards, by path and method; "" for any
}

// NewMux returns a mux whose requests come in by enter.
func NewMux(enter Enter) *Mux {
	return &Mux{enter: enter, mux: http.NewServeMux(), exact: map[string]map[string]http.HandlerFunc{}}
}

// Handle adds routes. Patterns that clash panic, as those of [http.ServeMux] do.
func (m *Mux) Handle(routes ...Route) {
	for _, route := range routes {
		if route.Form == nil {
			route.Form = OpenAI
		}
		handler := func(w http.ResponseWriter, r *http.Request) {
			asked := route
			if route.FormOf != nil {
				asked.Form = route.FormOf(r)
			}
			m.enter(w, r, &asked)
		}
		m.mux.HandleFunc(route.Pattern, handler)
		method, path, ok := strings.Cut(route.Pattern, " ")
		if !ok {
			method, path = "", route.Pattern
		}
		if strings.HasPrefix(path, "/") && !strings.HasSuffix(path, "/") && !strings.Contains(path, "{") {
			if m.exact[path] == nil {
				m.exact[path] = map[string]http.HandlerFunc{}
			}
			m.exact[path][method] = handler
		}
	}
}

// Has reports whether a request is for a path that is a pattern of m as it stands.
func (m *Mux) Has(r *http.Request) bool { return m.exactly(r) != nil }

// exactly returns the handler of a request for a path that is a pattern as it stands, which
// is what most ask for: [http.ServeMux] would find the same one, and walks a tree of segments
// for it. nil where it has to look.
func (m *Mux) exactly(r *http.Request) http.HandlerFunc {
	if r.URL.RawPath != "" || r.Method == http.MethodHead { // which a GET answers
		return nil
	}
	by := m.exact[r.URL.Path]
	if handler := by[r.Method]; handler != nil {
		return handler
	}
	return by[""]
}

// ServeHTTP implements [http.Handler]. A path that can be read as more than one is
// refused, and never redirected: see plainPath.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if handler := m.exactly(r); handler != nil {
		handler(w, r)
		return
	}
	if err := plainPath(r.URL); err != nil {
		m.enter(w, r, &Route{Form: OpenAI, Serve: func(w http.ResponseWriter, r *http.Request, _ caller.Caller) {
			OpenAI(w, err)
		}})
		return
	}
	m.mux.ServeHTTP(w, r)
}
