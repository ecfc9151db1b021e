package chat

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A message that is held for a client that asked for JSON takes the room of its
// text, not that of the chunks that brought it, and has a limit.
func TestHeldIsBounded(t *testing.T) {
	body := with(streamBody, `"response_format":{"type":"json_object"}`)
	run := func(stream string, limit int64) (*client, *Conversation, error) {
		w := &client{}
		chat := newChat(t, w, body, Options{Model: &model.Client{MaxMessage: limit, Post: func(context.Context, [][]byte) (*http.Response, error) {
			return streamed(strings.NewReader(stream)), nil
		}}})
		err := (&dragoman.Loop{Tools: calling(nil)}).Run(t.Context(), chat)
		return w, chat, err
	}
	const n = 40_000
	chunk := `data: {"id":"up2","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}` + "\n\n"
	w, chat, err := run(strings.Repeat(chunk, n)+fineStream, 0)
	if err != nil {
		t.Fatal(err)
	}
	checkCompletion(t, w)
	text, events := "", 0
	for event := range strings.SplitSeq(w.String(), "\n\n") {
		o, err := rawjson.ParseObject([]byte(strings.TrimPrefix(event, "data: ")))
		if err != nil {
			continue
		}
		events++
		choices, _ := rawjson.Elements(o.Get("choices"))
		choice, _ := rawjson.ParseObject(choices[0])
		delta, _ := rawjson.ParseObject(choice.Get("delta"))
		piece, _ := rawjson.String(delta.Get("content"))
		text += piece
	}
	if text != strings.Repeat("x", n)+"Fine." || chat.held.size > holdWhole+1000 || events >= n {
		t.Errorf("%d bytes of text in %d events, %d held", len(text), events, chat.held.size)
	}
	// Chunks that are not text alone are held as they are, up to the limit.
	odd := strings.Replace(chunk, `"content":"x"`, `"odd":true`, 1)
	_, _, err = run(strings.Repeat(chunk+odd, 10_000)+fineStream, 300_000)
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Code != model.CodeUpstreamInvalid {
		t.Errorf("error %v", err)
	}
}
