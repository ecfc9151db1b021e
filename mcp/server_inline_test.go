package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// A waitingHost answers a call when it is told to.
type waitingHost struct {
	stillHost
	called chan context.Context // has room for one
	answer chan struct{}
}

func (h *waitingHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	h.called <- ctx
	select {
	case <-h.answer:
		return h.stillHost.Call(ctx, call)
	case <-ctx.Done():
		return dragoman.Result{}, context.Cause(ctx)
	}
}

// A legacy request that is ended here is answered at once, whatever its client takes. What
// it asked for goes on for a while, and no longer.
func TestLegacyRequestEnds(t *testing.T) {
	for _, accept := range []string{"application/json", "application/json, text/event-stream"} {
		for _, comes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, answered: %t", accept, comes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { legacyRequestEnds(t, accept, comes) })
			})
		}
	}
}

func legacyRequestEnds(t *testing.T, accept string, comes bool) {
	host := &waitingHost{called: make(chan context.Context, 1), answer: make(chan struct{})}
	s := &Server{Host: func(*http.Request) (Host, error) { return host, nil }}
	defer s.Close()
	serve := func(ctx context.Context, session, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {accept}, headerSession: {session}}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	session := serve(t.Context(), "", greeting).Header().Get(headerSession)
	ctx, end := context.WithCancel(t.Context())
	began := time.Now()
	var w *httptest.ResponseRecorder
	over := make(chan time.Duration, 1)
	go func() {
		w = serve(ctx, session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)
		over <- time.Since(began)
	}()
	call := <-host.called
	end()
	synctest.Wait()
	if call.Err() != nil {
		t.Fatal("the call was ended with its request:", call.Err())
	}
	if comes {
		time.Sleep(resumeLife / 2)
		close(host.answer)
	}
	took := <-over
	if w.Code != http.StatusServiceUnavailable || !w.Flushed {
		t.Errorf("the request was answered with %d (sent: %t) %s", w.Code, w.Flushed, w.Body)
	}
	if want := map[bool]time.Duration{true: resumeLife / 2, false: resumeLife}[comes]; took != want {
		t.Errorf("the call lasted for %s, want %s", took, want)
	}
}

// Whoever has most sessions gives one up that is not in use, as counting them all would
// find.
func TestCrowd(t *testing.T) {
	var c crowd
	var all []*httpSession
	there := map[*httpSession]bool{}
	counted := func(owner string) (most int) {
		count, free := map[string]int{}, map[string]bool{}
		for h := range there {
			count[h.owner]++
			free[h.owner] = free[h.owner] || !h.used()
		}
		for other, n := range count {
			if n > count[owner]+1 && free[other] {
				most = max(most, n)
			}
		}
		return most
	}
	for i := range 300 {
		h := &httpSession{owner: fmt.Sprint("owner ", i*i%7)}
		if i*i%7 == 2 || i%11 == 0 {
			h.openRequests = 1
		}
		c.add(h)
		all, there[h] = append(all, h), true
		if i%3 == 0 {
			c.remove(all[i/3])
			delete(there, all[i/3])
		}
		for n := range 8 {
			owner := fmt.Sprint("owner ", n)
			want, found := counted(owner), c.yields(owner)
			if (found == nil) != (want == 0) || found != nil && (found.used() || len(c.of[found.owner]) != want) {
				t.Fatalf("for %s: %+v yields, want one of %d", owner, found, want)
			}
		}
	}
	for h := range there {
		c.remove(h)
	}
	if len(c.of) != 0 || len(c.sized) != 0 || c.most != 0 {
		t.Errorf("of nobody there are %v", c)
	}
}
