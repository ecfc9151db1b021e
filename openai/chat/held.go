package chat

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// held are the chunks of a message that wait until it is known whether it is the
// last one: a client that asked for JSON must not get what stands before a call.
type held struct {
	chunks []json.RawMessage
	size   int64           // of the chunks, in bytes
	text   strings.Builder // behind them, in place of more chunks
	like   *rawjson.Object // what a chunk looks like
}

// holdWhole is how much is held chunk by chunk. Beyond it text is held without the
// chunks around it, which take many times its room.
const holdWhole = 1 << 20

// full reports whether text is better held by itself.
func (h *held) full() bool { return h.size > holdWhole }

// add holds a copy of a chunk.
func (h *held) add(chunk []byte) {
	h.flush()
	h.chunks = append(h.chunks, bytes.Clone(chunk))
	h.size += int64(len(chunk)) + 24
	if h.like == nil {
		h.like, _ = rawjson.ParseObject(bytes.Clone(chunk))
	}
}

// flush makes a chunk of the text that is held by itself.
func (h *held) flush() {
	if h.text.Len() == 0 {
		return
	}
	o := h.like.Clone()
	o.Set("choices", json.RawMessage(`[{"index":0,"delta":{"content":`+string(rawjson.Quote(h.text.String()))+`},"finish_reason":null}]`))
	h.text.Reset()
	h.chunks = append(h.chunks, o.Bytes())
}

// all returns what is held.
func (h *held) all() []json.RawMessage {
	h.flush()
	return h.chunks
}
