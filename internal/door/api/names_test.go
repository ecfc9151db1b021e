package api

import (
	"strings"
	"testing"
)

// What is kept of a conversation is kept under the name that its client gives it, of which there
// may be many: names that nobody needs are refused at each door.
func TestLongNames(t *testing.T) {
	up := &recorder{}
	d := open(t, nil, up.model(t, "m"))
	const limit = 1024
	for _, tt := range []struct{ path, member, body string }{
		{"/v1/chat/completions", "user", `{"model":"m","messages":[{"role":"user","content":"Hi"}],"user":"NAME"}`},
		{"/v1/chat/completions", "safety_identifier", `{"model":"m","messages":[{"role":"user","content":"Hi"}],"safety_identifier":"NAME"}`},
		{"/v1/chat/completions", "prompt_cache_key", `{"model":"m","messages":[{"role":"user","content":"Hi"}],"prompt_cache_key":"NAME"}`},
		{"/v1/responses", "prompt_cache_key", `{"model":"m","input":"Hi","prompt_cache_key":"NAME"}`},
		{"/v1/messages", "metadata.user_id", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"metadata":{"user_id":"NAME"}}`},
	} {
		for long, refused := range map[int]bool{limit: false, limit + 1: true} {
			a := d.do("POST", tt.path, strings.Replace(tt.body, "NAME", strings.Repeat("n", long), 1))
			if (a.status == 400) != refused || refused != strings.Contains(a.body, tt.member) {
				t.Errorf("%s with %d bytes of %s: %d %.300s", tt.path, long, tt.member, a.status, a.body)
			}
		}
	}
}
