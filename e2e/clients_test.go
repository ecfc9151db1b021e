package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// facts are what a client script prints; see clients/facts.mjs.
type facts struct {
	ID      string
	Content string
	Finish  string
	Choices int
	Calls   []struct{ ID, Name, Arguments string }
	Usage   map[string]json.RawMessage
	// Names are the calls that the client's user can see.
	Names []string
	// Local are the calls that the client's own tool got.
	Local []struct{ A, B float64 }
	Roles []string
	Steps int
	// Seen is what the stream was made of.
	Seen struct {
		Chunks, Roles, Contents, ToolDeltas, Usages, Empty int
		IDs                                                []string
		Created                                            []int64
		Finishes                                           []string
	}
	Kinds  map[string]int
	Text   string
	Parsed json.RawMessage
	Models []string
	Errors []string
	First  *facts
	Error  *struct {
		Status                       int
		Code, Type, Message, Request string
		Aborted                      bool
	}
}

// script runs a scenario of a client script against the gateway.
func (g *gateway) script(file, scenario, prompt string, env ...string) facts {
	g.t.Helper()
	program, path := node(g.t, filepath.Join("clients", file))
	out := output(g.t, append(env, "DRAGOMAN_BASE_URL="+g.Base), program, path, scenario, prompt)
	var f facts
	if err := json.Unmarshal(out, &f); err != nil {
		g.t.Fatalf("%s %s printed no facts: %v: %s", file, scenario, err, out)
	}
	return f
}

// mix runs scenarios of a client with a conversation of its own tool and two calls of
// ours each, which log has; judge, which may be nil, judges what else a client got.
func (g *gateway) mix(t *testing.T, log, file string, scenarios []string, judge func(*testing.T, facts)) {
	before := len(ran(t, log))
	for i, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			g.t = t
			got := g.script(file, scenario, mixed)
			if !strings.HasSuffix(got.Content, "All done.") || !slices.Equal(got.Names, []string{"multiply"}) || len(got.Errors) != 0 {
				t.Errorf("the client got %+v", got)
			}
			if len(got.Local) != 1 || got.Local[0].A != 6 || got.Local[0].B != 7 {
				t.Errorf("the client's tool got %+v", got.Local)
			}
			if n := len(ran(t, log)) - before; n != 2*(i+1) {
				t.Errorf("%d calls ran so far, want %d", n, 2*(i+1))
			}
			if judge != nil {
				judge(t, got)
			}
		})
	}
}

// toolsGateway is a gateway with two fast servers; the one labelled "tools" has
// tools of several kinds and the log that is returned.
func toolsGateway(t *testing.T) (*gateway, *upstream, string) {
	up := record(t)
	entry, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{
		{Name: "echo"},
		{Name: "again"},
		{Name: "broken", Do: fakemcp.Fail},
		{Name: "slow", Delay: time.Hour},
	}})
	g := start(t, up, servers{"tools": entry, "other": idle(t)})
	return g.offers(up, "tools__echo", "other__noop"), up, log
}

const (
	// hidden is a conversation that calls our tools alone, in two rounds.
	hidden = `SAY Let me look.
CALL tools__echo {"message":"one"}
CALL tools__again {"message":"two"}
THEN
CALL tools__echo {"message":"three"}
SAY All done.`
	// said is what a user reads of it: rounds are joined by a blank line.
	said = "Let me look.\n\nAll done."

	// mixed calls the client's own tool beside ours.
	mixed = `SAY Let me look.
CALL tools__echo {"message":"one"}
CALL multiply {"a":6,"b":7}
THEN
CALL tools__again {"message":"two"}
SAY All done.`
)

// ran are the tools that a fake server ran, in order.
func ran(t *testing.T, log string) []string {
	t.Helper()
	entries, err := fakemcp.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	var tools []string
	for _, e := range entries {
		if e.Method == fakemcp.Ran {
			tools = append(tools, e.Tool)
		}
	}
	return tools
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func TestOpenAIHiddenCalls(t *testing.T) {
	g, up, log := toolsGateway(t)

	t.Run("create", func(t *testing.T) {
		g.t = t
		got := g.script("openai.mjs", "create", hidden)
		if got.Content != said || got.Finish != "stop" || got.Choices != 1 || len(got.Calls) != 0 || got.ID == "" {
			t.Errorf("the client got %+v", got)
		}
		var prompt int
		if json.Unmarshal(got.Usage["prompt_tokens"], &prompt); prompt == 0 {
			t.Errorf("usage is %s", got.Usage)
		}
		// The model saw the results of both rounds, in the order of its calls.
		var data []string
		for _, e := range up.last().results(t) {
			if e.Status != "success" || e.Meta.Server != "tools" {
				t.Errorf("the model saw %+v", e)
			}
			data = append(data, string(e.Data))
		}
		if diff := cmp.Diff([]string{`{"message":"one"}`, `{"message":"two"}`, `{"message":"three"}`}, data); diff != "" {
			t.Errorf("results that the model saw (-want +got):\n%s", diff)
		}
		if got := sorted(ran(t, log)); !slices.Equal(got, []string{"again", "echo", "echo"}) {
			t.Errorf("tools that ran: %s", got)
		}
	})

	for _, scenario := range []string{"stream", "stream-usage", "readable"} {
		t.Run(scenario, func(t *testing.T) {
			g.t = t
			got := g.script("openai.mjs", scenario, hidden)
			if got.Content != said || got.Finish != "stop" || len(got.Calls) != 0 {
				t.Errorf("the client got %+v", got)
			}
			seen := got.Seen
			if len(seen.IDs) != 1 || len(seen.Created) != 1 || seen.Roles != 1 || !slices.Equal(seen.Finishes, []string{"stop"}) || seen.ToolDeltas != 0 {
				t.Errorf("the stream is not one completion: %+v", seen)
			}
			wantUsages := 0
			if scenario == "stream-usage" {
				wantUsages = 1
			}
			if seen.Usages != wantUsages || seen.Empty != wantUsages {
				t.Errorf("%d usages and %d chunks without choices, want %d each", seen.Usages, seen.Empty, wantUsages)
			}
		})
	}

	t.Run("stream with a schema", func(t *testing.T) {
		g.t = t
		got := g.script("openai.mjs", "stream-schema", "SAY Let me look.\nCALL tools__echo {\"message\":\"one\"}\nSAY fine")
		if !json.Valid([]byte(got.Content)) || len(got.Parsed) == 0 || string(got.Parsed) == "null" {
			t.Errorf("the client could not parse %q: %s", got.Content, got.Parsed)
		}
	})
}

func TestOpenAIMixedCalls(t *testing.T) {
	g, up, log := toolsGateway(t)
	g.mix(t, log, "openai.mjs", []string{"run-tools", "run-tools-stream"}, func(t *testing.T, got facts) {
		if !slices.Equal(got.Roles, []string{"user", "assistant", "tool", "assistant"}) {
			t.Errorf("the client's history is %s", got.Roles)
		}
		// The model's history is whole: each call has its result, the client's
		// and ours.
		last := up.last()
		var calls, results []string
		for _, m := range last.Messages {
			for _, c := range m.ToolCalls {
				calls = append(calls, c.ID)
			}
			if m.Role == "tool" {
				results = append(results, m.ToolCallID)
			}
		}
		if len(calls) != 3 || !slices.Equal(calls, results) {
			t.Errorf("the model saw calls %s and results %s", calls, results)
		}
	})

	t.Run("create", func(t *testing.T) {
		g.t = t
		got := g.script("openai.mjs", "create-tools", mixed)
		if got.Finish != "tool_calls" || len(got.Calls) != 1 || got.Calls[0].Name != "multiply" || got.Calls[0].Arguments != `{"a":6,"b":7}` {
			t.Errorf("the client got %+v", got)
		}
		if id := got.Calls[0].ID; id == "" || len(id) > 40 {
			t.Errorf("the call's id is %q", id)
		}
	})

	t.Run("stream", func(t *testing.T) {
		g.t = t
		got := g.script("openai.mjs", "stream-tools", mixed)
		if got.Finish != "tool_calls" || len(got.Calls) != 1 || got.Calls[0].Name != "multiply" {
			t.Errorf("the client got %+v", got)
		}
	})
}

func TestOpenAIChoosesServers(t *testing.T) {
	up := record(t)
	left, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "other"}}})
	right, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	g := start(t, up, servers{"left": left, "right": right}).offers(up, "left__echo", "left__other", "right__echo")

	g.script("openai.mjs", "choose", "SAY hi", "SERVER_LABEL=left")
	if got := up.last().names(); !slices.Equal(got, []string{"left__echo", "left__other"}) {
		t.Errorf("offered %s", got)
	}
	g.script("openai.mjs", "choose", "SAY hi", "SERVER_LABEL=left", "ALLOWED_TOOLS=other")
	if got := up.last().names(); !slices.Equal(got, []string{"left__other"}) {
		t.Errorf("offered %s", got)
	}
	got := g.script("openai.mjs", "choose", "SAY hi", "SERVER_LABEL=nowhere")
	if got.Error == nil || got.Error.Status < 400 || got.Error.Status > 499 || got.Error.Code == "" || !strings.Contains(got.Error.Message, "nowhere") {
		t.Errorf("an unknown server gets %+v", got.Error)
	}
}

func TestOpenAIRemembersFinishedTurns(t *testing.T) {
	g, up, _ := toolsGateway(t)
	got := g.script("openai.mjs", "turns", "CALL tools__echo {\"message\":\"remember me\"}\nSAY I looked.", "SECOND_PROMPT=SAY Of course.")
	if got.First.Content != "I looked." || got.Content != "Of course." {
		t.Errorf("the client got %q, then %q", got.First.Content, got.Content)
	}
	results := up.last().results(t)
	if len(results) != 1 || string(results[0].Data) != `{"message":"remember me"}` {
		t.Errorf("in the second turn the model saw %+v of the first", results)
	}
}

func TestOpenAIFailures(t *testing.T) {
	g, up, log := toolsGateway(t)

	t.Run("a tool that fails", func(t *testing.T) {
		g.t = t
		got := g.script("openai.mjs", "create", "CALL tools__broken {}\nSAY It failed.")
		if got.Content != "It failed." {
			t.Errorf("the client got %+v", got)
		}
		if r := up.last().results(t); len(r) != 1 || r[0].Status != "error" || !strings.Contains(string(r[0].Data), "failed as it was told to") {
			t.Errorf("the model saw %+v", r)
		}
	})

	t.Run("a tool that is not there", func(t *testing.T) {
		g.t = t
		// Rehearsal never makes up a name, so a model does that does not exist.
		got := g.script("openai.mjs", "create", "SAY hi", "DRAGOMAN_MODEL=rehearsal:500")
		if got.Error == nil || got.Error.Status < 500 || got.Error.Message == "" {
			t.Errorf("an upstream that fails gets the client %+v", got)
		}
	})

	t.Run("the client goes away", func(t *testing.T) {
		g.t = t
		got := g.script("openai.mjs", "abort", "CALL tools__slow {}\nSAY never", "ABORT_AFTER_MS=1500")
		if got.Error == nil || !got.Error.Aborted {
			t.Fatalf("the client got %+v", got)
		}
		g.until("cancelling the call", func() bool {
			entries, err := fakemcp.ReadLog(log)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(entries, func(e fakemcp.Entry) bool { return e.Method == "notifications/cancelled" })
		})
	})

	t.Run("models", func(t *testing.T) {
		g.t = t
		if got := g.script("openai.mjs", "models", ""); !slices.Contains(got.Models, "rehearsal") {
			t.Errorf("models are %s", got.Models)
		}
	})
}

func TestVercelAI(t *testing.T) {
	g, _, log := toolsGateway(t)
	for _, scenario := range []string{"generate", "stream"} {
		t.Run(scenario, func(t *testing.T) {
			g.t = t
			got := g.script("ai.mjs", scenario, hidden)
			if got.Content != said || got.Finish != "stop" || got.Steps != 1 || len(got.Names) != 0 || len(got.Errors) != 0 {
				t.Errorf("the client got %+v", got)
			}
			if got.Kinds["error"] != 0 || got.Kinds["tool-call"] != 0 {
				t.Errorf("the stream had %v", got.Kinds)
			}
			if string(got.Usage["inputTokens"]) == "0" || got.Usage["inputTokens"] == nil {
				t.Errorf("usage is %s", got.Usage)
			}
		})
	}
	g.mix(t, log, "ai.mjs", []string{"generate-tools", "stream-tools"}, func(t *testing.T, got facts) {
		if got.Finish != "stop" {
			t.Errorf("the last reason is %q", got.Finish)
		}
	})
}

func TestOpenAIAgents(t *testing.T) {
	g, _, log := toolsGateway(t)
	g.mix(t, log, "agents.mjs", []string{"run", "stream"}, nil)
}

// goFacts are what openaigo prints.
type goFacts struct {
	Content, Finish string
	Prompt          int `json:"prompt_tokens"`
	Accepted        bool
	Local, Kinds    []string
	Error           map[string]any
}

func (g *gateway) openAIGo(program, scenario, prompt string) (got goFacts) {
	g.t.Helper()
	out := output(g.t, []string{"DRAGOMAN_BASE_URL=" + g.Base}, program, scenario, prompt)
	if err := json.Unmarshal(out, &got); err != nil {
		g.t.Fatalf("%s printed no facts: %v: %s", scenario, err, out)
	}
	return got
}

func TestOpenAIGo(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling openai-go takes more than a minute")
	}
	program := must(t, buildOpenAIGo)
	g, _, log := toolsGateway(t)
	ask := func(scenario, prompt string) goFacts { return g.openAIGo(program, scenario, prompt) }
	if got := ask("create", hidden); got.Content != said || got.Finish != "stop" || got.Prompt == 0 {
		t.Errorf("create: the client got %+v", got)
	}
	// The client adds usages up and refuses chunks of another completion.
	if got := ask("stream", hidden); got.Content != said || got.Finish != "stop" || got.Prompt == 0 || !got.Accepted {
		t.Errorf("stream: the client got %+v", got)
	}
	before := len(ran(t, log))
	got := ask("tools", mixed)
	if !strings.HasSuffix(got.Content, "All done.") || !slices.Equal(got.Local, []string{"multiply 42"}) {
		t.Errorf("tools: the client got %+v", got)
	}
	if n := len(ran(t, log)) - before; n != 2 {
		t.Errorf("tools: %d calls ran, want 2", n)
	}
}
