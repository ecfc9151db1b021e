package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	folder, err := toolkit.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	s := newServer(folder)
	defer s.Close()
	session, err := s.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, tt := range []struct{ tool, arguments, want string }{
		{"notes_write_file", `{"path":"travel/rome.md","text":"Pantheon\n"}`, `{"path":"travel/rome.md"}`},
		{"notes_write_file", `{"path":"travel/rome.md","text":"x"}`, `"travel/rome.md" exists already.`},
		{"notes_write_file", `{"path":"../x","text":"x"}`, "is not a path inside the folder"},
		{"notes_list_files", `{"contains":"Travel"}`, `{"total":1,"count":1,"offset":0,"items":["travel/rome.md"],"has_more":false}`},
		{"notes_read_file", `{"path":"travel/rome.md"}`, `{"path":"travel/rome.md","text":"Pantheon\n"}`},
		{"notes_delete_file", `{"path":"travel/rome.md"}`, `{"path":"travel/rome.md"}`},
		{"notes_read_file", `{"path":"travel/rome.md"}`, `There is no file "travel/rome.md".`},
	} {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool, Arguments: json.RawMessage(tt.arguments)})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.tool, tt.arguments, got, tt.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("read me"), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "notes://a.txt"})
	if err != nil || res.Contents[0].Text != "read me" {
		t.Errorf("resource: %v, %v", res, err)
	}
}
