package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// client lets a model's answers be kept, and played: those to the conversation itself, in
// their order. A nil tape changes nothing.
func (t *tape) client(c *model.Client) {
	if t == nil {
		return
	}
	post := c.Post
	c.Post = func(ctx context.Context, body [][]byte) (*http.Response, error) {
		name := fmt.Sprintf("model %d", t.models)
		kept, err := t.step(ctx, name)
		if err != nil {
			return nil, err
		}
		if t.live = kept == nil; !t.live {
			t.models++
			return played(kept)
		}
		resp, err := post(ctx, body)
		if err != nil || resp.StatusCode != http.StatusOK {
			return resp, err
		}
		resp.Body = &recording{ReadCloser: resp.Body, end: func(body []byte) error {
			document, err := json.Marshal(answered{Header: http.Header{"Content-Type": resp.Header.Values("Content-Type")}, Body: body})
			if err != nil {
				return err
			}
			if err = t.held.Keep(ctx, name, document); err != nil {
				t.held.GiveUp(err) // nothing is done with what is not kept
				return err
			}
			t.models++ // one that broke off, and is asked for again, does not count
			return nil
		}}
		return resp, nil
	}
}

// answered is an answer of a model as it is kept.
type answered struct {
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

func played(kept []byte) (*http.Response, error) {
	var s answered
	if err := json.Unmarshal(kept, &s); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: s.Header, Body: io.NopCloser(bytes.NewReader(s.Body)), ContentLength: int64(len(s.Body)),
	}, nil
}

// maxRecorded is what is kept of an answer at most, in bytes.
const maxRecorded = 16 << 20

// A recording is the body of an answer that is kept once it was read: before it ends for its
// reader, or is used where its connection goes on or breaks behind it, so that nothing is done
// with what is not kept.
type recording struct {
	io.ReadCloser
	read  bytes.Buffer
	ended bool
	end   func([]byte) error
}

func (r *recording) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.read.Len() < maxRecorded {
		r.read.Write(p[:n])
	}
	if err == io.EOF {
		if kept := r.keep(); kept != nil {
			return n, kept
		}
	}
	return n, err
}

// Whole keeps an answer of which all is there that counts; see [model.Client].
func (r *recording) Whole() error { return r.keep() }

func (r *recording) keep() error {
	if r.ended {
		return nil
	}
	r.ended = true
	if r.read.Len() >= maxRecorded {
		return errors.New("the answer of the model is larger than what is kept of one")
	}
	return r.end(r.read.Bytes())
}

// loop lets results be kept, and played, and what waits for an operator wait without
// anybody. A nil tape changes nothing.
func (t *tape) loop(l *dragoman.Loop) {
	if t == nil {
		return
	}
	l.Tools = &tapedTools{l.Tools, t}
	ask := l.Ask
	l.Ask = func(ctx context.Context, call dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
		id := session.ApprovalOf(asks)
		if id == "" {
			if ask == nil {
				return nil, nil
			}
			return ask(ctx, call, asks)
		}
		return t.wait(ctx, call, keptQuestion{id, asks.State}, asks.Expires)
	}
}

// A keptQuestion is an approval that a call waits for, and the state with which the call goes
// on once it is answered.
type keptQuestion struct {
	Approval string `json:"approval"`
	State    []byte `json:"state"`
}

// question returns what a call has waited for; the zero keptQuestion for nothing.
func (t *tape) question(ctx context.Context, step string) (asked keptQuestion, err error) {
	kept, err := t.step(ctx, "asked "+step)
	if err == nil && kept != nil && json.Unmarshal(kept, &asked) != nil {
		asked = keptQuestion{Approval: string(kept)} // by a version before this one
	}
	return asked, err
}

// wait lets the run wait for an approval: it goes on when somebody has answered it. A call
// that has waited for another one before, which nobody answered, is pending.
func (t *tape) wait(ctx context.Context, call dragoman.Call, asked keptQuestion, expires time.Time) (*dragoman.Answers, error) {
	t.mu.Lock()
	name := t.steps[call.ID]
	t.waiting++
	for t.active > 0 { // what runs beside it is kept first
		t.idle.Wait()
	}
	t.mu.Unlock()
	before, err := t.question(ctx, name)
	if err != nil {
		return nil, err
	}
	if before.Approval != "" && before.Approval != asked.Approval {
		t.mu.Lock()
		t.waiting--
		t.idle.Broadcast()
		t.mu.Unlock()
		return &dragoman.Answers{Gone: true}, nil
	}
	document, err := json.Marshal(asked)
	if err == nil {
		err = t.keep(ctx, "asked "+name, document)
	}
	if err != nil {
		return nil, err
	}
	if err := t.held.Wait(ctx, asked.Approval, time.Until(expires)-approval.Grace+time.Second); err != nil {
		t.held.GiveUp(err) // its lease ends by itself
		return nil, err
	}
	return nil, run.ErrWaits
}

// A kept call is what is known of one. Without a result it had begun, and its process died.
type keptCall struct {
	Result *dragoman.Result `json:"result,omitempty"`
}

type tapedTools struct {
	dragoman.Toolset
	tape *tape
}

// Call makes a call once: what it came to is played when it is made again. One that may
// have changed something, of which it is not known what it came to, is not made again.
func (t *tapedTools) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	name, err := t.tape.begin(&call)
	if err != nil {
		return dragoman.Result{Ran: dragoman.RanNot}, err
	}
	defer t.tape.end()
	kept, err := t.tape.step(ctx, name)
	if err != nil {
		return dragoman.Result{Ran: dragoman.RanNot}, err
	}
	if kept != nil {
		var known keptCall
		if err := json.Unmarshal(kept, &known); err != nil {
			return dragoman.Result{Ran: dragoman.RanNot}, err
		}
		if known.Result != nil {
			return *known.Result, nil
		}
		return dragoman.Result{Problem: &dragoman.Problem{
			Code:    dragoman.CodeUnknownOutcome,
			Message: "The gateway stopped while this call was made. It may or may not have taken effect: check before you repeat it.",
		}}, nil
	}
	woken := false
	if call.Answers == nil {
		asked, err := t.tape.question(ctx, name)
		if err != nil {
			return dragoman.Result{Ran: dragoman.RanNot}, err
		}
		if woken = asked.State != nil; woken { // it is told what was answered
			call.Answers = &dragoman.Answers{State: asked.State, Ran: dragoman.RanNot}
		}
	}
	changes := call.Tool != nil && call.Tool.Effect() != dragoman.ReadOnly
	if changes {
		if err := t.keep(ctx, name, nil); err != nil {
			return dragoman.Result{Ran: dragoman.RanNot}, err
		}
	}
	res, err := t.Toolset.Call(ctx, call)
	if err == nil && woken && session.Refused(&res) {
		call.Answers = nil // as one that has not waited
		res, err = t.Toolset.Call(ctx, call)
	}
	switch {
	case err != nil:
		return res, err
	case res.Asks == nil:
		plain := res
		if plain.Problem != nil {
			p := *plain.Problem
			p.Err = nil
			plain.Problem = &p
		}
		err = t.keep(ctx, name, &plain)
	case changes && res.Ran == dragoman.RanNot:
		err = t.tape.needed(ctx, t.tape.held.Forget(ctx, name))
	}
	return res, err
}

func (t *tapedTools) keep(ctx context.Context, name string, res *dragoman.Result) error {
	document, err := json.Marshal(keptCall{res})
	if err != nil {
		return err
	}
	return t.tape.keep(ctx, name, document)
}

// begin says that a leg of a call runs, and returns the step of the call. None begins any
// more where the run is about to wait.
func (t *tape) begin(call *dragoman.Call) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.waiting > 0 {
		if call.Answers != nil && call.Answers.Gone || t.held.Context().Err() != nil {
			return "", run.ErrWaits
		}
		t.idle.Wait()
	}
	t.active++
	if name := t.steps[call.ID]; name != "" && call.Answers != nil {
		return name, nil
	}
	tool := call.Name
	if call.Tool != nil {
		tool = call.Tool.Name
	}
	what := tool + "\x00" + string(call.Arguments)
	name := step(tool, call.Arguments, t.times[what])
	t.times[what]++
	t.steps[call.ID] = name
	return name, nil
}

func (t *tape) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active--
	t.idle.Broadcast()
}
