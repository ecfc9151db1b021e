package dragoman_test

import (
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

func TestToolsFind(t *testing.T) {
	quarantine := &dragoman.Problem{Code: dragoman.CodeInvalidTool}
	x := dragoman.NewTools([]dragoman.Tool{
		{Name: "files__read", Server: "files", Original: "read"},
		{Name: "files__List", Server: "files", Original: "List"},
		{Name: "git__list", Server: "git", Original: "list"},
		{Name: "git__log", Server: "git", Original: "log"},
		{Name: "git__log_1a2b3c4d", Server: "git", Original: "log", Quarantined: quarantine},
		{Name: "web__fetch_1a2b3c4d", Server: "web", Original: "fetch", Quarantined: quarantine},
		{Name: "web__fetch", Server: "web", Original: "fetch"},
		{Name: "web__post", Server: "web", Original: "post", Quarantined: quarantine},
		{Name: "plain", Server: "one", Original: "plain"},
		{Name: "Twin", Server: "one", Original: "Twin"},
		{Name: "twin", Server: "one", Original: "twin"},
		{Name: "TWIN", Server: "one", Original: "TWIN"},
	})
	tests := []struct{ name, find, want string }{
		{"by its name", "files__read", "files__read"},
		{"in the wrong case", "Files__READ", "files__read"},
		{"without prefix", "read", "files__read"},
		{"without prefix, in the wrong case", "READ", "files__read"},
		{"without prefix, where two servers have it", "list", ""},
		{"in the exact case of one of them", "List", ""},
		{"with the prefix of one of them", "files__list", "files__List"},
		{"without prefix, where the other one is in quarantine", "log", "git__log"},
		{"where the one in quarantine comes first", "fetch", "web__fetch"},
		{"in quarantine alone", "post", "web__post"},
		{"that never had a prefix", "PLAIN", "plain"},
		{"that differs from others in case, exactly", "Twin", "Twin"},
		{"that differs from others in case", "tWIN", ""},
		{"nobody has", "write", ""},
		{"of another server", "git__read", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if tool := x.Find(tt.find); tool != nil {
				got = tool.Name
			}
			if got != tt.want {
				t.Errorf("Find(%q) = %q, want %q", tt.find, got, tt.want)
			}
		})
	}
	if x.Exact("files__read") == nil || x.Exact("read") != nil || x.Exact("FILES__READ") != nil {
		t.Error("Exact finds names that are not exact")
	}
}
