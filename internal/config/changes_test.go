package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
)

// What needs another start is named and put back; the rest is named and taken over.
func TestFollow(t *testing.T) {
	began, f := Default(), Default()
	began.MCPServers = map[string]servers.Config{"a": {Command: "x"}, "b": {Command: "y"}}
	f.MCPServers = map[string]servers.Config{"a": {Command: "x"}, "b": {Command: "z"}, "c": {Command: "w"}}
	f.Policy = []policy.Rule{{Allow: []string{"*"}}}
	f.Listen, f.Store.Path, f.HTTP.HeaderTimeout, f.Loop.CallTimeout = "127.0.0.1:1", "elsewhere", time.Hour, time.Hour
	f.Loop.Rounds++
	c := f.Follow(began, began)
	if want := []string{"http.header_timeout", "listen", "store"}; !slices.Equal(slices.Sorted(slices.Values(c.Restart)), want) {
		t.Errorf("another start is needed for %q", c.Restart)
	}
	if want := []string{"loop.call_timeout", "loop.rounds", "mcpServers.b", "mcpServers.c", "policy"}; !slices.Equal(slices.Sorted(slices.Values(c.Now)), want) {
		t.Errorf("changed are %q", c.Now)
	}
	if f.Listen != began.Listen || f.Store != began.Store || f.HTTP != began.HTTP || f.Loop.Rounds == began.Loop.Rounds {
		t.Errorf("taken over: %+v", f)
	}
	if c := f.Follow(began, f); len(c.Now)+len(c.Restart) != 0 {
		t.Errorf("nothing changed: %+v", c)
	}
}

// Each key that needs another start is one, and stands in the guide.
func TestRestartsAreKeys(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "These keys need a restart.")
	table, _, _ = strings.Cut(table, "A file that has neither")
	for _, key := range restarts {
		if !slices.Contains(keys(), key) {
			t.Errorf("there is no key %s", key)
		}
		if !strings.Contains(table, "`"+key+"`") {
			t.Errorf("docs/operations.md does not say that %s needs a restart", key)
		}
	}
}

// keys are those of the file and of its sections.
func keys() (all []string) {
	file := reflect.TypeFor[File]()
	for _, field := range fieldsOf(file) {
		all = append(all, field.name)
		if section := file.FieldByIndex(field.index).Type; section.Kind() == reflect.Struct {
			for _, inner := range fieldsOf(section) {
				all = append(all, field.name+"."+inner.name)
			}
		}
	}
	return all
}
