package model

import (
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// sort parts the calls of a reply into ours and the client's.
func (d *Dialogue) sort(r *Reply, last bool) *Round {
	calls := r.Calls
	switch {
	case r.CutOff(): // it must not run, nor be handed on, nor be remembered
		calls = nil
	case d.Request.OneCall && len(calls) > 1:
		calls = calls[:1]
	}
	round := &Round{Reply: r}
	if len(calls) == 0 {
		return round
	}
	message := &memory.Message{}
	used := map[string]bool{}
	for _, call := range calls {
		mine, name := d.owner(call)
		if call.client {
			mine, name = false, call.Name
		}
		switch {
		case !mine:
			id := d.callID(call, used)
			message.Calls = append(message.Calls, memory.Call{ID: id, Client: id, Raw: call.Raw(id, name, string(call.Arguments))})
		case !last:
			from := len(d.written)
			run, name, args := d.decode(call, r.Finish)
			run.ID = d.callID(call, used)
			for i := range d.written[from:] {
				d.written[from+i].ID = run.ID
			}
			message.Calls = append(message.Calls, memory.Call{ID: run.ID, Raw: call.Raw(run.ID, name, args)})
			round.Run = append(round.Run, run)
		}
	}
	if len(message.Calls) > 0 {
		message.Message = d.Remember(r).Bytes()
		round.Message = message
	}
	return round
}

// owner says whose a call is, and by which name. The client's own tools come first,
// then ours, then the client's in the wrong case.
func (d *Dialogue) owner(call *Call) (ours bool, name string) {
	if d.Request.Names[call.Name] {
		return false, call.Name
	}
	if tool, _ := d.tool(call.Name); tool != nil {
		return true, call.Name
	}
	for have := range d.Request.Names {
		if strings.EqualFold(have, call.Name) {
			return false, have
		}
	}
	// Of a client's own request not all tools are known: some are in a prompt or in a
	// conversation that the upstream keeps. Nor are those that a client withholds.
	return d.Request.Native == nil && !d.Request.Withholds, call.Name
}

// decode returns a call of ours as it is to run, and its name and arguments as they
// go into the history.
func (d *Dialogue) decode(call *Call, finish string) (run dragoman.Call, name, args string) {
	args = string(call.Arguments)
	run.Can = d.Can
	tool, plan := d.tool(call.Name)
	if problem := d.notOffered(call.Name, tool); problem != nil {
		run.Name, run.Problem = clip.Text(call.Name, 80), problem
		if !complete(call.Arguments) && !call.Custom {
			args = "{}"
		}
		return run, validName(call.Name), args
	}
	if d.ours.caller(tool) {
		return d.decodeInner(call, tool, plan, finish)
	}
	run.Tool = tool
	if d.Progress != nil {
		run.Progress = d.Progress(tool)
	}
	run.Arguments, run.Problem = d.decodeArguments(plan, args, finish, dialect.GradeOf(tool))
	if !complete(call.Arguments) {
		// The history must hold a JSON object: some upstreams refuse the request
		// otherwise.
		args = "{}"
		if encoded, err := plan.Encode(run.Arguments); run.Problem == nil && err == nil {
			args = string(encoded)
		}
	}
	return run, tool.Name, args
}

// validName makes a name that nobody offered fit to stand in the history.
func validName(name string) string {
	valid := make([]byte, 0, len(name))
	for i := 0; i < len(name) && len(valid) < 64; i++ {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == '-':
			valid = append(valid, b)
		default:
			valid = append(valid, '_')
		}
	}
	if len(valid) == 0 {
		return "unknown"
	}
	return string(valid)
}

// callID returns the call's id if it can stand in the history, or a new one.
func (d *Dialogue) callID(call *Call, used map[string]bool) string {
	id := call.ID
	if id == "" || used[id] {
		id = mintID("call_")
	}
	id = d.fitID(id)
	used[id] = true
	return id
}
