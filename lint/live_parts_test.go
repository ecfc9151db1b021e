package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// listed reports, once a list was asked for with the same id, that it was.
func (m *model) listed(q query) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return len(m.sessions) > 1
}

// tagging makes a fixture of another answer of notes_list_tags to a limit.
func tagging(answer func(limit int) string) func(*model) {
	return func(m *model) {
		m.result = func(q query, was string) string {
			if q.Params.Name != "notes_list_tags" || strings.Contains(was, "isError") {
				return was
			}
			limit := struct{ Limit int }{20}
			_ = json.Unmarshal(q.Params.Arguments, &limit) // it was judged before
			text := answer(limit.Limit)
			b, _ := json.Marshal(text)
			return `{"content":[{"type":"text","text":` + string(b) + `}],"structuredContent":` + text + `}`
		}
	}
}

func items(n int) string {
	return `["` + strings.Join([]string{"home", "work", "garden"}[:n], `","`) + `"]`
}

// accepting makes a fixture of a success where the arguments are bad in one way.
func accepting(bad func(arguments map[string]any) bool) func(*model) {
	return func(m *model) {
		m.result = func(q query, was string) string {
			var a map[string]any
			if json.Unmarshal(q.Params.Arguments, &a) == nil && bad(a) && strings.Contains(was, "isError") && q.Params.Name == "notes_get_note" {
				return `{"content":[{"type":"text","text":"{\"text\":\"milk\"}"}],"structuredContent":{"text":"milk"}}`
			}
			return was
		}
	}
}

const (
	rightResource = `{"resource":"URL","authorization_servers":["ISSUER"],"scopes_supported":["notes:read"]}`
	rightIssuer   = `{"issuer":"ISSUER","code_challenge_methods_supported":["S256"],"authorization_endpoint":"ISSUER/authorize","token_endpoint":"ISSUER/token"}`
)

// guarded makes a fixture that wants authorization, with these documents.
func guarded(resource, issuer string) func(*model) {
	return func(m *model) {
		m.handler = func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			base := "http://" + r.Host
			fill := strings.NewReplacer("ISSUER", base, "URL", base+"/mcp")
			switch {
			case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
				fmt.Fprint(w, fill.Replace(resource))
			case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
				fmt.Fprint(w, fill.Replace(issuer))
			default:
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+base+`/.well-known/oauth-protected-resource/mcp"`)
				http.Error(w, "no", http.StatusUnauthorized)
			}
		}
	}
}

// lettingIn makes a fixture of a server that wants authorization, and lets some requests
// in.
func lettingIn(pass func(r *http.Request) bool) func(*model) {
	return func(m *model) {
		guarded(rightResource, rightIssuer)(m)
		refuse := m.handler
		m.handler = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if pass(r) {
				next.ServeHTTP(w, r)
				return
			}
			refuse(w, r, next)
		}
	}
}

// withToken is the target of a server that wants authorization, with a good token.
func withToken(change func(*model)) func(*testing.T, *model, *Target) {
	return func(_ *testing.T, m *model, target *Target) {
		target.Header = http.Header{"Authorization": {"Bearer right"}}
		change(m)
		refuse := m.handler
		m.handler = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Header.Get("Authorization") == "Bearer right" {
				next.ServeHTTP(w, r)
				return
			}
			refuse(w, r, next)
		}
	}
}

// oldTransport serves the model over HTTP+SSE alone.
func oldTransport(m *model) http.Handler {
	var mu sync.Mutex
	streams := map[string]chan string{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		lines := make(chan string, 100)
		mu.Lock()
		id := fmt.Sprintf("s%d", len(streams))
		streams[id] = lines
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no")
		fmt.Fprintf(w, "event: endpoint\ndata: /message?id=%s\n\n", id)
		w.(http.Flusher).Flush()
		for {
			select {
			case line := <-lines:
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", line)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /message", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		lines := streams[r.URL.Query().Get("id")]
		mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		for _, line := range m.handle(body) {
			lines <- line
		}
		w.WriteHeader(http.StatusAccepted)
	})
	return mux
}

// attacked makes a fixture of what notes_get_note answers to a title that it was not
// asked for before.
func attacked(answer func(title string) string) func(*model) {
	return func(m *model) {
		m.result = func(q query, was string) string {
			var a struct{ Title string }
			if q.Params.Name != "notes_get_note" || json.Unmarshal(q.Params.Arguments, &a) != nil || a.Title == "groceries" || strings.Contains(was, "isError") || len(a.Title) > 5000 {
				return was
			}
			b, _ := json.Marshal(answer(a.Title))
			return `{"content":[{"type":"text","text":` + string(b) + `}],"structuredContent":{"text":` + string(b) + `}}`
		}
	}
}

// without returns a definition without one of its members.
func without(definition json.RawMessage, member string) json.RawMessage {
	var tool map[string]json.RawMessage
	if err := json.Unmarshal(definition, &tool); err != nil {
		panic(err)
	}
	delete(tool, member)
	b, _ := json.Marshal(tool) // of what was just read
	return b
}

// answering makes a fixture of an answer to one method, "" for what is not JSON.
func answering(method string, reply func(m *model, q query) []string) func(*model) {
	return func(m *model) {
		m.before = func(m *model, q query) ([]string, bool) {
			if q.Method != method || method == "tools/call" && q.Params.Name == "" {
				return nil, false
			}
			lines := reply(m, q)
			return lines, lines != nil
		}
	}
}

// resulting makes a fixture of another result of notes_get_note, where its
// arguments are right.
func resulting(result string) func(*model) {
	return func(m *model) {
		m.result = func(q query, was string) string {
			if q.Params.Name == "notes_get_note" && !strings.Contains(was, "isError") {
				return result
			}
			return was
		}
	}
}

// failing makes a fixture of another answer to bad arguments.
func failing(result string) func(*model) {
	return func(m *model) {
		m.result = func(_ query, was string) string {
			if strings.Contains(was, "isError") {
				return result
			}
			return was
		}
	}
}

// slow makes a fixture of a time that something takes, on a clock of its own.
func slow(method string, d time.Duration) func(*model) {
	return answering(method, func(*model, query) []string {
		time.Sleep(d)
		return nil
	})
}

func header(name, value string) func(*model) {
	return func(m *model) {
		m.handler = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set(name, value)
			next.ServeHTTP(w, r)
		}
	}
}

// lax lets every Origin and Host pass.
func lax(m *model) {
	m.handler = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Header.Del("Origin")
		r.Host = "127.0.0.1"
		next.ServeHTTP(w, r)
	}
}
