package model

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestArgumentsThatAreNoObject: calls go into the history of a Chat API with arguments that
// are a JSON object, whoever said them. Those that are one are not touched, nor is anything
// that the Responses API gets.
func TestArgumentsThatAreNoObject(t *testing.T) {
	message := func(arguments string) json.RawMessage {
		return ChatAnswer(null, []json.RawMessage{ChatCall("call_1", "look", rawjson.Quote(`{"at":"here"}`)), ChatCall("call_2", "look", rawjson.Quote(arguments))})
	}
	for said, want := range map[string]string{
		`{"at":"th`: "{}", `{"at":th}`: "{}", "": "{}", `["th"]`: "{}", "th": "{}",
		`{}`: `{}`, ` {"at": "th\n"} `: ` {"at": "th\n"} `,
	} {
		for name, add := range map[string]func(*Dialogue, json.RawMessage){
			"the client's": func(d *Dialogue, m json.RawMessage) {
				o, err := rawjson.ParseObject(m)
				if err != nil {
					t.Fatal(err)
				}
				d.Add(m, o)
			},
			"hidden": func(d *Dialogue, m json.RawMessage) { d.AddHidden(m) },
		} {
			for _, api := range []API{ChatAPI, ResponsesAPI} {
				d := &Dialogue{Client: &Client{API: api}}
				add(d, message(said))
				want := want
				if api == ResponsesAPI {
					want = said
				}
				if got := string(d.History()[0]); got != string(message(want)) {
					t.Errorf("%s, over %v: %q is sent as %s", name, api, said, got)
				}
			}
		}
	}
}
