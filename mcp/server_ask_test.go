package mcp

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestLegacyParams: a visit to an address that a modern server asks for has an id of ours for
// a legacy client, another for each; whatever else is asked is asked as it came.
func TestLegacyParams(t *testing.T) {
	const visit = `{"mode":"url","message":"Go","url":"https://a.test/"}`
	ids := map[string]bool{}
	for range 2 {
		o := object(legacyParams(dragoman.Question{Kind: dragoman.AskURL, Params: json.RawMessage(visit)}))
		id, ok := rawjson.String(o.Get("elicitationId"))
		if !ok || id == "" || ids[id] || string(o.Get("url")) != `"https://a.test/"` {
			t.Errorf("asked with %s", o.Bytes())
		}
		ids[id] = true
	}
	for _, q := range []dragoman.Question{
		{Kind: dragoman.AskURL, Params: json.RawMessage(`{"mode":"url","message":"Go","url":"https://a.test/","elicitationId":"theirs"}`)},
		{Kind: dragoman.AskForm, Params: json.RawMessage(`{"message":"?"}`)},
		{Kind: dragoman.AskRoots},
	} {
		if got := legacyParams(q); string(got) != string(q.Params) {
			t.Errorf("%s was asked as %s", q.Params, got)
		}
	}
}

// TestInputRequiredOfRoots: the official SDK's client reads what asks for roots, which legacy
// servers ask for without params.
func TestInputRequiredOfRoots(t *testing.T) {
	asked := inputRequired(&dragoman.Asks{Questions: []dragoman.Question{
		{Key: "1", Kind: dragoman.AskRoots},
		{Key: "2", Kind: dragoman.AskForm, Params: json.RawMessage(`{"message":"?"}`)},
	}})
	var got sdk.CallToolResult
	if err := json.Unmarshal(asked, &got); err != nil {
		t.Fatalf("%v of %s", err, asked)
	}
	if form, ok := got.InputRequests["2"].(*sdk.ElicitParams); !ok || form.Message != "?" || len(got.InputRequests) != 2 {
		t.Errorf("read %+v of %s", got.InputRequests, asked)
	}
}
