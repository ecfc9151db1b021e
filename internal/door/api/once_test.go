package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
)

// A request that is sent again with its Idempotency-Key gets the answer of the
// first, through both routes that run tools, and nobody else does.
func TestIdempotencyKey(t *testing.T) {
	keeps := func(o *Options) { o.Once.SetDefaults() }
	for name, tc := range map[string]struct{ path, body, other string }{
		"chat":   {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"CALL files__delete {\"city\":\"Oslo\"}\nTHEN\nSAY Done."}]}`, hello},
		"stream": {"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"CALL files__delete {\"city\":\"Oslo\"}\nTHEN\nSAY Done."}]}`, hello},
		"call":   {"/v1/tools/call", `{"name":"files__delete","arguments":{"city":"Oslo"},"tool_call_id":"c1"}`, `{"name":"weather__get","arguments":"{}","tool_call_id":"c1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, keeps)
			first := d.do("POST", tc.path, tc.body, "Idempotency-Key", `"k-1"`)
			again := d.do("POST", tc.path, tc.body, "Idempotency-Key", "k-1")
			if first.status != 200 || again.status != 200 || first.body != again.body || again.header.Get("Content-Type") != first.header.Get("Content-Type") {
				t.Errorf("got %d %s\nthen %d %s", first.status, first.body, again.status, again.body)
			}
			if first.header.Get(idempotency.Replayed) != "" || again.header.Get(idempotency.Replayed) != "true" {
				t.Errorf("headers %v, %v", first.header, again.header)
			}
			if got := d.tools.calls(); got != `files__delete {"city":"Oslo"}` {
				t.Errorf("ran %s", got)
			}
			other := d.do("POST", tc.path, tc.other, "Idempotency-Key", "k-1")
			d.checkError(other, http.StatusUnprocessableEntity, "idempotency_key_reused")
			if a := d.do("POST", tc.path, tc.body, "Idempotency-Key", "k-1", "X-Test-Caller", "else"); a.header.Get(idempotency.Replayed) != "" || strings.Count(d.tools.calls(), "\n") != 1 {
				t.Errorf("somebody else got %v; ran %s", a, d.tools.calls())
			}
		})
	}
}

func TestIdempotencyKeyRefused(t *testing.T) {
	d := open(t, nil)
	for _, key := range []string{" ", `""`, `"a`, `"a"b"`, "\u00e4", strings.Repeat("x", 256)} {
		d.checkError(d.chat(hello, "Idempotency-Key", key), http.StatusBadRequest, "idempotency_key_invalid")
	}
}

// A call whose answer is lost is not made again; one that did not run is.
func TestIdempotencyKeyAfterFailure(t *testing.T) {
	const body = `{"name":"files__delete","arguments":{"city":"Oslo"},"tool_call_id":"c1"}`
	d := open(t, func(o *Options) { o.Once.SetDefaults() })
	d.tools.run = func(context.Context, dragoman.Call) (dragoman.Result, error) {
		return dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{Code: dragoman.CodeServerUnavailable, Message: "It is not there."}}, nil
	}
	if a := d.do("POST", "/v1/tools/call", body, "Idempotency-Key", "k"); !strings.Contains(a.body, "It is not there.") {
		t.Errorf("got %v", a)
	}
	d.tools.run = func(context.Context, dragoman.Call) (dragoman.Result, error) {
		return dragoman.Result{Ran: dragoman.RanMaybe}, fmt.Errorf("it broke")
	}
	d.checkError(d.do("POST", "/v1/tools/call", body, "Idempotency-Key", "k"), http.StatusInternalServerError, "internal_error")
	a := d.do("POST", "/v1/tools/call", body, "Idempotency-Key", "k")
	d.checkError(a, http.StatusConflict, "idempotency_answer_lost")
	if a.header.Get("X-Should-Retry") != "false" {
		t.Error("official clients would send it again")
	}
	if got := strings.Count(d.tools.calls(), "delete"); got != 2 {
		t.Errorf("ran %d times", got)
	}
}

// A conversation that broke off after a write goes on from there when it is sent
// again, without the word that it is a retry; where nothing is remembered it is
// refused.
func TestIdempotencyKeyAfterTheModelFailed(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":"Delete it."}]}`
	for name, remembers := range map[string]bool{"remembered": true, "forgotten": false} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			up := &recorder{respond: func(w http.ResponseWriter, r *http.Request, _ []byte) {
				if r.Header.Get("Idempotency-Key") != "" {
					t.Error("the client's key went to the model with one of several requests")
				}
				w.Header().Set("Content-Type", "application/json")
				switch asked++; asked {
				case 1:
					fmt.Fprint(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"files__delete","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
				case 2:
					w.WriteHeader(http.StatusBadRequest)
				default:
					fmt.Fprint(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Gone."},"finish_reason":"stop"}]}`)
				}
			}}
			d := open(t, func(o *Options) {
				o.Once.SetDefaults()
				if !remembers {
					o.Memory = nil
				}
			}, up.model(t, "m"))
			if a := d.chat(body, "Idempotency-Key", "k"); a.status < 400 {
				t.Fatalf("got %v", a)
			}
			a := d.chat(body, "Idempotency-Key", "k")
			if remembers && !strings.Contains(a.body, "Gone.") {
				t.Errorf("got %d %s", a.status, a.body)
			} else if !remembers {
				d.checkError(a, http.StatusConflict, "turn_expired")
			}
			if got := d.tools.calls(); got != "files__delete {}" {
				t.Errorf("ran %s", got)
			}
		})
	}
}

// Routes that are passed on have their keys passed on.
func TestIdempotencyKeyOfRelays(t *testing.T) {
	up := &recorder{}
	d := open(t, nil, up.model(t, "m"))
	d.do("POST", "/v1/batches", `{"model":"m"}`, "Idempotency-Key", "k")
	if got := up.last(t).header.Get("Idempotency-Key"); got != "k" {
		t.Errorf("the upstream got %q", got)
	}
}

// Clients that are told apart by their own keys alone do not get each other's
// answers.
func TestIdempotencyKeyOfStrangers(t *testing.T) {
	up := &recorder{}
	d := open(t, func(o *Options) { o.Once.SetDefaults(); o.ClientCredentials = func() bool { return true } }, up.model(t, "m"))
	for _, credential := range []string{"Bearer one", "Bearer two"} {
		if a := d.chat(hello, "Idempotency-Key", "k", "Authorization", credential); a.status != 200 || a.header.Get(idempotency.Replayed) != "" {
			t.Errorf("%s: %v", credential, a)
		}
	}
}

// Many at a time.
func TestIdempotencyKeyAtOnce(t *testing.T) {
	d := open(t, func(o *Options) { o.Once.SetDefaults() })
	free := make(chan struct{})
	d.tools.run = func(context.Context, dragoman.Call) (dragoman.Result, error) {
		<-free
		return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"deleted":true}}`)}, nil
	}
	var all sync.WaitGroup
	answers := make([]answer, 100)
	for i := range answers {
		all.Go(func() {
			answers[i] = d.do("POST", "/v1/tools/call", `{"name":"files__delete","arguments":{},"tool_call_id":"c1"}`, "Idempotency-Key", "k")
		})
	}
	close(free)
	all.Wait()
	for _, a := range answers {
		if a.status != 200 || a.body != answers[0].body {
			t.Fatalf("got %v and %v", answers[0], a)
		}
	}
	if got := d.tools.calls(); strings.Contains(got, "\n") {
		t.Errorf("ran %s", got)
	}
}
