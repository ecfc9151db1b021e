package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// The Chat API knows no questions. Where calls of ours ask and nobody is there to
// answer at once, the turn ends with a message that says so, and its dragoman member
// says what is asked, for clients that know us:
//
//	"dragoman":{"asks":{"id":"…","questions":[{"call":"call_1","key":"…","kind":"form",
//	  "server":"files","params":{…}}]}}
//
// Such a client sends its request again, with the answers by call and key. A question
// is answered by the raw result of the MCP request that params are the params of:
//
//	"dragoman":{"answers":{"id":"…","replies":{"call_1":{"…":{"action":"accept","content":{…}}}}}}
//
// The calls then go on where they were, and the model is told what came of them.

// readAnswers reads the answers member; nil for none.
func readAnswers(raw json.RawMessage) (*recall.Answers, error) {
	if rawjson.IsNull(raw) {
		return nil, nil
	}
	wrong := model.Invalid("dragoman.answers", "\"answers\" must be an object with the id of what was asked, and replies by call and key.")
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return nil, wrong
	}
	a := &recall.Answers{Param: "dragoman.answers.id", ByCall: map[string]map[string]json.RawMessage{}}
	if a.ID, _ = rawjson.String(o.Get("id")); a.ID == "" {
		return nil, wrong
	}
	calls, err := rawjson.ParseObject(o.Get("replies"))
	if err != nil {
		return nil, wrong
	}
	for _, call := range calls.Members {
		byKey, err := rawjson.ParseObject(call.Value)
		if err != nil {
			return nil, wrong
		}
		a.ByCall[call.Name] = map[string]json.RawMessage{}
		for _, reply := range byKey.Members {
			if rawjson.Kind(reply.Value) != '{' {
				return nil, wrong
			}
			a.ByCall[call.Name][reply.Name] = reply.Value
		}
	}
	return a, nil
}

// asked returns what is asked, for the dragoman member of the answer. Questions for
// an operator are not the client's to answer, and are named only.
func (c *Conversation) asked(m *memory.Message) json.RawMessage {
	questions := []json.RawMessage{}
	for i := range m.Calls {
		w := m.Calls[i].Waiting
		if w == nil {
			continue
		}
		for _, q := range w.Questions {
			var o rawjson.Object
			o.Set("call", rawjson.Quote(m.Calls[i].ID))
			o.Set("key", rawjson.Quote(q.Key))
			o.Set("kind", rawjson.Quote(q.Kind.String()))
			o.Set("server", rawjson.Quote(w.Server))
			o.Set("tool", rawjson.Quote(w.Original))
			if q.Operator {
				o.Set("operator", json.RawMessage("true"))
			} else if q.Params != nil {
				o.Set("params", q.Params)
			}
			questions = append(questions, o.Bytes())
		}
	}
	var o rawjson.Object
	o.Set("id", rawjson.Quote(c.thread.Asks))
	o.Set("questions", rawjson.AppendArray(nil, questions))
	return o.Bytes()
}

// sayAsks tells the client in words that an answer is needed. A client that wants
// JSON has to read the dragoman member.
func (c *Conversation) sayAsks(r *model.Reply, m *memory.Message) {
	if c.id == nil {
		c.adopt(r.Envelope)
	}
	if c.request.jsonFormat {
		return
	}
	var lines []string
	for i := range m.Calls {
		w := m.Calls[i].Waiting
		if w == nil {
			continue
		}
		for _, q := range w.Questions {
			line := fmt.Sprintf("The tool %q of %q needs an answer before it can go on", w.Original, w.Server)
			if params, err := rawjson.ParseObject(q.Params); err == nil && !q.Operator {
				if message, _ := rawjson.String(params.Get("message")); message != "" {
					line += ": " + clip.Text(message, 500)
				}
			}
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		lines = []string{"A tool wants to be called again later."}
	}
	text := strings.Join(lines, "\n")
	c.say(r, text)
	c.visible = append(c.visible, text)
}

// say sends text of ours, or what we kept, to the client of a stream, with what it cites.
func (c *Conversation) say(r *model.Reply, text string, cited ...json.RawMessage) {
	if text == "" || !c.request.Stream {
		return
	}
	envelope, choice := r.Envelope.Clone(), r.Choice.Clone()
	envelope.Set("object", rawjson.Quote("chat.completion.chunk"))
	choice.Delete("message")
	choice.Delete("logprobs")
	if choice.Get("index") == nil {
		choice.Set("index", json.RawMessage("0"))
	}
	delta := &rawjson.Object{Members: []rawjson.Member{{Name: "content", Value: rawjson.Quote(text)}}}
	if len(cited) > 0 {
		delta.Set("annotations", rawjson.AppendArray(nil, cited))
	}
	c.forward(envelope, choice, delta)
}
