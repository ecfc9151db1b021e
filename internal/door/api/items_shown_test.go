package api

import (
	"strings"
	"testing"
)

// Messages that were sent in short, as a role and a text, are listed as clients rely on: with a
// list of parts and a status.
func TestMessagesSentInShortAreListedWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, _ *echo, d *tested) {
		const short, whole = `{"role":"user","content":"one"}`, `"role":"user","content":[{"type":"input_text","text":"one"}],"type":"message",`
		id := idOf(d.ok("POST", "/v1/conversations", `{"items":[`+short+`]}`).Bytes())
		r := idOf(d.ok("POST", "/v1/responses", `{"model":"m","input":[`+short+`]}`).Bytes())
		at := "/v1/conversations/" + id + "/items"
		_, ids, _ := d.items(id, "")
		for _, got := range []string{
			string(d.ok("GET", at, "").Bytes()), string(d.ok("GET", at+"/"+ids[0], "").Bytes()), string(d.ok("POST", at, `{"items":[`+short+`]}`).Bytes()),
			string(d.ok("GET", "/v1/responses/"+r+"/input_items", "").Bytes()),
		} {
			if !strings.Contains(got, whole) || !strings.Contains(got, `"status":"completed"`) {
				t.Errorf("%s", got)
			}
		}
	})
}
