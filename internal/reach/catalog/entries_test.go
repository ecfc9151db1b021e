package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
)

func TestNameEntries(t *testing.T) {
	entries := []dragoman.Entry{
		{Kind: dragoman.Prompt, Server: "b", Original: "sum up"},
		{Kind: dragoman.Resource, Server: "b", Original: "file:///x"},
		{Kind: dragoman.Resource, Server: "a", Original: "file:///x"},
		{Kind: dragoman.Template, Server: "a", Original: "db://{table}"},
		{Kind: dragoman.Template, Server: "b", Original: "db://{table}"},
		{Kind: dragoman.Resource, Server: "b", Original: "ui://view"},
	}
	var got []string
	for _, e := range NameEntries(entries, Config{}) {
		got = append(got, e.Server+" "+e.Name+e.URI)
		if e.URI != "" && OriginalURI(e.Server, e.URI) != e.Original {
			t.Errorf("%s is not reversible: %s", e.URI, OriginalURI(e.Server, e.URI))
		}
	}
	want := []string{"a file:///x", "a db://{table}", "b b__sum up", "b x-mcp:b:file:///x", "b x-mcp:b:db://{table}", "b ui://view"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, uri := range []string{"file:///x", "x-mcp:", "x-mcp:a", "x-mcp::b", "x-mcp:a:"} {
		if _, _, ok := SplitURI(uri); ok {
			t.Errorf("%q says whose it is", uri)
		}
	}
}

// Whatever stands in front of names, no two entries share one, and a name is the
// same whichever other servers there are, unless they would share it.
func TestEntryNamesByStrategy(t *testing.T) {
	entries := []dragoman.Entry{
		{Kind: dragoman.Prompt, Server: "a", Original: "sum", Name: "sum"},
		{Kind: dragoman.Prompt, Server: "a", Original: "sum", Name: "sum"},
		{Kind: dragoman.Prompt, Server: "a", Original: "other", Name: "other"},
		{Kind: dragoman.Skill, Server: "a", Original: "skill://x/refunds/SKILL.md", URI: "skill://x/refunds/SKILL.md", Name: "refunds"},
		{Kind: dragoman.Skill, Server: "a", Original: "skill://y/refunds/SKILL.md", URI: "skill://y/refunds/SKILL.md", Name: "refunds"},
		{Kind: dragoman.Prompt, Server: "b", Original: "sum", Name: "sum"},
		{Kind: dragoman.Skill, Server: "b", Original: "skill://x/refunds/SKILL.md", URI: "skill://x/refunds/SKILL.md", Name: "refunds"},
	}
	identity := func(label string) string { return "https://example.com/" + label }
	for strategy, want := range map[Strategy][]string{
		Label:  {"a__sum", "a__other", "a__refunds_08a0eb60", "a__refunds_970f8db1", "b__sum", "b__refunds"},
		Random: nil,
		Host:   {"example.com__sum_4c744a0d", "example.com__other", "", "", "", ""},
		None:   {"sum_4c744a0d", "other", "", "", "", ""},
	} {
		t.Run(string(strategy), func(t *testing.T) {
			named := NameEntries(entries, Config{Strategy: strategy, Identity: identity})
			if len(named) != 6 {
				t.Fatalf("%d entries", len(named))
			}
			seen := map[string]bool{}
			for i, e := range named {
				if id := string(e.Kind) + " " + e.Name; seen[id] {
					t.Errorf("%s is there twice", id)
				} else {
					seen[id] = true
				}
				if want != nil && want[i] != "" && e.Name != want[i] {
					t.Errorf("%s of %s is named %q, want %q", e.Original, e.Server, e.Name, want[i])
				}
			}
			if named[3].URI != entries[4].Original || named[5].URI != "x-mcp:b:skill://x/refunds/SKILL.md" {
				t.Errorf("skills are at %q and %q", named[3].URI, named[5].URI)
			}
		})
	}
}
