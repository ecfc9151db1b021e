package chat

import (
	"encoding/json"
	"strconv"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// progress returns what tells the client of a stream how a call of a tool gets
// on; nil where there is no stream. A comment line is harmless to every client,
// so that is the form; chunks of their own come only to a client that asked for
// them with "dragoman":{"progress":true}.
func (c *Conversation) progress(tool *dragoman.Tool) func(dragoman.Progress) {
	if !c.request.Stream {
		return nil
	}
	return func(p dragoman.Progress) {
		if c.request.wantProgress {
			c.progressChunk(tool, p)
			return
		}
		c.out.Note(ProgressText(tool, p))
	}
}

// progressChunk sends a chunk that changes nothing of the answer.
func (c *Conversation) progressChunk(tool *dragoman.Tool, p dragoman.Progress) {
	var told rawjson.Object
	told.Set("tool", rawjson.Quote(tool.Name))
	told.Set("progress", json.RawMessage(number(p.Progress)))
	if p.Total > 0 {
		told.Set("total", json.RawMessage(number(p.Total)))
	}
	if p.Message != "" {
		told.Set("message", rawjson.Quote(clip.Text(p.Message, 300)))
	}
	c.progressing.Lock()
	defer c.progressing.Unlock()
	if c.id == nil { // calls of an earlier turn go on, and the model has said nothing yet
		c.adopt(&rawjson.Object{})
	}
	delta := "{}"
	if !c.role && !c.request.jsonFormat { // there the role comes with what is held
		c.role, delta = true, `{"role":"assistant","content":""}`
	}
	var chunk rawjson.Object
	c.identify(&chunk)
	chunk.Set("object", rawjson.Quote("chat.completion.chunk"))
	chunk.Set("choices", json.RawMessage(`[{"index":0,"delta":`+delta+`,"finish_reason":null}]`))
	c.setUsage(&chunk, nil)
	chunk.Set("dragoman", append(append(json.RawMessage(`{"progress":`), told.Bytes()...), '}'))
	c.out.Event("", chunk.Bytes())
	_ = c.out.Flush() // a client that is gone shows elsewhere
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// ProgressText returns what a comment in a stream says of how a call gets on.
func ProgressText(tool *dragoman.Tool, p dragoman.Progress) string {
	text := "progress " + tool.Name + " " + number(p.Progress)
	if p.Total > 0 {
		text += "/" + number(p.Total)
	}
	if p.Message != "" {
		text += " " + p.Message
	}
	return text
}
