package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// The whole way: a model that is offered two tools finds one of the demo's and calls
// it, and what it reads is what that tool said.
func TestSearchThroughTheGateway(t *testing.T) {
	g := build(t, func(f *config.File) { f.Tools.Search = "always" })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := web(t, g.Handler())
	script := "CALL find_tools {\"query\":\"weather in a city\"}\nTHEN\nCALL call_tool {\"name\":\"get_weather\",\"arguments\":{\"city\":\"Paris\"}}"
	body, _ := json.Marshal(map[string]any{
		"model": "rehearsal", "messages": []any{map[string]any{"role": "user", "content": script}}, "dragoman": map[string]any{"messages": true},
	})
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %s, %v", resp.StatusCode, answer, err)
	}
	var chat struct {
		Dragoman struct {
			Messages []struct{ Role, Content string }
		}
	}
	if err := json.Unmarshal(answer, &chat); err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, m := range chat.Dragoman.Messages {
		if m.Role == "tool" {
			results = append(results, m.Content)
		}
	}
	if len(results) != 2 || !strings.Contains(results[0], `"name":"get_weather"`) || !strings.Contains(results[0], `"input_schema":`) || strings.Contains(results[0], "delete_file") ||
		!strings.Contains(results[1], `"status":"success"`) || !strings.Contains(results[1], `"tool":"get_weather","server":"demo"`) {
		t.Errorf("the model read %q", results)
	}
}

func TestSearchIsAutomatic(t *testing.T) {
	g := build(t, nil)
	open, err := g.Open(t.Context(), caller.Local, session.Want{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (model.Search{When: model.Auto, Tokens: model.DefaultSearchTokens}); open.Search != want {
		t.Errorf("without a word in the configuration the search is %+v", open.Search)
	}
	open, err = g.Open(t.Context(), caller.Local, session.Want{Model: "rehearsal"})
	if err != nil {
		t.Fatal(err)
	}
	if open.Search.When == model.Auto {
		t.Error("the rehearsal model would have to search, which it does only when it is told to")
	}
	list, err := open.Tools.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools.All() {
		if slices.Contains([]string{model.FindTools, model.CallTool}, tool.Name) {
			t.Errorf("%s is listed beside the tools of servers", tool.Name)
		}
	}
}
