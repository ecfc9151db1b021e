package e2e

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// upstream is rehearsal behind a judge of what it is asked.
func (w *soak) upstream() *upstream {
	model := &rehearsal.Model{Delay: 2 * time.Millisecond}
	u := &upstream{Server: httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway hung up
		}
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			w.tally.add("writes that the model saw", w.ledger.received(body))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(rw, r)
	}))}
	w.t.Cleanup(u.Close)
	return u
}

// A flaky server stands in front of one that behaves, and treats some calls as
// broken networks, balancers and restarts do, before or after the call was run.
type flaky struct {
	soak  *soak
	label string
	inner http.Handler

	mu   sync.Mutex
	dice *rand.Rand
}

// remote is an entry for a flaky server over HTTP, in this process.
func (w *soak) remote(cfg fakemcp.Config, seed uint64) server {
	cfg.Keep = -1
	f := &flaky{soak: w, label: string(cfg.Era), inner: fakemcp.New(cfg), dice: rand.New(rand.NewPCG(seed, 0))}
	ts := httptest.NewServer(f)
	w.t.Cleanup(ts.CloseClientConnections)
	return server{"url": ts.URL + "/mcp"}
}

func (f *flaky) throw(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.IntN(n)
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		f.inner.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte(`"tools/call"`)) {
		f.inner.ServeHTTP(w, r)
		return
	}
	nonce := nonceOfWrite(string(body))
	switch f.throw(100) {
	case 0, 1: // the connection breaks before anything is done
		panic(http.ErrAbortHandler)
	case 2:
		http.Error(w, "upstream connect error or disconnect/reset before headers", http.StatusServiceUnavailable)
		return
	case 3, 4:
		if r.Header.Get("Mcp-Session-Id") != "" { // restarted: it knows no session
			http.Error(w, "no such session", http.StatusNotFound)
			return
		}
	case 5, 6, 7: // done, and the connection breaks
		f.lose(nonce, r)
		panic(http.ErrAbortHandler)
	case 8, 9: // done, and a balancer in between gives up
		f.lose(nonce, r)
		http.Error(w, "upstream request timeout", http.StatusServiceUnavailable)
		return
	case 10:
		f.lose(nonce, r)
		http.Error(w, "slow down", http.StatusTooManyRequests)
		return
	case 11:
		f.lose(nonce, r)
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	}
	f.soak.ledger.ran(f.label, nonce)
	f.inner.ServeHTTP(w, r)
}

// lose runs a call whose answer nobody gets.
func (f *flaky) lose(nonce string, r *http.Request) {
	f.soak.tally.add("answers lost after the work", 1)
	f.soak.ledger.ran(f.label, nonce)
	f.inner.ServeHTTP(httptest.NewRecorder(), r)
}
