package stored

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// reflected returns a document as it was written before: its members, and "turns" and "keys".
func reflected(t *testing.T, of any, byKey map[string]*memory.Turn) []byte {
	t.Helper()
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(marshalled(t, of), &all); err != nil {
		t.Fatal(err)
	}
	var turns []json.RawMessage
	keys, places := map[string]int{}, map[*memory.Turn]int{}
	for key, turn := range byKey {
		at, ok := places[turn]
		if !ok {
			encoded, err := turn.Encode()
			if err != nil {
				t.Fatal(err)
			}
			at = len(turns)
			places[turn], turns = at, append(turns, encoded)
		}
		keys[key] = at
	}
	if delete(all, "turns"); len(turns) > 0 {
		all["turns"], all["keys"] = marshalled(t, turns), marshalled(t, keys)
	}
	return marshalled(t, all)
}

// marshalled is the JSON of a value, with <, > and & as they are.
func marshalled(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func someTurns() map[string]*memory.Turn {
	two := &memory.Turn{Final: json.RawMessage(`{"role":"assistant","content":"<b>"}`), Text: "é\"\\", Spent: memory.Spent{Rounds: 2}}
	return map[string]*memory.Turn{"a \"key\" <é>": two, "another": two, "third": {Hidden: []json.RawMessage{json.RawMessage(`{"role":"tool"}`)}}}
}

// TestDocumentsOfResponses reads what is written, and what was written by reflection, in
// whatever order its members are.
func TestDocumentsOfResponses(t *testing.T) {
	for _, s := range []*responses.Stored{
		{ID: "resp_1", Input: []json.RawMessage{json.RawMessage(`{"id":"msg_1","content":"<&>   é"}`), json.RawMessage(`{"n":9007199254740993}`)},
			Output: []json.RawMessage{json.RawMessage(`{"id":"msg_2"}`)}, Response: json.RawMessage(`{"id":"resp_1","status":"completed"}`)},
		{ID: "resp_2", Previous: "resp_1", Conversation: "conv_1", Person: "user \"a\"\n", Session: "\x00\"a\"", Upstream: "resp_up", Response: json.RawMessage(`{}`), Turns: someTurns()},
	} {
		written, err := encodeResponse(s)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(written) {
			t.Fatalf("no JSON: %s", written)
		}
		for how, document := range map[string][]byte{"written": written, "reflected": reflected(t, s, s.Turns)} {
			got, err := decodeResponse(document)
			if err != nil {
				t.Fatal(how, err)
			}
			same(t, how, got, s, got.Turns, s.Turns)
			if len(s.Turns) > 0 && got.Turns["another"] != got.Turns["a \"key\" <é>"] {
				t.Errorf("%s: one turn became two", how)
			}
		}
	}
}

// TestDocumentsOfConversations is the same for conversations.
func TestDocumentsOfConversations(t *testing.T) {
	for _, k := range []*responses.Kept{
		{ID: "conv_1", Created: time.Date(2026, 11, 27, 1, 2, 3, 0, time.UTC)},
		{ID: "conv_2", Created: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Person: "user é", Metadata: json.RawMessage(`{"a":"b"}`), Added: 5,
			Items: []json.RawMessage{json.RawMessage(`{"id":"msg_1","content":"<&>"}`), json.RawMessage(`{"id":"msg_2"}`)}, Turns: someTurns()},
	} {
		written, err := encodeKept(k)
		if err != nil {
			t.Fatal(err)
		}
		for how, document := range map[string][]byte{"written": written, "reflected": reflected(t, k, k.Turns)} {
			got, err := decodeKept(document)
			if err != nil {
				t.Fatal(how, err)
			}
			same(t, how, got, k, got.Turns, k.Turns)
		}
	}
}

func same(t *testing.T, how string, got, want any, gotTurns, wantTurns map[string]*memory.Turn) {
	t.Helper()
	if a, b := normal(marshalled(t, got)), normal(marshalled(t, want)); !bytes.Equal(a, b) {
		t.Errorf("%s: %s, want %s", how, a, b)
	}
	if len(gotTurns) != len(wantTurns) {
		t.Errorf("%s: %d turns, want %d", how, len(gotTurns), len(wantTurns))
	}
	for key, turn := range wantTurns {
		if !reflect.DeepEqual(gotTurns[key], turn) {
			t.Errorf("%s: under %q is %+v, want %+v", how, key, gotTurns[key], turn)
		}
	}
}

// normal does not tell no items from none.
func normal(document []byte) []byte {
	return bytes.ReplaceAll(document, []byte(":[]"), []byte(":null"))
}

// FuzzDocuments: a document that is damaged is an error, or something; never a panic.
func FuzzDocuments(f *testing.F) {
	s := &responses.Stored{ID: "resp_2", Response: json.RawMessage(`{}`), Turns: someTurns()}
	written, err := encodeResponse(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(written)
	f.Add([]byte(`{"id":1,"keys":{"a":7},"turns":[]}`))
	f.Add([]byte(`{"created":"yesterday","added":-1,"items":{}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		if s, err := decodeResponse(document); err == nil && s == nil {
			t.Error("nothing, and no error")
		}
		if k, err := decodeKept(document); err == nil && k == nil {
			t.Error("nothing, and no error")
		}
	})
}
