package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// An asker asks in each leg of a call, until it has asked often enough or is told that
// nobody answers.
type asker struct {
	toolsetHost
	often   int
	life    time.Duration // of a question; zero for any
	wanted  time.Duration // how long the server waits for an answer; zero for as long as it takes
	fails   error         // what the call comes to in the end; nil for a result
	legs    []*dragoman.Answers
	waiting bool // it asks for time in the first leg
}

func (h *asker) Call(_ context.Context, call dragoman.Call) (dragoman.Result, error) {
	h.legs = append(h.legs, call.Answers)
	switch {
	case call.Answers != nil && call.Answers.Gone:
		return dragoman.Failure(dragoman.CodeUnanswered, "Nobody answered."), nil
	case h.waiting && call.Answers == nil:
		return dragoman.Result{Ran: dragoman.RanYes, Asks: &dragoman.Asks{State: []byte("later"), After: time.Minute}}, nil
	case len(h.legs) > h.often && h.fails != nil:
		return dragoman.Result{Ran: dragoman.RanMaybe}, h.fails
	case len(h.legs) > h.often:
		return dragoman.Result{Content: json.RawMessage(`{"content":[]}`), Ran: dragoman.RanYes}, nil
	}
	asks := &dragoman.Asks{State: []byte{byte(len(h.legs))}, Questions: []dragoman.Question{{Key: "q", Kind: dragoman.AskForm, Params: json.RawMessage(`{"message":"?"}`)}}}
	if h.life > 0 {
		asks.Expires = time.Now().Add(h.life)
	}
	if h.wanted > 0 {
		withdrawn := make(chan struct{})
		time.AfterFunc(h.wanted, func() { close(withdrawn) })
		asks.Withdrawn = withdrawn
	}
	return dragoman.Result{Ran: dragoman.RanMaybe, Asks: asks}, nil
}

// A person is a legacy client that accepts what it is asked, or never answers.
type person struct {
	conn   *legacyPeer
	silent bool
	sent   []string
}

func (p *person) send(msg []byte) bool {
	p.sent = append(p.sent, string(msg))
	id := object(msg).Get("id")
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	if answer := p.conn.waiting[string(id)]; answer != nil && !p.silent {
		answer <- json.RawMessage(`{"action":"accept"}`)
	}
	return true
}

// asked makes a call of a legacy client at a host.
func asked(t *testing.T, h *asker, silent bool) (json.RawMessage, *person, error) {
	t.Helper()
	conn := &legacyPeer{server: &Server{}, waiting: map[string]chan<- json.RawMessage{}}
	p := &person{conn: conn, silent: silent}
	v := &incomingRequest{server: conn.server, host: h, to: p, conn: conn, in: &inbound{
		id: json.RawMessage(`1`), method: "tools/call", members: &rawjson.Object{}, meta: &rawjson.Object{},
	}}
	result, err := v.run(t.Context())
	return result, p, err
}

// TestLegacyClientIsAsked: a call is made again with what a legacy client answered, with
// the state of the leg before, and time that a server wants is waited for.
func TestLegacyClientIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := &asker{often: 4, waiting: true}
		result, p, err := asked(t, h, false)
		if err != nil || string(result) != `{"content":[]}` || len(p.sent) != 3 || time.Since(began) != time.Minute {
			t.Fatalf("%s, %v, after %s and %v", result, err, time.Since(began), p.sent)
		}
		if a := h.legs[1]; string(a.State) != "later" || a.Ran != dragoman.RanYes || a.Replies != nil {
			t.Errorf("the leg after the wait has %+v", a)
		}
		if a := h.legs[3]; a.State[0] != 3 || string(a.Replies["q"]) != `{"action":"accept"}` || a.Ran != dragoman.RanMaybe {
			t.Errorf("the last leg but one has %+v", a)
		}
	})
}

// TestModernClientWaits: a modern client, which makes a call again at once where it is asked
// nothing, hears of that when the time is over that the server wants.
func TestModernClientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		v := &incomingRequest{server: &Server{}, host: &asker{waiting: true}, in: &inbound{
			id: json.RawMessage(`1`), method: "tools/call", members: &rawjson.Object{}, meta: &rawjson.Object{}, modern: true,
		}}
		result, err := v.run(t.Context())
		if err != nil || string(result) != `{"resultType":"input_required","requestState":"bGF0ZXI"}` || time.Since(began) != time.Minute {
			t.Errorf("%s, %v, after %s", result, err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := v.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that ends meanwhile: %v", err)
		}
	})
}

// TestLegacyClientIsAskedSoOften: whoever asks on and on is told that nobody answers any
// more, and the client that its request failed.
func TestLegacyClientIsAskedSoOften(t *testing.T) {
	h := &asker{often: 100}
	_, p, err := asked(t, h, false)
	e, ok := errors.AsType[*RPCError](err)
	if !ok || e.Code != codeInternal || !strings.Contains(string(e.Data), dragoman.CodeUnanswered) || len(p.sent) != 16 {
		t.Errorf("%v after %d questions", err, len(p.sent))
	}
	if last := h.legs[len(h.legs)-1]; len(h.legs) != 18 || !last.Gone || last.State[0] != 17 {
		t.Errorf("%d legs, the last with %+v", len(h.legs), last)
	}
}

// TestLegacyClientDoesNotAnswer: a question that expires ends its call, and both sides
// are told.
func TestLegacyClientDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &asker{often: 1, life: time.Minute}
		_, p, err := asked(t, h, true)
		if !errors.Is(err, context.DeadlineExceeded) || len(h.legs) != 2 || !h.legs[1].Gone {
			t.Errorf("%v after %d legs", err, len(h.legs))
		}
		if last := p.sent[len(p.sent)-1]; !strings.Contains(last, "notifications/cancelled") {
			t.Errorf("the client heard %s last", last)
		}
	})
}

// TestLegacyClientIsAskedInVain: a question that its server takes back is taken back from
// the client, which gets what the call came to without waiting for anybody.
func TestLegacyClientIsAskedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := &asker{often: 1, life: time.Hour, wanted: time.Minute}
		result, p, err := asked(t, h, true)
		if err != nil || string(result) != `{"content":[]}` || time.Since(began) != time.Minute {
			t.Fatalf("%s, %v, after %s", result, err, time.Since(began))
		}
		if last := p.sent[len(p.sent)-1]; !strings.Contains(last, "notifications/cancelled") {
			t.Errorf("the client heard %s last", last)
		}
		if a := h.legs[1]; a.Gone || a.Replies != nil || a.State[0] != 1 || a.Ran != dragoman.RanMaybe {
			t.Errorf("the last leg has %+v", a)
		}
	})
}

// TestCallFailsAfterQuestion: a client whose question was taken back hears why its call
// failed afterwards.
func TestCallFailsAfterQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := &RPCError{Code: codeInvalidParams, Message: "there is no such thing"}
		if _, _, err := asked(t, &asker{often: 1, wanted: time.Minute, fails: why}, true); !errors.Is(err, why) {
			t.Errorf("the client hears: %v", err)
		}
	})
}

// A result that is no object is an error to a client of the modern era, which would take
// the members that the era wants for all there is.
func TestResultThatIsNone(t *testing.T) {
	for content, want := range map[string]string{
		`{"content":[]}`: `{"resultType":"complete","content":[]}`,
		`{}`:             `{"resultType":"complete"}`,
		``:               `{"resultType":"complete"}`,
		`[]`:             "",
		`{"content":`:    "",
	} {
		v := &incomingRequest{server: &Server{}, in: &inbound{method: "tools/call", modern: true}}
		var raw json.RawMessage
		if content != "" {
			raw = json.RawMessage(content)
		}
		got, err := v.finished(t.Context(), raw)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", content, got, err)
		}
	}
}
