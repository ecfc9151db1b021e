package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A sentCall is a call on its way to another replica. JSON of others is in bytes, which
// arrive as they are. What it is of is named, and found again there as it was here.
type sentCall struct {
	Caller, Session      string
	ID, Parent           string
	Method, Name, Server string
	Tool, Entry          *sentTarget
	Arguments, Meta      []byte
	Can                  dragoman.Kind
	Answers              *sentAnswers
	Task                 []byte
	TakesTask            bool
}

// A sentTarget names a tool or an entry.
type sentTarget struct {
	Server, Original string
	Pin              [32]byte
}

type sentAnswers struct {
	State   []byte
	Replies map[string][]byte
	Ran     dragoman.Ran
	Gone    bool
}

func encodeCall(owner servers.Owner, call *dragoman.Call) ([]byte, error) {
	c := sentCall{
		Caller: owner.Caller, Session: owner.Session, ID: call.ID, Parent: call.Parent, Method: call.Method, Name: call.Name, Server: call.Server,
		Arguments: call.Arguments, Meta: call.Meta, Can: call.Can, Task: call.Task, TakesTask: call.TakesTask,
	}
	if t := call.Tool; t != nil {
		c.Tool = &sentTarget{t.Server, t.Original, t.Pin}
	}
	if e := call.Entry; e != nil {
		c.Entry = &sentTarget{e.Server, e.Original, pinOf(e)}
	}
	if a := call.Answers; a != nil {
		c.Answers = &sentAnswers{State: a.State, Replies: map[string][]byte{}, Ran: a.Ran, Gone: a.Gone}
		for key, reply := range a.Replies {
			c.Answers.Replies[key] = reply
		}
	}
	return json.Marshal(&c)
}

func pinOf(e *dragoman.Entry) [32]byte { return dragoman.Pin(e.Server, e.Original, e.Definition) }

// decodeCall returns a call of another replica. Its target has to be here as it was there.
func (r *Relay) decodeCall(ctx context.Context, body []byte) (owner servers.Owner, call dragoman.Call, err error) {
	var c sentCall
	if err := json.Unmarshal(body, &c); err != nil {
		return owner, call, err
	}
	owner = servers.Owner{Caller: c.Caller, Session: c.Session}
	call = dragoman.Call{
		ID: c.ID, Parent: c.Parent, Method: c.Method, Name: c.Name, Server: c.Server,
		Arguments: c.Arguments, Meta: c.Meta, Can: c.Can, Task: c.Task, TakesTask: c.TakesTask,
	}
	if a := c.Answers; a != nil {
		call.Answers = &dragoman.Answers{State: a.State, Replies: map[string]json.RawMessage{}, Ran: a.Ran, Gone: a.Gone}
		for key, reply := range a.Replies {
			call.Answers.Replies[key] = reply
		}
	}
	return owner, call, r.find(ctx, owner, &c, &call)
}

// find finds what a call is of.
func (r *Relay) find(ctx context.Context, owner servers.Owner, c *sentCall, call *dragoman.Call) error {
	if c.Tool == nil && c.Entry == nil {
		return nil
	}
	list, err := r.tools(owner).List(ctx)
	if err != nil {
		return err
	}
	if want := c.Tool; want != nil {
		all := list.Tools.All()
		for i := range all {
			if t := &all[i]; t.Server == want.Server && t.Original == want.Original && t.Pin == want.Pin {
				call.Tool = t
				return nil
			}
		}
		return fmt.Errorf("the tool %q of %q is not here as it is there", want.Original, want.Server)
	}
	for i := range list.Entries {
		if e := &list.Entries[i]; e.Server == c.Entry.Server && e.Original == c.Entry.Original && pinOf(e) == c.Entry.Pin {
			call.Entry = e
			return nil
		}
	}
	return fmt.Errorf("%q of %q is not here as it is there", c.Entry.Original, c.Entry.Server)
}

// A sentResult is what a call came to, on its way back.
type sentResult struct {
	Content []byte
	Failed  bool
	Problem *sentProblem
	Asks    *sentAsks
	Task    string
	Ran     dragoman.Ran
	Info    dragoman.Info
	Err     *sentError // in place of a result
}

type sentProblem struct {
	Code, Message, AuditID string
	Fields                 []dragoman.Field
	RetryAfter             time.Duration
	Err                    *sentError
}

// A sentError is an error; of JSON-RPC where it has a code.
type sentError struct {
	Code    int64
	Message string
	Data    []byte
}

type sentAsks struct {
	Questions []sentQuestion
	State     []byte
	After     time.Duration
	Held      bool
	Left      time.Duration // until they are void, since clocks differ; zero for never
}

type sentQuestion struct {
	Key, Server string
	Kind        dragoman.Kind
	Operator    bool
	Params      []byte
}

func encodeResult(res *dragoman.Result, err error) []byte {
	s := sentResult{Content: res.Content, Failed: res.Failed, Task: res.Task, Ran: res.Ran, Info: res.Info, Err: encodeError(err)}
	if p := res.Problem; p != nil {
		s.Problem = &sentProblem{p.Code, p.Message, p.AuditID, p.Fields, p.RetryAfter, encodeError(p.Err)}
	}
	if a := res.Asks; a != nil {
		s.Asks = &sentAsks{State: a.State, After: a.After, Held: a.Held}
		if !a.Expires.IsZero() {
			s.Asks.Left = max(1, time.Until(a.Expires))
		}
		for _, q := range a.Questions {
			s.Asks.Questions = append(s.Asks.Questions, sentQuestion{q.Key, q.Server, q.Kind, q.Operator, q.Params})
		}
	}
	b, _ := json.Marshal(&s) // nothing in it can fail
	return b
}

func encodeError(err error) *sentError {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*mcp.RPCError](err); ok {
		return &sentError{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return &sentError{Message: err.Error()}
}

func (e *sentError) decode() error {
	switch {
	case e == nil:
		return nil
	case e.Code != 0:
		return &mcp.RPCError{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return errors.New(e.Message)
}

func decodeResult(body []byte) (res dragoman.Result, err error) {
	var s sentResult
	if err := json.Unmarshal(body, &s); err != nil {
		return res, err
	}
	res = dragoman.Result{Content: s.Content, Failed: s.Failed, Task: s.Task, Ran: s.Ran, Info: s.Info}
	if p := s.Problem; p != nil {
		res.Problem = &dragoman.Problem{Code: p.Code, Message: p.Message, AuditID: p.AuditID, Fields: p.Fields, RetryAfter: p.RetryAfter, Err: p.Err.decode()}
	}
	if a := s.Asks; a != nil {
		res.Asks = &dragoman.Asks{State: a.State, After: a.After, Held: a.Held}
		if a.Left > 0 {
			res.Asks.Expires = time.Now().Add(a.Left)
		}
		for _, q := range a.Questions {
			res.Asks.Questions = append(res.Asks.Questions, dragoman.Question{Key: q.Key, Server: q.Server, Kind: q.Kind, Operator: q.Operator, Params: q.Params})
		}
	}
	return res, s.Err.decode()
}
