package model

import (
	"encoding/json"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Heard is one message of a model, for those who watch what becomes of it. Nothing in it
// may be changed or kept.
type Heard struct {
	// Request is the body that was sent, in parts.
	Request [][]byte
	// Message is the model's message, its calls as it wrote them; nil where Err says why
	// there is none.
	Message json.RawMessage
	Err     error
	// Calls are its calls of our tools, with what was made of their arguments.
	Calls []Written
	// Usage is what the API says of tokens; zero where it says nothing.
	Usage Usage
}

// Written are the arguments of a call: as the model wrote them, and what became of them.
// A call through [CallTool] has two, its own and those of the tool that it names.
type Written struct {
	ID        string // of the call
	Raw       string // as the model wrote them
	Repairs   []dialect.Repair
	Arguments json.RawMessage // in the server's own form; nil where Problem says why
	Problem   *dragoman.Problem
}

// tell tells who watches of a message.
func (d *Dialogue) tell(r *Reply, err error) {
	if d.Client.Heard == nil {
		return
	}
	h := Heard{Request: d.asked, Calls: d.written, Err: err}
	if r != nil {
		h.Usage, h.Message = r.used(), r.written()
	}
	d.Client.Heard(h)
	d.asked, d.written = nil, nil
}

// sends notes what goes to the model.
func (d *Dialogue) sends(body [][]byte) {
	d.sent = int64(rawjson.Size(body))
	if d.Client.Heard != nil {
		d.asked = body
	}
}

// written returns the message with its calls, as the model wrote it.
func (r *Reply) written() json.RawMessage {
	o := &rawjson.Object{}
	if r.Message != nil {
		o = r.Message.Clone()
	}
	if len(r.Calls) > 0 {
		calls := make([]json.RawMessage, len(r.Calls))
		for i, c := range r.Calls {
			calls[i] = c.Raw(c.ID, c.Name, string(c.Arguments))
		}
		o.Set("tool_calls", rawjson.AppendArray(nil, calls))
	}
	return o.Bytes()
}
