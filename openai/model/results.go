package model

import (
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/result"
)

// Answer puts the results of a round's calls, in their order, into its message. It
// reports whether that closes the message: then it is part of the history, and the
// model can be asked for its next one. A message stays open while it has calls of
// the client's, or calls of ours that ask, which are then [memory.Waiting].
func (d *Dialogue) Answer(round *Round, results []dragoman.Result) (closed bool) {
	m := round.Message
	m.Calls = slices.Clone(m.Calls)
	answers, at := make([]Answer, 0, len(round.Run)), make([]int, 0, len(round.Run))
	for i, run := range round.Run {
		res := results[i]
		d.Wrote = d.Wrote || run.Problem == nil && res.Ran != dragoman.RanNot && run.Tool.Effect() != dragoman.ReadOnly
		if run.Answers == nil && (res.Asks == nil || !res.Asks.Deferred()) {
			d.Spent.Calls++
		}
		n := slices.IndexFunc(m.Calls, func(c memory.Call) bool { return c.Ours() && c.ID == run.ID })
		if res.Asks != nil && n >= 0 {
			m.Calls[n].Waiting = wait(run, res)
			continue
		}
		if a := run.Answers; a != nil && a.Gone {
			res = dragoman.Result{Ran: res.Ran, Info: res.Info, Problem: &dragoman.Problem{
				Code: dragoman.CodeUnanswered, Message: "The tool asked a question and nobody answered it, so the call was given up.",
			}}
		}
		message := d.shape(run.Tool).Message(run, res)
		d.More = d.More || message.Handle != ""
		if message.Cut {
			d.tellCut(run.Tool)
		}
		d.Spent.Bytes += int64(len(res.Content))
		answers, at = append(answers, Answer{ID: run.ID, Message: message}), append(at, n)
	}
	tools, after := Messages(d.wire(), answers)
	m.After = append(slices.Clip(m.After), after...)
	for i, n := range at {
		if n >= 0 {
			m.Calls[n].Result, m.Calls[n].Waiting = tools[i], nil
		}
	}
	if m.Waits() || round.Mixed() {
		return false
	}
	if round.resumed {
		d.AddHidden(Documents(m)...) // it may come from another dialect
		return true
	}
	documents := Documents(m)
	d.history = append(d.history, documents...)
	if slices.ContainsFunc(answers, func(a Answer) bool { return len(a.Message.Images) > 0 }) {
		for _, document := range documents[1:] {
			if o, err := rawjson.ParseObject(document); err == nil {
				d.notePictures(o)
			}
		}
		if d.blind {
			d.leavePictures()
		}
	}
	return true
}

func (d *Dialogue) shape(tool *dragoman.Tool) *result.Shape {
	if d.Shape == nil {
		return &result.Shape{}
	}
	shape := d.Shape(tool)
	if d.Request.Names[result.ReadMore] {
		named := *shape
		for t := range d.moreOffer().all() {
			named.ReadMore = t.Name
		}
		return &named
	}
	return shape
}

// wait returns what is needed to make a call again that asks.
func wait(run dragoman.Call, res dragoman.Result) *memory.Waiting {
	w := &memory.Waiting{Arguments: run.Arguments, State: res.Asks.State, Expires: res.Asks.Expires, Ran: res.Ran}
	for _, q := range res.Asks.Questions {
		w.Questions = append(w.Questions, memory.Question{
			Key: q.Key, Kind: q.Kind, Operator: q.Operator, Server: q.Server, Params: q.Params,
		})
	}
	if t := run.Tool; t != nil {
		w.Server, w.Original, w.Pin = t.Server, t.Original, slices.Clone(t.Pin[:])
	}
	return w
}

// Hold takes calls out of those of a round that are to be made, so that they wait until
// the round is taken up again by [Dialogue.Resume]: the client has to say first whether
// they may run.
func (d *Dialogue) Hold(round *Round, hold func(*dragoman.Call) bool) {
	m := *round.Message
	m.Calls = slices.Clone(m.Calls)
	round.Message = &m
	round.Run = slices.DeleteFunc(slices.Clone(round.Run), func(run dragoman.Call) bool {
		n := slices.IndexFunc(m.Calls, func(c memory.Call) bool { return c.Ours() && c.ID == run.ID })
		if n < 0 || run.Tool == nil || run.Problem != nil || !hold(&run) {
			return false
		}
		m.Calls[n].Waiting = wait(run, dragoman.Result{Asks: &dragoman.Asks{}, Ran: dragoman.RanNot})
		return true
	})
}

// Resume takes up a message again whose calls of ours wait for answers. replies are
// the answers to the questions of each call, by its id and the question's key; a
// call that the client could have answered and did not is told that nobody will. The calls come back
// with their answers, to be made again, and [Dialogue.Answer] takes their results.
func (d *Dialogue) Resume(m *memory.Message, replies map[string]map[string]json.RawMessage) *Round {
	d.relax() // it was said before that a call is to be made, and it was
	own := *m
	round := &Round{
		Reply:   &Reply{Envelope: &rawjson.Object{}, Choice: &rawjson.Object{}, Message: &rawjson.Object{}},
		Message: &own, resumed: true,
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		w := c.Waiting
		if w == nil {
			continue
		}
		run := dragoman.Call{ID: c.ID, Arguments: w.Arguments, Can: d.Can}
		if run.Tool, run.Problem = d.again(w); run.Tool != nil && d.Progress != nil {
			run.Progress = d.Progress(run.Tool)
		}
		if deferred := len(w.Questions) == 0 && w.State == nil; run.Problem == nil && !deferred {
			run.Answers = answered(w, replies[c.ID])
		}
		round.Run = append(round.Run, run)
	}
	return round
}

// answered returns the answers to what a call asked. What only an operator may answer
// is never answered by the client: whoever asked looks for that answer elsewhere.
func answered(w *memory.Waiting, replies map[string]json.RawMessage) *dragoman.Answers {
	a := &dragoman.Answers{State: w.State, Ran: w.Ran}
	for _, q := range w.Questions {
		reply := replies[q.Key]
		switch {
		case q.Operator:
			continue
		case reply == nil:
			a.Gone = a.Replies == nil
			continue
		case a.Replies == nil:
			a.Replies = map[string]json.RawMessage{}
		}
		a.Gone = false
		a.Replies[q.Key] = reply
	}
	return a
}

// again returns the tool of a call that waits, as long as it is the tool that asked.
func (d *Dialogue) again(w *memory.Waiting) (*dragoman.Tool, *dragoman.Problem) {
	for t := range d.ours.all() {
		if t.Server != w.Server || t.Original != w.Original {
			continue
		}
		if string(t.Pin[:]) != string(w.Pin) {
			return nil, &dragoman.Problem{Code: dragoman.CodeInvalidTool, Message: fmt.Sprintf("The tool %q changed while its call waited for an answer, so the call was not made.", t.Name)}
		}
		return t, nil
	}
	return nil, &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: "The tool is not there any more, so the call that waited for an answer was not made."}
}

// Unanswered returns the message that answers a call which waits, where nobody took
// it up again.
func (d *Dialogue) Unanswered(c *memory.Call) json.RawMessage {
	run := dragoman.Call{ID: c.ID}
	tools, _ := Messages(d.wire(), []Answer{{ID: c.ID, Message: d.shape(nil).Message(run, dragoman.Result{
		Problem: &dragoman.Problem{Code: dragoman.CodeUnanswered, Message: "The tool asked a question and nobody answered it, so the call was given up."},
	})}})
	return tools[0]
}

// Writes reports whether a call of a round that is to be made may change something.
func (r *Round) Writes() bool {
	return slices.ContainsFunc(r.Run, func(run dragoman.Call) bool {
		return run.Problem == nil && run.Tool != nil && run.Tool.Effect() != dragoman.ReadOnly
	})
}

// Begun returns a round whose calls of ours are about to be made as it stands in the history if
// nobody ever learns what becomes of them. Calls of the client's are left out.
func (d *Dialogue) Begun(round *Round) []json.RawMessage {
	var answers []Answer
	for _, run := range round.Run {
		res := dragoman.Result{Problem: run.Problem}
		if run.Problem == nil {
			res.Problem = &dragoman.Problem{Code: dragoman.CodeUnknownOutcome, Message: "The call was interrupted and may or may not have taken effect: check before you repeat it."}
		}
		answers = append(answers, Answer{ID: run.ID, Message: d.shape(run.Tool).Message(run, res)})
	}
	tools, _ := Messages(d.wire(), answers)
	m := *round.Message
	m.Calls = nil
	for i, run := range round.Run {
		if n := slices.IndexFunc(round.Message.Calls, func(c memory.Call) bool { return c.Ours() && c.ID == run.ID }); n >= 0 {
			call := round.Message.Calls[n]
			call.Result = tools[i]
			m.Calls = append(m.Calls, call)
		}
	}
	return Documents(&m)
}

// Documents returns a message with its calls, their results and what follows them,
// as they stand in the history.
func Documents(m *memory.Message) []json.RawMessage {
	o, err := rawjson.ParseObject(m.Message)
	if err != nil {
		return nil // we made it
	}
	o.Delete("tool_calls")
	var calls, results []json.RawMessage
	for i := range m.Calls {
		calls = append(calls, m.Calls[i].Raw)
		if m.Calls[i].Result != nil {
			results = append(results, m.Calls[i].Result)
		}
	}
	if len(calls) > 0 {
		o.Set("tool_calls", rawjson.AppendArray(nil, calls))
	}
	return slices.Concat([]json.RawMessage{o.Bytes()}, results, m.After)
}
