package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// chatWire is the Chat API.
var chatWire = wire{name: "chat", form: door.OpenAI, idHeader: "X-Request-Id", read: func(a *API, _ *http.Request, who caller.Caller, body []byte) (asking, error) {
	request, err := chat.Parse(body)
	if err != nil {
		return nil, err
	}
	return chatAsking{request, a.memory(), who.ID}, nil
}}

// A chatAsking is a request to POST /v1/chat/completions.
type chatAsking struct {
	*chat.Request
	memory memory.Store // nil where nothing is remembered
	caller string
}

func (c chatAsking) about() about {
	return about{
		model: c.Model, stream: c.Stream, session: c.Session(), servers: c.Servers, withhold: c.Withhold(),
	}
}

func (c chatAsking) rename(model string) { c.Rename(model) }

func (c chatAsking) plain(ctx context.Context, why string) json.RawMessage {
	if (why == "" || why == notAsked) && c.memory != nil && c.Remembered(ctx, c.memory, c.caller) {
		return nil
	}
	return c.Plain()
}

func (c chatAsking) converse(w http.ResponseWriter, options chat.Options, _ *session.Session) (conversation, error) {
	return chat.New(c.Request, w, options)
}
