package api

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// A model whose entry says so gets tools only where a request names servers: who asks it for
// a title does not get a call made again.
func TestOfferNamed(t *testing.T) {
	up := &recorder{}
	m := up.model(t, "m")
	m.Wires, m.Offer = []string{upstream.Chat}, upstream.OfferNamed
	d := open(t, nil, m)
	messages := `"messages":[{"role":"user","content":"Hi"}]`
	mcp := `,"tools":[{"type":"mcp","server_label":"weather","require_approval":"never"}]`
	for _, tt := range []struct{ path, body, named string }{
		{"/v1/chat/completions", messages, mcp},
		{"/v1/responses", `"input":"Hi"`, mcp},
		{"/v1/messages", `"max_tokens":9,` + messages, `,"mcp_servers":[{"name":"weather"}]`},
	} {
		a := d.do("POST", tt.path, `{"model":"m",`+tt.body+`}`)
		if got := up.last(t); strings.Contains(got.body, `"tools"`) || a.header.Get("X-Dragoman-Tools") != "withheld: "+notNamed {
			t.Errorf("%s: %q, sent %s", tt.path, a.header.Get("X-Dragoman-Tools"), got.body)
		}
		a = d.do("POST", tt.path, `{"model":"m",`+tt.body+tt.named+`}`)
		if got := up.last(t); !strings.Contains(got.body, "weather__get") || a.header.Get("X-Dragoman-Tools") != "" {
			t.Errorf("%s, which names a server: %q, sent %s", tt.path, a.header.Get("X-Dragoman-Tools"), got.body)
		}
	}
	for _, tt := range []struct{ path, body, named string }{
		{"/v1/responses/input_tokens", `"input":"Hi"`, mcp},
		{"/v1/messages/count_tokens", messages, `,"mcp_servers":[{"name":"weather"}]`},
	} {
		bare, named := d.do("POST", tt.path, `{"model":"m",`+tt.body+`}`), d.do("POST", tt.path, `{"model":"m",`+tt.body+tt.named+`}`)
		if bare.status != 200 || named.status != 200 || len(bare.body) >= len(named.body) {
			t.Errorf("%s: %d %s, with tools %d %s", tt.path, bare.status, bare.body, named.status, named.body)
		}
	}
}
