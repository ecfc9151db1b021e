package mcpserve

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// A template of one server catches no URI that says that it is another's, and none is
// matched for as long as its server likes.
func TestResourceOfTemplates(t *testing.T) {
	for _, tc := range []struct {
		name, template, uri string // the template of a, and what is read
		server, original    string // empty for nobody
	}{
		{"one that it makes", "notes:///{day}", "notes:///monday", "a", "notes:///monday"},
		{"any", "{+uri}", "logs:///monday", "a", "logs:///monday"},
		{"another's", "{+uri}", "x-mcp:b:logs:///monday", "b", "logs:///monday"},
		{"its own", "{+uri}", "x-mcp:a:logs:///monday", "a", "logs:///monday"},
		{"of nobody", "{+uri}", "x-mcp:c:logs:///monday", "a", "x-mcp:c:logs:///monday"},
		{"many variables", "notes:///" + strings.Repeat("{a}", 32), "notes:///monday", "a", "notes:///monday"},
		{"too many", "notes:///" + strings.Repeat("{a}", 33), "notes:///monday", "", ""},
		{"a long one", "notes:///" + strings.Repeat("a", 4<<20) + "{day}", "notes:///monday", "", ""},
		{"a long URI", "notes:///{day}", "notes:///" + strings.Repeat("a", 8<<10), "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := &view{
				servers:  []dragoman.Server{{Label: "a", Capabilities: []byte(`{"resources":{}}`)}, {Label: "b", Capabilities: []byte(`{"resources":{}}`)}},
				entries:  []dragoman.Entry{{Kind: dragoman.Template, Server: "a", Original: tc.template, URI: tc.template}},
				patterns: map[string]*regexp.Regexp{},
			}
			e := v.resource(tc.uri)
			if e == nil {
				e = &dragoman.Entry{}
			}
			if e.Server != tc.server || e.Original != tc.original {
				t.Errorf("%.50q at %q, want %q at %q", e.Original, e.Server, tc.original, tc.server)
			}
		})
	}
}
