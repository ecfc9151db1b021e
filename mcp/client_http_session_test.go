package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// sessions makes a legacy server give out sessions s1, s2, …; forget makes it
// forget the present one, and answer with status for it.
func sessions(f *fake, status int) (forget func()) {
	n, known := 0, ""
	var mu sync.Mutex
	f.era = Legacy
	f.on["initialize"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		n++
		known = "s" + string(rune('0'+n))
		w.Header().Set(headerSession, known)
		result(w, id, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}}}`)
	}
	for _, method := range []string{"ping", "tools/call", "tools/list", "resources/subscribe", "resources/unsubscribe", "resources/list", "resources/templates/list", "logging/setLevel"} {
		f.on[method] = func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
			mu.Lock()
			defer mu.Unlock()
			if r.Header.Get(headerSession) != known {
				refuse(w, []byte("null"), status, -32000)
				return
			}
			result(w, id, `{"content":[],"tools":[],"resources":[],"resourceTemplates":[]}`)
		}
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		known = "none"
	}
}

func TestSessionRenewed(t *testing.T) {
	for _, status := range []int{404, 400} {
		srv := &fake{on: on{}}
		forget := sessions(srv, status)
		connected(t, srv, &ClientOptions{LogLevel: "error"}, func(t *testing.T, c *Client) {
			for _, uri := range []string{"a:", "b:"} {
				if _, err := c.request(t.Context(), "resources/subscribe", json.RawMessage(`{"uri":"`+uri+`"}`)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.request(t.Context(), "resources/unsubscribe", json.RawMessage(`{"uri":"b:"}`)); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute) // all lists are there
			srv.mu.Lock()
			srv.log = nil
			srv.mu.Unlock()
			forget()
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() {
					if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
						t.Errorf("status %d: %+v, %v", status, res.Problem, err)
					}
				})
			}
			calls.Wait()
			<-time.After(time.Minute)
			_ = c.Close()
			got := srv.seen()
			slices.Sort(got)
			got = slices.Compact(got) // the second call may come before or after the renewal
			want := []string{
				"DELETE s2 2025-06-18",
				"GET s2 2025-06-18",
				"initialize",
				"logging/setLevel s2 2025-06-18",
				"notifications/initialized s2 2025-06-18",
				"resources/list s2 2025-06-18",
				"resources/subscribe s2 2025-06-18",
				"resources/templates/list s2 2025-06-18",
				"tools/call s1 2025-06-18",
				"tools/call s2 2025-06-18",
				"tools/list s2 2025-06-18",
			}
			if status == 400 { // which may mean something else
				want = slices.Insert(want, slices.Index(want, "resources/list s2 2025-06-18"), "ping s1 2025-06-18")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status %d (-want +got):\n%s", status, diff)
			}
		})
	}
}

// TestReplayedAgain: what gave a session its state is said again on the renewed one, also
// where the way to the server breaks just then.
func TestReplayedAgain(t *testing.T) {
	srv := &fake{on: on{}}
	forget := sessions(srv, 404)
	subscribe, refused := srv.on["resources/subscribe"], false
	srv.on["resources/subscribe"] = func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage) {
		if r.Header.Get(headerSession) == "s2" && !refused {
			refused = true
			http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
			return
		}
		subscribe(w, r, id, params)
	}
	connected(t, srv, nil, func(t *testing.T, c *Client) {
		if _, err := c.request(t.Context(), "resources/subscribe", json.RawMessage(`{"uri":"a:"}`)); err != nil {
			t.Fatal(err)
		}
		forget()
		if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
			t.Errorf("%+v, %v", res.Problem, err)
		}
		<-time.After(time.Minute)
		if n := srv.count("resources/subscribe"); n != 3 {
			t.Errorf("the server was asked %d times", n)
		}
	})
}

// TestSessionLost: a server that forgets every session at once is given up, and
// the call was not made.
func TestSessionLost(t *testing.T) {
	srv := &fake{on: on{}}
	forget := sessions(srv, 404)
	var mode atomic.Value
	mode.Store("")
	inner := srv.on["initialize"]
	srv.on["initialize"] = func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage) {
		switch mode.Load() {
		case "broken":
			w.WriteHeader(500)
			return
		case "forgetful":
			defer forget()
		}
		inner(w, r, id, params)
	}
	connected(t, srv, nil, func(t *testing.T, c *Client) {
		mode.Store("forgetful")
		forget()
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeProtocol {
			t.Errorf("got %+v, %v", res, err)
		}
		mode.Store("broken")
		res, err = c.Call(t.Context(), dragoman.Call{Tool: echo})
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeServerUnavailable {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

// TestRenewalGivenUp: whoever needs a session first may give up while it is renewed. It is
// renewed again for the next one, since servers refuse what comes on a session whose
// handshake had no end.
func TestRenewalGivenUp(t *testing.T) {
	for name, stop := range map[string]string{"before the answer was read": "initialize", "before the end": "notifications/initialized"} {
		t.Run(name, func(t *testing.T) {
			srv := &fake{on: on{}}
			forget := sessions(srv, 404)
			ctx, giveUp := context.WithCancel(t.Context())
			var half, greeted atomic.Bool
			initialize, call := srv.on["initialize"], srv.on["tools/call"]
			srv.on["initialize"] = func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage) {
				greeted.Store(false)
				if stop == "initialize" && half.CompareAndSwap(true, false) {
					initialize(httptest.NewRecorder(), r, id, params) // it is s2 now
					w.Header().Set(headerSession, "s2")
					events(w, ": soon\n\n")
					time.Sleep(time.Second) // in which the client reads that
					giveUp()
					return
				}
				initialize(w, r, id, params)
			}
			srv.on["notifications/initialized"] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
				if half.CompareAndSwap(true, false) {
					giveUp()
					<-r.Context().Done()
					return
				}
				greeted.Store(true)
				w.WriteHeader(http.StatusAccepted)
			}
			srv.on["tools/call"] = func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage) {
				if !greeted.Load() {
					refuse(w, id, http.StatusOK, codeInvalidParams) // as the official SDK for Python does
					return
				}
				call(w, r, id, params)
			}
			connected(t, srv, nil, func(t *testing.T, c *Client) {
				forget()
				half.Store(true)
				if res, err := c.Call(ctx, dragoman.Call{Tool: echo}); !errors.Is(err, context.Canceled) {
					t.Errorf("who gave up got %+v, %v", res, err)
				}
				if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
					t.Errorf("the next one got %v, %v", res.Problem, err)
				}
				<-time.After(time.Minute)
				if got := srv.seen(); !slices.Contains(got, "GET s3 2025-06-18") {
					t.Errorf("nobody listens on the new session: %q", got)
				}
			})
		})
	}
}

func TestResumption(t *testing.T) {
	for name, tc := range map[string]struct {
		first string                                                  // what the POST stream brings before it breaks
		get   func(w http.ResponseWriter, r *http.Request, tries int) // the GET that resumes
		want  string                                                  // the result, or the code of the problem
		took  time.Duration                                           // -1 for less than a minute, -2 for any
	}{
		"resumed": {"id: 7\nretry: 3000\ndata:\n\n", func(w http.ResponseWriter, r *http.Request, _ int) {
			if r.Header.Get(headerLast) == "7" {
				events(w, "id: 8\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":ID,\"result\":{\"ok\":1}}\n\n")
			}
		}, `{"ok":1}`, 3 * time.Second},
		"resumed twice": {"id:a\r\nretry:1000\r\ndata:\r\n\r\n", func(w http.ResponseWriter, r *http.Request, _ int) {
			if r.Header.Get(headerLast) == "a" {
				events(w, "id: b\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
			} else {
				events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"ok\":2}}\n\n")
			}
		}, `{"ok":2}`, 2 * time.Second},
		"resumed later": {"id: 7\nretry: 10\ndata:\n\n", func(w http.ResponseWriter, r *http.Request, tries int) {
			if tries <= 3 {
				w.WriteHeader([]int{http.StatusConflict, http.StatusBadGateway, http.StatusTooManyRequests}[tries-1])
				return
			}
			events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"ok\":3}}\n\n")
		}, `{"ok":3}`, -1},
		"quiet": {"id: 7\nretry: 10\ndata:\n\n", func(w http.ResponseWriter, r *http.Request, tries int) {
			events(w, ":\n\n")
			time.Sleep(openForLong + time.Second) // and then something on the way ends it
			if tries > 2*resumptions {
				events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"ok\":4}}\n\n")
			}
		}, `{"ok":4}`, -2},
		"not numbered": {": hi\n\n", nil, dragoman.CodeUnknownOutcome, 0},
		"no GET":       {"id: 7\nretry: 10\ndata:\n\n", func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(405) }, dragoman.CodeUnknownOutcome, 10 * time.Millisecond},
		"in vain":      {"id: 7\nretry: 10\ndata:\n\n", func(w http.ResponseWriter, _ *http.Request, _ int) { events(w, ":\n\n") }, dragoman.CodeUnknownOutcome, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var id string
			tries := 0
			srv := &fake{era: Legacy, on: on{}}
			srv.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, raw, _ json.RawMessage) {
				id = string(raw)
				events(w, tc.first)
			}
			srv.on["GET"] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
				if r.Header.Get(headerLast) == "" {
					w.WriteHeader(405)
					return
				}
				tries++
				tc.get(&filling{w, id}, r, tries)
			}
			connected(t, srv, nil, func(t *testing.T, c *Client) {
				start := time.Now()
				res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
				if err != nil {
					t.Fatal(err)
				}
				got := string(res.Content)
				if res.Problem != nil {
					got = res.Problem.Code
				}
				if took := time.Since(start); got != tc.want || tc.took >= 0 && took != tc.took || tc.took >= -1 && took > time.Minute {
					t.Errorf("got %s after %s", got, took)
				}
			})
		})
	}
}

// filling writes the id of the call in place of ID.
type filling struct {
	http.ResponseWriter
	id string
}

func (f *filling) Write(b []byte) (int, error) {
	_, err := f.ResponseWriter.Write([]byte(strings.ReplaceAll(string(b), "ID", f.id)))
	return len(b), err
}
func (f *filling) Flush() { f.ResponseWriter.(http.Flusher).Flush() }

// TestCancellation: the server hears at once that nobody waits any more, in the
// way of its era.
func TestCancellation(t *testing.T) {
	for _, era := range []Era{Legacy, Modern} {
		for _, streaming := range []bool{false, true} {
			var id, cancelledID string
			gone := false
			srv := &fake{era: era, on: on{}}
			srv.on["tools/call"] = func(w http.ResponseWriter, r *http.Request, raw, _ json.RawMessage) {
				id = string(raw)
				if streaming {
					events(w, ": working\n\n")
				}
				<-r.Context().Done()
				gone = true
			}
			srv.on["notifications/cancelled"] = func(w http.ResponseWriter, _ *http.Request, _, params json.RawMessage) {
				cancelledID = string(object(params).Get("requestId"))
				w.WriteHeader(202)
			}
			connected(t, srv, nil, func(t *testing.T, c *Client) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				_, err := c.Call(ctx, dragoman.Call{Tool: echo})
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second+200*time.Millisecond {
					t.Errorf("%s: %v after %s", era, err, time.Since(start))
				}
				synctest.Wait()
				if era == Legacy && (cancelledID == "" || cancelledID != id) {
					t.Errorf("cancelled %q, the call was %q", cancelledID, id)
				}
				if !gone || era == Modern && cancelledID != "" {
					t.Errorf("%s: the request goes on: %t; cancelled %q", era, !gone, cancelledID)
				}
			})
		}
	}
}

// TestCloseEndsCalls: calls that run when the client is closed end at once.
func TestCloseEndsCalls(t *testing.T) {
	for _, era := range []Era{Legacy, Modern} {
		srv := &fake{era: era, on: on{"tools/call": func(_ http.ResponseWriter, r *http.Request, _, _ json.RawMessage) { <-r.Context().Done() }}}
		connected(t, srv, nil, func(t *testing.T, c *Client) {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
				if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownOutcome {
					t.Errorf("%s: %+v, %v", era, res, err)
				}
			}()
			synctest.Wait()
			_ = c.Close()
			<-ended
			if !errors.Is(c.Err(), ErrClosed) {
				t.Errorf("Err: %v", c.Err())
			}
			<-c.Done()
			if res, _ := c.Call(t.Context(), dragoman.Call{Tool: echo}); res.Problem == nil || res.Problem.Code != dragoman.CodeServerUnavailable {
				t.Errorf("a call after Close: %+v", res)
			}
		})
	}
}

// TestListening: the server's own stream brings changes and requests, and is
// opened again when it ends.
func TestListening(t *testing.T) {
	var mu sync.Mutex
	var opened []string
	srv := &fake{era: Legacy, on: on{"tools/list": noTools}}
	srv.on["GET"] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
		mu.Lock()
		opened = append(opened, r.Header.Get(headerLast))
		n := len(opened)
		mu.Unlock()
		switch n {
		case 1:
			events(w, "id: 1\nretry: 20000\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		case 2:
			w.WriteHeader(503)
		case 3:
			events(w, "data: garbage\n\nevent: other\ndata: {}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\n")
			<-r.Context().Done()
		}
	}
	answers := 0
	srv.on[""] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		if string(id) == "5" {
			answers++
		}
		w.WriteHeader(202)
	}
	connected(t, srv, &ClientOptions{}, func(t *testing.T, c *Client) {
		<-time.After(2 * time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if n := srv.count("tools/list"); n != 2 || !slices.Equal(opened, []string{"", "1", "1"}) || answers != 1 {
			t.Errorf("listed %d times, opened %q, answers %d", n, opened, answers)
		}
	})
}

// TestListeningGoesOn: a server that has lost the session while nobody asked for anything is
// greeted anew (MCP 2025-11-25, "Session Management"), and one that has not noticed yet that
// a stream broke is asked again.
func TestListeningGoesOn(t *testing.T) {
	for status, want := range map[int]string{http.StatusNotFound: "s2", http.StatusBadRequest: "s2", http.StatusConflict: "s1"} {
		srv := &fake{on: on{}}
		forget := sessions(srv, http.StatusNotFound)
		var streams atomic.Int32
		srv.on["GET"] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
			switch streams.Add(1) {
			case 1:
				events(w, "id: 1\ndata:\n\n") // what was said will be said again
				time.Sleep(time.Minute)
				if status != http.StatusConflict {
					forget()
				}
			case 2:
				w.WriteHeader(status)
			default:
				events(w, ": here\n\n")
				<-r.Context().Done()
			}
		}
		connected(t, srv, &ClientOptions{}, func(t *testing.T, _ *Client) {
			<-time.After(10 * time.Minute)
			got := srv.seen()
			if i := slices.Index(got, "GET s1 2025-06-18"); !slices.Contains(got[i+1:], "GET "+want+" 2025-06-18") || streams.Load() != 3 {
				t.Errorf("after status %d: %d streams, %q", status, streams.Load(), got)
			}
		})
	}
}

// TestListeningDespiteAProxy: a status that says for one moment that there is no stream, where
// there was one and the session goes on, ends nothing: what was watched is heard of again.
func TestListeningDespiteAProxy(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest, http.StatusRequestTimeout} {
		srv := &fake{on: on{}}
		sessions(srv, http.StatusNotFound)
		var streams atomic.Int32
		srv.on["GET"] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
			switch streams.Add(1) {
			case 1:
				events(w, ": here\n\n")
				time.Sleep(time.Minute)
			case 2:
				http.Error(w, "<html>not from the server</html>", status)
			default:
				events(w, ": here\n\n")
				<-r.Context().Done()
			}
		}
		connected(t, srv, &ClientOptions{}, func(t *testing.T, _ *Client) {
			<-time.After(10 * time.Minute)
			if got := srv.seen(); streams.Load() != 3 {
				t.Errorf("after status %d: %d streams, %q", status, streams.Load(), got)
			}
		})
	}
}

// TestListeningDespiteIdleTimeouts: what ends quiet streams sooner than in a minute, as many
// proxies do, does not make the pauses between them longer: nobody listens meanwhile.
func TestListeningDespiteIdleTimeouts(t *testing.T) {
	for era, method := range map[Era]string{Legacy: "GET", Modern: listenMethod} {
		srv := &fake{era: era, caps: `{"tools":{"listChanged":true}}`, on: on{"tools/list": noTools}}
		if era == Legacy {
			sessions(srv, http.StatusNotFound)
		}
		var mu sync.Mutex
		var longest time.Duration
		var ended time.Time
		srv.on[method] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
			mu.Lock()
			if !ended.IsZero() {
				longest = max(longest, time.Since(ended))
			}
			mu.Unlock()
			events(w, ": here\n\n")
			_ = sleep(r.Context(), 30*time.Second)
			mu.Lock()
			defer mu.Unlock()
			ended = time.Now()
		}
		connected(t, srv, &ClientOptions{}, func(t *testing.T, _ *Client) {
			<-time.After(10 * time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if longest == 0 || longest > 2*time.Second {
				t.Errorf("%s: nobody listened for %s", era, longest)
			}
		})
	}
}

// TestListeningAtSlowFailures: a server that refuses to be listened to after a while, as one
// with too much to do does, or does not answer, is asked less and less often, as one that
// refuses at once.
func TestListeningAtSlowFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		refuse func(http.ResponseWriter)
		most   int32
	}{
		"status 503": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, 30},
		"no answer":  {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 40}, // net/http makes a GET again by itself
	} {
		for era, method := range map[Era]string{Legacy: "GET", Modern: listenMethod} {
			srv := &fake{era: era, caps: `{"tools":{"listChanged":true}}`, on: on{"tools/list": noTools}}
			if era == Legacy {
				sessions(srv, http.StatusNotFound)
			}
			var asked atomic.Int32
			srv.on[method] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
				asked.Add(1)
				_ = sleep(r.Context(), 2*openForLong)
				tt.refuse(w)
			}
			connected(t, srv, &ClientOptions{}, func(t *testing.T, _ *Client) {
				<-time.After(10 * time.Minute)
				if n := asked.Load(); n > tt.most {
					t.Errorf("%s, %s: asked %d times", era, name, n)
				}
			})
		}
	}
}

// TestListeningAfterFailures: where a modern server could not be listened to for a while, its
// lists are asked for when it can be again: nobody told what changed meanwhile. That the
// server has taken what a caller subscribed to tells nothing of lists.
func TestListeningAfterFailures(t *testing.T) {
	start := sync.OnceValue(time.Now)
	var listed, listened atomic.Int64
	srv := &fake{era: Modern, caps: `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`, on: on{"tools/list": func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage) {
		listed.Store(int64(time.Since(start())))
		noTools(w, r, id, params)
	}}}
	srv.on[listenMethod] = func(w http.ResponseWriter, r *http.Request, _, params json.RawMessage) {
		at := time.Since(start())
		switch lists := strings.Contains(string(params), "toolsListChanged"); {
		case lists && at > time.Minute && at < 2*time.Minute:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case lists:
			listened.Store(int64(at))
		}
		events(w, `data: {"jsonrpc":"2.0","method":"`+Acknowledged+`","params":{}}`+"\n\n")
		_ = sleep(r.Context(), max(time.Minute-at, 0))
		if at > time.Minute {
			<-r.Context().Done()
		}
	}
	connected(t, srv, &ClientOptions{}, func(t *testing.T, c *Client) {
		<-time.After(119 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, _ = c.Call(ctx, dragoman.Call{Method: listenMethod, Arguments: json.RawMessage(`{"notifications":{"resourceSubscriptions":["a:"]}}`)})
		if listened.Load() < int64(2*time.Minute) || listed.Load() < listened.Load() {
			t.Errorf("listened to again after %s, and listed last after %s", time.Duration(listened.Load()), time.Duration(listed.Load()))
		}
	})
}

// TestListeningToALegacyServerAfterFailures: so it is with a legacy server, of whose stream
// nobody knows where it would go on.
func TestListeningToALegacyServerAfterFailures(t *testing.T) {
	for name, first := range map[string]time.Duration{"since it began": 0, "after a stream": time.Minute} {
		start := sync.OnceValue(time.Now)
		var listed, listened atomic.Int64
		srv := &fake{on: on{}}
		sessions(srv, http.StatusNotFound)
		srv.on["tools/list"] = func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage) {
			listed.Store(int64(time.Since(start())))
			noTools(w, r, id, params)
		}
		srv.on["GET"] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
			at := time.Since(start())
			if at >= first && at < 2*time.Minute {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			listened.Store(int64(at))
			events(w, ": listening\n\n")
			_ = sleep(r.Context(), max(first-at, 0))
			if at >= first {
				<-r.Context().Done()
			}
		}
		connected(t, srv, &ClientOptions{}, func(t *testing.T, _ *Client) {
			<-time.After(time.Hour)
			if listened.Load() < int64(2*time.Minute) || listed.Load() < listened.Load() {
				t.Errorf("%s: listened to again after %s, and listed last after %s", name, time.Duration(listened.Load()), time.Duration(listed.Load()))
			}
		})
	}
}

// TestListeningFromAnywhere: a server that does not know any more where its stream broke is
// asked for a new one.
func TestListeningFromAnywhere(t *testing.T) {
	srv := &fake{on: on{}}
	sessions(srv, http.StatusNotFound)
	var opened atomic.Int32
	srv.on["GET"] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
		if r.Header.Get(headerLast) != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		events(w, "id: 1\ndata:\n\n")
		if opened.Add(1) == 1 {
			time.Sleep(time.Minute)
			return
		}
		<-r.Context().Done()
	}
	connected(t, srv, &ClientOptions{}, func(t *testing.T, _ *Client) {
		<-time.After(10 * time.Minute)
		if opened.Load() != 2 {
			t.Errorf("%d streams, %q", opened.Load(), srv.seen())
		}
	})
}

// TestSubscription: a modern server tells about changes on the stream of a
// subscription, which is opened again when it breaks, until it is refused.
func TestSubscription(t *testing.T) {
	var n atomic.Int32
	srv := &fake{era: Modern, caps: `{"tools":{"listChanged":true},"resources":{"listChanged":true}}`, on: on{}}
	srv.on["subscriptions/listen"] = func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage) {
		if got := string(object(params).Get("notifications")); got != `{"toolsListChanged":true,"resourcesListChanged":true}` {
			t.Errorf("filter %s", got)
		}
		switch n.Add(1) {
		case 1:
			events(w, ":\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n")
			<-time.After(10 * time.Second)
		case 2:
			events(w, ":\n\n")
			<-time.After(10 * time.Second)
			events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":"+string(id)+",\"result\":{}}\n\n")
		default:
			refuse(w, id, 404, -32601)
		}
	}
	srv.on["tools/list"] = noTools
	srv.on["resources/list"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		result(w, id, `{"resources":[]}`)
	}
	srv.on["resources/templates/list"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		result(w, id, `{"resourceTemplates":[]}`)
	}
	connected(t, srv, &ClientOptions{}, func(t *testing.T, c *Client) {
		<-time.After(5 * time.Minute)
		// At first, when resources changed, and when a subscription was interrupted.
		if tools, resources := srv.count("tools/list"), srv.count("resources/list"); n.Load() != 3 || tools != 3 || resources != 4 {
			t.Errorf("%d subscriptions, listed tools %d times, resources %d times", n.Load(), tools, resources)
		}
	})
}

// TestRelabel: a call whose headers do not match the tool's present definition
// is made again with those that do.
func TestRelabel(t *testing.T) {
	srv := &fake{era: Modern, on: on{}}
	var got []string
	srv.on["tools/call"] = func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
		got = append(got, r.Header.Get("Mcp-Param-Region"))
		if r.Header.Get("Mcp-Param-Region") != "=?base64?w7xiZXI=?=" {
			refuse(w, id, 400, codeHeaderMismatch)
			return
		}
		result(w, id, `{"content":[]}`)
	}
	srv.on["tools/list"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		result(w, id, `{"tools":[{"name":"echo","inputSchema":{"properties":{"a":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}}}]}`)
	}
	connected(t, srv, nil, func(t *testing.T, c *Client) {
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo, Arguments: json.RawMessage(`{"a":{"r":"\u00fcber"}}`)})
		if err != nil || res.Problem != nil || len(got) != 2 || got[0] != "" {
			t.Errorf("%+v, %v, headers %q", res.Problem, err, got)
		}
		l, _ := c.List(t.Context())
		res, err = c.Call(t.Context(), dragoman.Call{Tool: l.Tools.Find("echo"), Arguments: json.RawMessage(`{"a":{"r":"über"}}`)})
		if err != nil || res.Problem != nil || len(got) != 3 {
			t.Errorf("%+v, %v, headers %q", res.Problem, err, got)
		}
	})
	got = nil
	connected(t, srv, &ClientOptions{Pinned: true}, func(t *testing.T, c *Client) {
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo, Arguments: json.RawMessage(`{"a":{"r":"\u00fcber"}}`)})
		if err != nil || res.Problem == nil || len(got) != 1 {
			t.Errorf("with another definition than the one that was approved: %+v, %v, headers %q", res, err, got)
		}
	})
}

// TestLegacyErrorIsNoMismatch: what is the code for a mismatch of headers in the modern era
// is any error of a legacy server's own: its call is not made again, and may have run.
func TestLegacyErrorIsNoMismatch(t *testing.T) {
	srv := &fake{era: Legacy, on: on{}}
	calls := 0
	srv.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		calls++
		refuse(w, id, http.StatusOK, codeHeaderMismatch)
	}
	srv.on["tools/list"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		result(w, id, `{"tools":[{"name":"echo","inputSchema":{}}]}`)
	}
	connected(t, srv, nil, func(t *testing.T, c *Client) {
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
		if err != nil || res.Problem == nil || res.Ran != dragoman.RanMaybe || calls != 1 {
			t.Errorf("%d calls, ran %v, %v, %v", calls, res.Ran, res.Problem, err)
		}
	})
}

// TestVersionWithdrawn: a server that does not speak the version any more that
// it spoke ends the client, so that somebody connects anew.
func TestVersionWithdrawn(t *testing.T) {
	srv := &fake{era: Modern, on: on{"tools/call": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		refuse(w, id, 400, codeUnsupportedVersion)
	}}}
	connected(t, srv, nil, func(t *testing.T, c *Client) {
		if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem == nil {
			t.Errorf("%+v, %v", res, err)
		}
		<-c.Done()
		if !errors.Is(c.Err(), ErrVersion) {
			t.Errorf("Err: %v", c.Err())
		}
	})
}

// TestLegacyErrorIsNoVersion: what is the code for a version that is not spoken in the modern
// era is any error of a legacy server's own: it ends nothing but its call.
func TestLegacyErrorIsNoVersion(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		srv := &fake{era: Legacy, on: on{}}
		srv.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			refuse(w, id, status, codeUnsupportedVersion)
		}
		connected(t, srv, nil, func(t *testing.T, c *Client) {
			for range 2 {
				res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
				if e, ok := errors.AsType[*RPCError](res.Problem); err != nil || !ok || e.Code != codeUnsupportedVersion || res.Ran != dragoman.RanMaybe {
					t.Errorf("%d: ran %v, %v, %v", status, res.Ran, res.Problem, err)
				}
			}
			if c.Err() != nil {
				t.Errorf("%d: the connection ended: %v", status, c.Err())
			}
		})
	}
}

// refusing is a transport that has to show something to the server, and says that it can not
// where the server has refused what it showed.
type refusing struct {
	next http.RoundTripper
	says error
}

type refusedError struct{ error }

func (refusedError) Unhandled() bool { return true }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		return nil, r.says
	}
	return resp, err
}

// TestRefusedByTheTransport: a call that the server refused, and that could not be made again
// since the transport got nothing else to show, did not run; nor did one whose stream it refused
// each time.
func TestRefusedByTheTransport(t *testing.T) {
	srv := &fake{era: Modern, on: on{"tools/call": func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) {
		w.WriteHeader(http.StatusUnauthorized)
	}}}
	for _, says := range []error{
		fmt.Errorf("getting a token: %w", refusedError{errors.New("nobody to ask")}),
		http2.StreamError{StreamID: 1, Code: http2.ErrCodeRefusedStream},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := serveHTTP(t, srv)
			tr.Client.Transport = refusing{tr.Client.Transport, says}
			c, err := Connect(t.Context(), tr, &ClientOptions{Passive: true})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
			if err != nil || res.Ran != dragoman.RanNot || res.Problem == nil || res.Problem.Code != dragoman.CodeServerUnavailable {
				t.Errorf("%v: ran %v, %v, %v", says, res.Ran, res.Problem, err)
			}
		})
	}
}

// TestOtherEra: a server that has been replaced by one of the other era, without an outage, is
// noticed when it is asked whether it is there, so that somebody connects anew. One that only
// refuses the question is not.
func TestOtherEra(t *testing.T) {
	for _, tc := range []struct {
		name         string
		was, now     Era
		status, code int // of the answer to Ping
		ends         bool
	}{
		{"modern", Legacy, Modern, http.StatusBadRequest, codeUnsupportedVersion, true},
		{"modern, without a word of versions", Legacy, Modern, http.StatusBadRequest, codeInvalidParams, true},
		{"legacy", Modern, Legacy, http.StatusBadRequest, -32000, true},
		{"legacy, with a session missing", Modern, Legacy, http.StatusNotFound, -32001, true},
		{"legacy without ping", Legacy, Legacy, http.StatusOK, codeMethodNotFound, false},
		{"legacy with codes of its own", Legacy, Legacy, http.StatusOK, codeUnsupportedVersion, false},
		{"modern with trouble", Modern, Modern, http.StatusOK, codeInternal, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			next := &fake{era: tc.now, on: on{}}
			refused := func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
				refuse(w, id, tc.status, tc.code)
			}
			if tc.was == Legacy {
				next.on["ping"] = refused
			} else {
				next.on["server/discover"] = refused
			}
			if tc.now == Modern {
				next.on["initialize"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
					refuse(w, id, http.StatusBadRequest, codeUnsupportedVersion)
				}
			}
			var there place
			there.Store(&fake{era: tc.was})
			there.connected(t, func(t *testing.T, c *Client) {
				there.Store(next)
				err := c.Ping(t.Context())
				if answered := errors.As(err, new(*RPCError)); answered == tc.ends {
					t.Errorf("Ping: %v", err)
				}
				if ended := errors.Is(c.Err(), ErrVersion); ended != tc.ends || (c.Err() != nil) != tc.ends {
					t.Errorf("Err: %v", c.Err())
				}
			})
		})
	}
}

// A place is where one server can take that of another.
type place struct{ atomic.Pointer[fake] }

func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.Load().ServeHTTP(w, r) }

// connected runs f with a client of the server that is there, in a bubble of synctest.
func (p *place) connected(t *testing.T, f func(*testing.T, *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := Connect(t.Context(), serveHTTP(t, p), &ClientOptions{Passive: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f(t, c)
	})
}

// TestTroubleOfBothEras: a server of both eras that refuses to say once whether it is there
// is the one that it was, and calls that run there go on.
func TestTroubleOfBothEras(t *testing.T) {
	var there place
	var c *Client
	there.Store(&fake{era: Modern, on: on{"tools/call": func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
		well := there.Load()
		there.Store(&fake{era: Modern, on: on{
			"server/discover": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
				there.Store(well)
				refuse(w, id, http.StatusOK, codeInternal)
			},
		}})
		if err := c.Ping(r.Context()); !errors.As(err, new(*RPCError)) {
			t.Errorf("Ping: %v", err)
		}
		result(w, id, `{"content":[]}`)
	}, "initialize": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		result(w, id, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
	}}})
	there.connected(t, func(t *testing.T, client *Client) {
		c = client
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
		if err != nil || res.Problem != nil || c.Err() != nil {
			t.Errorf("the call: %v, %v; the client: %v", res.Problem, err, c.Err())
		}
	})
}

// TestSSEElsewhere: a server that takes no posts, and whose HTTP+SSE leads to another origin, as
// it does behind a proxy that it was not told of, is refused for that.
func TestSSEElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			events(w, "event: endpoint\ndata: http://inner.test/post\n\n")
			<-r.Context().Done()
		}))
		_, err := Connect(t.Context(), HTTP{URL: tr.URL, Client: tr.Client}, &ClientOptions{Passive: true})
		if !errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), "http://inner.test/post") {
			t.Errorf("%v", err)
		}
	})
}

// TestSSEAddress: HTTP+SSE posts to addresses of its own origin alone.
func TestSSEAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"/post?s=1": true, "post": true, "http://server.test/x": true,
		"http://evil.test/x": false, "//evil.test/x": false, "https://server.test/x": false, "": true,
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := make(chan string, 10)
			tr := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					events(w, "event: endpoint\ndata: "+address+"\n\n")
					for {
						select {
						case a := <-answers:
							events(w, "event: message\ndata: "+a+"\n\n")
						case <-r.Context().Done():
							return
						}
					}
				}
				var b strings.Builder
				_, _ = io.Copy(&b, r.Body)
				o := object([]byte(b.String()))
				if id := o.Get("id"); id != nil {
					method, _ := rawjson.String(o.Get("method"))
					res := `{"content":[]}`
					if method == "initialize" {
						res = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}`
					}
					answers <- `{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + res + `}`
				}
				w.WriteHeader(202)
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c, err := Connect(ctx, HTTP{URL: tr.URL, Client: tr.Client, SSE: true}, &ClientOptions{Passive: true})
			if (err == nil) != ok {
				t.Fatalf("%q: %v", address, err)
			}
			if err != nil {
				return
			}
			defer c.Close()
			if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
				t.Errorf("%q: %+v, %v", address, res, err)
			}
		})
	}
}
