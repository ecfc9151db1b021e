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
