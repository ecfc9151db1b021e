package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A curious server asks one question for each call, whose arguments name the
// question, and answers the call when it has the answer. It is of the legacy era.
type curious struct {
	heard
	mu    sync.Mutex
	calls map[string]string // ids of calls by those of questions
}

func (s *curious) serve(line []byte, out io.Writer) {
	s.add(line)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := object(line)
	id := string(o.Get("id"))
	switch method, _ := rawjson.String(o.Get("method")); method {
	case "tools/call":
		q := string(object(object(o.Get("params")).Get("arguments")).Get("q"))
		if q == "" {
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"plain":1}}`+"\n", id)
			return
		}
		s.calls[q] = id
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"?"}}`+"\n", q)
	case "":
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"got":%s}}`+"\n", s.calls[id], o.Get("result"))
	}
}

// askingOne connects to a curious server. Calls follow one another: over one channel
// a question belongs to a call only where no other is on its way.
func askingOne(t *testing.T, o ClientOptions, f func(*testing.T, *Client, *curious)) {
	t.Helper()
	s := &curious{calls: map[string]string{}}
	o.Era, o.Passive, o.Can = Legacy, true, dragoman.AskForm
	pipedWith(t, &o, s.serve, func(t *testing.T, c *Client) { f(t, c, s) })
}

func question1(q string) dragoman.Call {
	return dragoman.Call{Tool: echo, Can: dragoman.AskForm, Arguments: json.RawMessage(`{"q":"` + q + `"}`)}
}

func answering(call dragoman.Call, res dragoman.Result) dragoman.Call {
	call.Answers = &dragoman.Answers{State: res.Asks.State, Ran: res.Ran, Replies: map[string]json.RawMessage{}}
	for _, q := range res.Asks.Questions {
		call.Answers.Replies[q.Key] = json.RawMessage(`{"action":"decline"}`)
	}
	return call
}

// TestParkedCallOutlivesItsLeg: when a call is parked, the end of what made it
// means nothing, and the time that the server has does not run.
func TestParkedCallOutlivesItsLeg(t *testing.T) {
	askingOne(t, ClientOptions{Timeout: time.Minute}, func(t *testing.T, c *Client, s *curious) {
		ctx, cancel := context.WithCancel(t.Context())
		call := question1("a")
		res, err := c.Call(ctx, call)
		if err != nil || res.Asks == nil || !res.Asks.Held || time.Until(res.Asks.Expires) != parkLife || res.Ran != dragoman.RanMaybe {
			t.Fatalf("%+v, %v", res, err)
		}
		cancel()
		time.Sleep(4 * time.Minute)
		if c.Idle() {
			t.Error("a client with a parked call is idle")
		}
		asked := res.Asks
		res, err = c.Call(t.Context(), answering(call, res))
		if err != nil || string(res.Content) != `{"got":{"action":"decline"}}` || res.Ran != dragoman.RanYes {
			t.Errorf("%s %+v, %v", res.Content, res.Problem, err)
		}
		select {
		case <-asked.Withdrawn:
		default:
			t.Error("nobody was told that the answers were brought")
		}
		if s.holding("notifications/cancelled") != 0 {
			t.Errorf("the server heard %q", s.all)
		}
		if !c.Idle() {
			t.Error("the call goes on")
		}
	})
}

// TestNobodyWaitsForAnswers: a server that takes its question back, or answers the call
// without waiting, says so to whoever is asking, and the call goes on.
func TestNobodyWaitsForAnswers(t *testing.T) {
	for name, tt := range map[string]struct{ at10, at20 string }{
		"taken back": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`, `{"jsonrpc":"2.0","id":%s,"result":{}}`},
		"answered":   {`{"jsonrpc":"2.0","id":%s,"result":{}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			serve := func(line []byte, out io.Writer) {
				if !strings.Contains(string(line), "tools/call") {
					return
				}
				_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`+"\n")
				for after, says := range map[time.Duration]string{10 * time.Second: tt.at10, 20 * time.Second: tt.at20} {
					time.AfterFunc(after, func() {
						_, _ = io.WriteString(out, strings.ReplaceAll(says, "%s", string(object(line).Get("id")))+"\n")
					})
				}
			}
			o := &ClientOptions{Era: Legacy, Passive: true, Can: dragoman.AskForm, Timeout: time.Minute}
			pipedWith(t, o, serve, func(t *testing.T, c *Client) {
				start, call := time.Now(), question1("q")
				res, err := c.Call(t.Context(), call)
				if err != nil || res.Asks == nil || res.Asks.Withdrawn == nil {
					t.Fatalf("%+v, %v", res, err)
				}
				<-res.Asks.Withdrawn
				if took := time.Since(start); took != 10*time.Second {
					t.Errorf("it was said after %s", took)
				}
				call.Answers = &dragoman.Answers{State: res.Asks.State, Ran: res.Ran}
				res, err = c.Call(t.Context(), call)
				if err != nil || string(res.Content) != `{}` || time.Since(start) > 20*time.Second || !c.Idle() {
					t.Errorf("%+v, %v, after %s", res, err, time.Since(start))
				}
			})
		})
	}
}

// TestTimeRunsOnAfterParking: what the server took before it asked counts.
func TestTimeRunsOnAfterParking(t *testing.T) {
	var h heard
	serve := func(line []byte, out io.Writer) {
		h.add(line)
		if strings.Contains(string(line), "tools/call") {
			time.AfterFunc(40*time.Second, func() {
				_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`+"\n")
			})
		}
	}
	o := &ClientOptions{Label: "it", Era: Legacy, Passive: true, Can: dragoman.AskForm, Timeout: time.Minute}
	pipedWith(t, o, serve, func(t *testing.T, c *Client) {
		call := question1("q")
		res, err := c.Call(t.Context(), call)
		if err != nil || res.Asks == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		time.Sleep(2 * time.Minute)
		start := time.Now()
		res, err = c.Call(t.Context(), answering(call, res))
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownOutcome || res.Ran != dragoman.RanMaybe ||
			!strings.Contains(res.Problem.Message, `The server "it" gave no answer within 1m0s.`) {
			t.Errorf("%+v, %v", res.Problem, err)
		}
		if took := time.Since(start); took != 20*time.Second-gatherTime {
			t.Errorf("the rest of its time was %s", took)
		}
		synctest.Wait()
		if h.holding("notifications/cancelled") != 1 {
			t.Errorf("the server heard %q", h.all)
		}
	})
}

// TestParkedTooLong: a call with a question that nobody answers is cancelled, and the
// question with it. The server hears of the call first, so that it does not go on.
func TestParkedTooLong(t *testing.T) {
	askingOne(t, ClientOptions{}, func(t *testing.T, c *Client, s *curious) {
		call := question1("a")
		res, err := c.Call(t.Context(), call)
		if err != nil || res.Asks == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		time.Sleep(parkLife + time.Second)
		synctest.Wait()
		if s.holding(`"result":{"action":"cancel"}`) != 1 || s.holding("notifications/cancelled") != 1 || !strings.Contains(s.all[len(s.all)-1], `"action":"cancel"`) {
			t.Errorf("the server heard %q", s.all)
		}
		res, err = c.Call(t.Context(), answering(call, res))
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownOutcome || res.Ran != dragoman.RanMaybe {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// TestStrangersAnswers: answers to a call that another connection, and so another
// process, keeps.
func TestStrangersAnswers(t *testing.T) {
	var state []byte
	askingOne(t, ClientOptions{}, func(t *testing.T, c *Client, _ *curious) {
		res, _ := c.Call(t.Context(), question1("a"))
		state = res.Asks.State
	})
	askingOne(t, ClientOptions{}, func(t *testing.T, c *Client, s *curious) {
		call := question1("a")
		call.Answers = &dragoman.Answers{State: state, Ran: dragoman.RanMaybe}
		res, err := c.Call(t.Context(), call)
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownOutcome || res.Ran != dragoman.RanMaybe {
			t.Errorf("%+v, %v", res, err)
		}
		if s.holding("tools/call") != 0 {
			t.Error("the call was made again")
		}
	})
}

// TestOneChannel: over a channel that all calls share, a question belongs to
// nobody where two are on their way.
func TestOneChannel(t *testing.T) {
	askingOne(t, ClientOptions{}, func(t *testing.T, c *Client, s *curious) {
		first := question1("a")
		parked, err := c.Call(t.Context(), first)
		if err != nil || parked.Asks == nil {
			t.Fatalf("%+v, %v", parked, err)
		}
		res, err := c.Call(t.Context(), question1("b"))
		if err != nil || string(res.Content) != `{"got":{"action":"decline"}}` {
			t.Errorf("%+v, %v", res, err)
		}
		if res, err = c.Call(t.Context(), answering(first, parked)); err != nil || res.Content == nil {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// TestParkedAtMost: beyond the room that a connection has, questions are
// cancelled and the calls go on.
func TestParkedAtMost(t *testing.T) {
	srv := &fake{era: Legacy, on: on{}}
	ids := map[string]chan string{}
	var mu sync.Mutex
	srv.on["tools/call"] = func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
		answer := make(chan string, 1)
		mu.Lock()
		ids[`"q`+string(id)+`"`] = answer
		mu.Unlock()
		events(w, `data: {"jsonrpc":"2.0","id":"q`+string(id)+`","method":"elicitation/create","params":{"message":"?"}}`+"\n\n")
		select {
		case a := <-answer:
			events(w, `data: {"jsonrpc":"2.0","id":`+string(id)+`,"result":`+a+"}\n\n")
		case <-r.Context().Done():
		}
	}
	srv.on[""] = func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		ids[string(id)] <- `{"answered":1}`
		w.WriteHeader(202)
	}
	connected(t, srv, &ClientOptions{Passive: true, Can: dragoman.AskForm}, func(t *testing.T, c *Client) {
		var parked []dragoman.Result
		call := question1("x")
		for i := range maxParked {
			res, err := c.Call(t.Context(), call)
			if err != nil || res.Asks == nil {
				t.Fatalf("call %d: %+v, %v", i, res, err)
			}
			parked = append(parked, res)
		}
		if res, err := c.Call(t.Context(), call); err != nil || string(res.Content) != `{"answered":1}` {
			t.Errorf("one too many: %+v, %v", res, err)
		}
		for _, p := range parked {
			if res, err := c.Call(t.Context(), answering(call, p)); err != nil || string(res.Content) != `{"answered":1}` {
				t.Errorf("%+v, %v", res, err)
			}
		}
	})
}

// TestAnswersArrive: an answer to a question is sent again where the way broke.
func TestAnswersArrive(t *testing.T) {
	srv := &fake{era: Legacy, on: on{}}
	var answered chan struct{} // of the bubble
	tries := 0
	srv.on["tools/call"] = func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
		events(w, `data: {"jsonrpc":"2.0","id":"q","method":"roots/list"}`+"\n\n")
		select {
		case <-answered:
			events(w, `data: {"jsonrpc":"2.0","id":`+string(id)+`,"result":{"done":1}}`+"\n\n")
		case <-r.Context().Done():
		}
	}
	srv.on[""] = func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) {
		switch tries++; tries {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusAccepted)
			answered <- struct{}{}
		}
	}
	connected(t, srv, &ClientOptions{Passive: true, Timeout: time.Minute}, func(t *testing.T, c *Client) {
		answered = make(chan struct{}, 1)
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
		if err != nil || string(res.Content) != `{"done":1}` || tries != 3 {
			t.Errorf("after %d answers: %+v, %v", tries, res, err)
		}
	})
}

// TestNothingCanBeSent: a server that has stopped reading keeps no call for ever,
// and a call of which nothing was sent was not made.
func TestNothingCanBeSent(t *testing.T) {
	var stop chan struct{} // of the bubble
	serve := func(line []byte, _ io.Writer) {
		if strings.Contains(string(line), "deaf") {
			<-stop
		}
	}
	o := &ClientOptions{Era: Legacy, Passive: true, Timeout: time.Hour}
	pipedWith(t, o, serve, func(t *testing.T, c *Client) {
		stop = make(chan struct{})
		defer close(stop)
		_ = c.Notify(t.Context(), "deaf", nil)
		synctest.Wait()
		// Of the first the pipe takes a part; the second waits for its turn.
		go func() { _, _ = c.Call(t.Context(), dragoman.Call{Tool: echo}) }()
		synctest.Wait()
		start := time.Now()
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeServerUnavailable || res.Ran != dragoman.RanNot || time.Since(start) != unsentPatience {
			t.Errorf("%+v, %v after %s", res, err, time.Since(start))
		}
	})
}
