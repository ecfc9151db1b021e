package responses

import (
	"encoding/json"
	"testing"
)

// TestSearchOfKeptItems: items that have tools are looked for again where a request goes on
// from a conversation that has some, though it was asked before.
func TestSearchOfKeptItems(t *testing.T) {
	r, err := Parse([]byte(`{"model":"m","conversation":"conv_1","input":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Search() != nil {
		t.Error("a search that nobody declared")
	}
	if err := r.Join(&Kept{Items: []json.RawMessage{[]byte(`{"type":"additional_tools","id":"at_1","role":"developer","tools":[{"type":"web_search"}]}`)}}); err != nil {
		t.Fatal(err)
	}
	if r.Search() == nil {
		t.Error("the search of an item that was kept is not known")
	}
}
