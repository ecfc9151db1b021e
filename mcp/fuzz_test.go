package mcp

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// FuzzInbound: whatever a client sends is refused, or makes a call whose arguments
// and meta are strict JSON objects without what belongs to the wire.
func FuzzInbound(f *testing.F) {
	for _, seed := range []string{
		greeting, legacyCall, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","requestState":"AAE","inputResponses":{"q":{"action":"accept"}},` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `[]`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"\ud83d"}}}`,
	} {
		f.Add([]byte(seed), "2026-07-28")
		f.Add([]byte(seed), "")
	}
	f.Fuzz(func(t *testing.T, b []byte, header string) {
		in, e := readInbound(b)
		if e == nil {
			e = in.judgeEra(header)
		}
		if e != nil {
			if rawjson.Check(replyError(nil, e)) != nil {
				t.Errorf("the refusal is no JSON: %s", replyError(nil, e))
			}
			return
		}
		if in.id != nil && !validID(in.id) {
			t.Errorf("the id %s passed", in.id)
		}
		call := in.call()
		for _, part := range [][]byte{call.Arguments, call.Meta} {
			if part != nil && (rawjson.Check(part) != nil || rawjson.Kind(part) != '{') {
				t.Errorf("%s is no strict object", part)
			}
		}
		if meta := object(call.Meta); meta.Get(metaVersion) != nil || meta.Get("progressToken") != nil {
			t.Errorf("meta %s", call.Meta)
		}
		if call.Answers != nil && (object(call.Arguments).Get("requestState") != nil || !in.modern) {
			t.Errorf("arguments %s", call.Arguments)
		}
	})
}

// FuzzState: whatever is brought back as a state, what is sent with it is strict
// JSON.
func FuzzState(f *testing.F) {
	f.Add([]byte(`i{"round":1,"questions":{"q":{"kind":2,"form":{"a":1}}},"state":"s"}`), []byte(`{"action":"accept"}`))
	f.Add([]byte(`u{"round":1,"questions":{"1":{"kind":4}}}`), []byte(`{"action":"decline"}`))
	f.Add([]byte(`i`), []byte(nil))
	f.Fuzz(func(t *testing.T, state, reply []byte) {
		if len(state) == 0 || state[0] != stateInput && state[0] != stateURL {
			return
		}
		g := readState(&dragoman.Answers{State: state, Replies: map[string]json.RawMessage{"q": reply, "1": reply}})
		if g.problem == nil && rawjson.Check(append(append([]byte{'{'}, g.members...), '}')) != nil {
			t.Errorf("%q with %q makes %s", state, reply, g.members)
		}
	})
}
