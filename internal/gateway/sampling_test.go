package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// poet is a server with a tool that asks for a model, as often as it is told, and
// says what it heard.
type poet struct{}

func (poet) Owner() string { return "" }

func (poet) Describe(context.Context) mcp.Description {
	return mcp.Description{Info: json.RawMessage(`{"name":"poet","version":"1"}`), Capabilities: json.RawMessage(`{"tools":{}}`)}
}

func (poet) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	switch call.Method {
	case "tools/list":
		return dragoman.Result{Content: json.RawMessage(`{"tools":[{"name":"poem","description":"Writes a poem.","inputSchema":{"type":"object","properties":{"times":{"type":"integer"}}}}]}`)}, nil
	case "subscriptions/listen":
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	params, _ := rawjson.ParseObject(call.Arguments)
	arguments, _ := rawjson.ParseObject(params.Get("arguments"))
	times, _ := rawjson.Int(arguments.Get("times"))
	heard := []string{}
	if call.Answers != nil {
		_ = json.Unmarshal(call.Answers.State, &heard)
		heard = append(heard, string(call.Answers.Replies["ask"]))
	}
	if call.Can&dragoman.AskSampling == 0 {
		heard = append(heard, "nobody can be asked")
	} else if len(heard) < times {
		state, _ := json.Marshal(heard)
		return dragoman.Result{Asks: &dragoman.Asks{State: state, Questions: []dragoman.Question{{
			Key: "ask", Kind: dragoman.AskSampling,
			Params: json.RawMessage(`{"systemPrompt":"Be a poet.","maxTokens":50,"messages":[{"role":"user","content":{"type":"text","text":"SAY roses are red"}}]}`),
		}}}}, nil
	}
	return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"text","text":` + string(rawjson.Quote(strings.Join(heard, "; "))) + `}]}`)}, nil
}

// TestSampling: a server of either era that asks for a model while a chat calls it is
// answered by the model of that chat, where the configuration says so, within bounds.
func TestSampling(t *testing.T) {
	for _, tc := range []struct {
		name, era, times string
		allow            bool
		want             []string
	}{
		{"allowed", "legacy", "1", true, []string{"roses are red", "stopReason: endTurn"}},
		{"allowed", "modern", "1", true, []string{"roses are red", "stopReason: endTurn"}},
		{"too often", "legacy", "4", true, []string{"roses are red", "; ;."}}, // it goes on without an answer
		{"too often", "modern", "4", true, []string{"was given up (unanswered)"}},
		{"not allowed", "legacy", "1", false, []string{"nobody can be asked"}},
		{"not allowed", "modern", "1", false, []string{"nobody can be asked"}},
	} {
		t.Run(tc.name+", "+tc.era, func(t *testing.T) {
			sampling(t, tc.era, tc.times, tc.want, func(f *config.File) { f.Sampling.Answer = tc.allow })
		})
	}
}

// TestSamplingOfTheSpent: a server gets no answers of a model of which the caller has nothing
// left, though the chat was let in before.
func TestSamplingOfTheSpent(t *testing.T) {
	for name, spent := range map[string]func(*config.File){
		"limit":  func(f *config.File) { f.Limits = []limit.Limit{{Of: []string{"model:*"}, Tokens: 1}} },
		"budget": func(f *config.File) { f.Budgets = []budget.Budget{{Tokens: 1}} },
		"group":  func(f *config.File) { f.Budgets = []budget.Budget{{Tokens: 1, Per: "all"}} },
	} {
		t.Run(name, func(t *testing.T) {
			sampling(t, "legacy", "1", []string{"The result is empty."}, func(f *config.File) {
				f.Sampling.Answer, f.Store.Path = true, filepath.Join(t.TempDir(), "dragoman.db")
				spent(f)
			})
		})
	}
}

func sampling(t *testing.T, era, times string, want []string, change func(*config.File)) {
	behind := &mcp.Server{Host: func(*http.Request) (mcp.Host, error) { return poet{}, nil }}
	t.Cleanup(behind.Close)
	url := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if era == "legacy" && r.Header.Get("Mcp-Method") != "" {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	g := build(t, func(f *config.File) {
		f.MCPServers = map[string]servers.Config{"poet": {URL: url}}
		f.Sampling.Questions = 2
		change(f)
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := g.Servers()[0].Era; got != era {
		t.Fatalf("the gateway speaks the %s era with the server", got)
	}
	body := `{"model":"x","messages":[{"role":"user","content":"CALL poem {\"times\":` + times + `}"}]}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, r)
	for _, part := range want {
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, part) {
			t.Errorf("%d %s, want %s in it", w.Code, got, part)
		}
	}
}
