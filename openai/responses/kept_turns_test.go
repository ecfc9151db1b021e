package responses

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// TestKeptTurnsAreDocuments: what happened behind a response is found where it was stored as a
// document, which is JSON, and nothing else is remembered of it: the model gets back what it
// thought.
func TestKeptTurnsAreDocuments(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","input":"Weather?","safety_identifier":"ada"}`,
		answered(`"content":null,"reasoning_content":"Hm.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather__get","arguments":"{}"}}]`), spoken("Fine."))
	id := stringOf(got.response, "id")
	s, err := p.store.Get(t.Context(), p.caller, id)
	if err != nil || len(s.Turns) == 0 {
		t.Fatal(s, err)
	}
	document, err := json.Marshal(s.Turns)
	if err != nil {
		t.Fatal(err)
	}
	s.Turns = nil
	if err := json.Unmarshal(document, &s.Turns); err != nil {
		t.Fatal(err)
	}
	p.memory, p.store = &memory.Memory{}, &Memory{}
	if err := p.store.Put(t.Context(), p.caller, s); err != nil {
		t.Fatal(err)
	}
	p.say(`{"model":"m","previous_response_id":"`+id+`","input":"And tomorrow?","safety_identifier":"ada"}`, spoken("Rain."))
	if m := p.messages(); strings.Count(m, `"reasoning_content":"Hm."`) != 1 {
		t.Errorf("the model read %s", m)
	}
}

// TestKeptTurnsAreKeptOnce: what happened behind a response, which counts as much as it is long,
// stands in it once.
func TestKeptTurnsAreKeptOnce(t *testing.T) {
	for _, members := range []string{``, `,"user":"ada"`} {
		p := newPlayer(t)
		got := p.say(`{"model":"m","input":[{"role":"developer","content":"Be brief."},{"role":"user","content":"Weather? `+strings.Repeat("Please. ", 40)+`"}]`+members+`}`, called("weather__get", oslo), spoken("Fine."))
		s, err := p.store.Get(t.Context(), p.caller, stringOf(got.response, "id"))
		if err != nil || len(s.Turns) != 1 {
			t.Errorf("%s: %d turns, %v", members, len(s.Turns), err)
		}
	}
}
