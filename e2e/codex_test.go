package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// A codex is Codex CLI, configured by "dragoman codex".
type codex struct{ *agent }

// startCodex returns Codex that asks g, with two MCP servers of its own, "left" and
// "right"; without a catalogue it knows models by their names alone.
func startCodex(t *testing.T, g *gateway, catalogue bool, env ...string) codex {
	t.Helper()
	c := codex{installed(t, "@openai/codex", "vendor/*/bin/codex")}
	c.env = append(append(c.env, "CODEX_HOME="+c.home), env...)
	c.configure("codex", "--write", "--url", g.Base)
	path := filepath.Join(c.home, "config.toml")
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(written)
	if !catalogue {
		var kept []string
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "model_catalog_url") {
				kept = append(kept, line)
			}
		}
		text = strings.Join(kept, "")
	}
	text += "\n[analytics]\nenabled = false\n"
	for _, label := range []string{"left", "right"} {
		entry, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Description: "Says again what it is told."}}})
		text += fmt.Sprintf("\n[mcp_servers.%s]\ncommand = %q\nargs = [%s]\ndefault_tools_approval_mode = \"approve\"\n\n[mcp_servers.%s.env]\n", label, entry["command"], quotedTOML(entry["args"]), label)
		env := entry["env"].(map[string]string)
		for _, name := range slices.Sorted(maps.Keys(env)) {
			text += fmt.Sprintf("%s = %s\n", name, tomlText(env[name]))
		}
	}
	writeFile(t, path, text)
	return c
}

func quotedTOML(args any) string {
	list, _ := args.([]string)
	quoted := make([]string, len(list))
	for i, arg := range list {
		quoted[i] = tomlText(arg)
	}
	return strings.Join(quoted, ", ")
}

// tomlText is a text of TOML, whose escapes are those of JSON.
func tomlText(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it is a string
	}
	return string(text)
}

// codexFacts are what Codex says of a turn.
type codexFacts struct {
	Thread string
	Texts  []string
	// Kinds are the kinds of items, and Items those that are no text.
	Kinds []string
	Items []codexItem
	Fails []string
}

type codexItem struct {
	Type, Server, Tool, Status, Text, Message string
	Output                                    string `json:"aggregated_output"`

	Result json.RawMessage
}

// ask has Codex do one turn, with whatever it wants to do allowed.
func (c codex) ask(prompt string, args ...string) (f codexFacts) {
	c.t.Helper()
	args = append([]string{"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}, args...)
	for _, line := range c.run(agentTime(c.t), append(args, "--", prompt)...) {
		var e struct {
			Type     string
			ThreadID string `json:"thread_id"`
			Item     codexItem
			Message  string
			Error    struct{ Message string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			c.t.Fatalf("Codex prints %s: %v", line, err)
		}
		switch {
		case e.Type == "thread.started":
			f.Thread = e.ThreadID
		case e.Type == "error" || e.Type == "turn.failed":
			f.Fails = append(f.Fails, e.Message+e.Error.Message)
		case e.Type != "item.completed":
		case e.Item.Type == "agent_message":
			f.Texts = append(f.Texts, e.Item.Text)
			f.Kinds = append(f.Kinds, e.Item.Type)
		default:
			f.Kinds = append(f.Kinds, e.Item.Type)
			f.Items = append(f.Items, e.Item)
		}
	}
	return f
}

// resume has Codex go on with a session.
func (c codex) resume(thread, prompt string, args ...string) codexFacts {
	c.t.Helper()
	return c.ask(prompt, append([]string{"resume", thread}, args...)...)
}

// TestCodexTools: Codex with the catalogue of the gateway calls a shell, tools of its own
// MCP servers and ours in the same turn, and the model has the results of all.
func TestCodexTools(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	c := startCodex(t, g, true)
	f := c.ask("SAY Let me look.\nCALL exec_command {\"cmd\":\"echo made > made.txt; cat made.txt\"}\nCALL tools__echo {\"n\":1}\nCALL mcp__left__echo {\"n\":2}\n" +
		"THEN\nCALL mcp__right__echo {\"n\":3}\nCALL tools__again {\"n\":4}\nSAY Done.")
	kinds := []string{"agent_message", "command_execution", "mcp_tool_call", "mcp_tool_call", "agent_message"}
	if !slices.Equal(f.Kinds, kinds) || !slices.Equal(f.Texts, []string{"Let me look.", "Done."}) || len(f.Fails) != 0 {
		t.Fatalf("Codex says %+v", f)
	}
	if f.Items[0].Output != "made\n" || f.Items[1].Server != "left" || f.Items[2].Server != "right" || f.Items[2].Status != "completed" {
		t.Errorf("Codex says %+v", f)
	}
	if got := ran(t, log); !slices.Equal(got, []string{"echo", "again"}) {
		t.Errorf("of ours ran %s", got)
	}
	last := up.last()
	last.whole(t, 5)
	if first := string(last.Messages[0].Content); !strings.Contains(first, "in a person's terminal") || len(first) > 1000 {
		t.Errorf("the instructions are not those of the catalogue: %s", first)
	}
	for _, name := range []string{"exec_command", "multi_agent_v1__spawn_agent", "mcp__left__echo", "mcp__right__echo", "tools__echo", "other__noop"} {
		if !slices.Contains(last.names(), name) {
			t.Errorf("%s is not offered: %s", name, last.names())
		}
	}
}

// whole holds the history that a model sees to having that many calls, each with its
// result.
func (r request) whole(t *testing.T, n int) {
	t.Helper()
	var calls, results []string
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			calls = append(calls, c.ID)
		}
		if m.Role == "tool" {
			results = append(results, m.ToolCallID)
		}
	}
	if len(calls) != n || !slices.Equal(calls, results) {
		t.Errorf("the model sees %d calls, want %d, with these results:\n%s\n%s", len(calls), n, calls, results)
	}
}

// told returns all that the messages of a role say.
func (r request) told(role string) string {
	var b strings.Builder
	for _, m := range r.Messages {
		if m.Role == role {
			b.Write(m.Content)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestCodexModelNames: without the catalogue the tools that Codex has depend on the name
// of the model: patches as free text, a search for tools, programs that call tools.
func TestCodexModelNames(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	c := startCodex(t, g, false)
	const patch = `{"input":"*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"}`
	for _, tt := range []struct {
		model, prompt string
		kinds         []string
		calls         int
		file          string
	}{
		{
			"an-unknown-one", "CALL exec_command {\"cmd\":\"echo made > unknown.txt\"}\nCALL tools__echo {\"n\":1}\nTHEN\nCALL mcp__left__echo {\"n\":2}\nSAY Done.",
			[]string{"error", "command_execution", "mcp_tool_call"}, 3, "unknown.txt",
		},
		{
			"gpt-5.5", "CALL apply_patch " + patch + "\nCALL tools__echo {\"n\":1}\nTHEN\nCALL tool_search {\"query\":\"echo\"}\nTHEN\nCALL mcp__left__echo {\"n\":2}\nSAY Done.",
			[]string{"file_change", "mcp_tool_call"}, 4, "made.txt",
		},
		{
			"gpt-6-astra", "CALL functions__exec {\"input\":\"notify('one'); const r = await tools.mcp__left__echo({n:3}); text(r); await tools.exec_command({cmd:'echo made > script.txt'}); text('two')\"}\n" +
				"THEN\nCALL tools__echo {\"n\":1}\nSAY Done.",
			[]string{"mcp_tool_call", "command_execution"}, 2, "script.txt",
		},
	} {
		t.Run(tt.model, func(t *testing.T) {
			before := len(ran(t, log))
			f := c.ask(tt.prompt, "-m", tt.model)
			if want := append(tt.kinds, "agent_message"); !slices.Equal(f.Kinds, want) || !slices.Equal(f.Texts, []string{"Done."}) || len(f.Fails) != 0 {
				t.Errorf("Codex says %+v", f)
			}
			if made, _ := os.ReadFile(filepath.Join(c.folder, tt.file)); string(made) != "made\n" {
				t.Errorf("%s is %q", tt.file, made)
			}
			up.last().whole(t, tt.calls)
			if n := len(ran(t, log)) - before; n != 1 {
				t.Errorf("%d calls of ours ran", n)
			}
			if told := up.last().told("tool"); tt.model == "gpt-6-astra" && (!strings.Contains(told, "one") || !strings.Contains(told, "two")) {
				t.Errorf("the model is told %s", told)
			}
		})
	}
}

// TestCodexPictures: pictures of the person, of a tool of Codex's and of one of ours reach
// the model.
func TestCodexPictures(t *testing.T) {
	t.Parallel()
	g, up, _ := agentGateway(t)
	c := startCodex(t, g, true)
	path := pixelFile(t, c.folder)
	f := c.ask("CALL view_image {\"path\":"+tomlText(path)+"}\nCALL tools__picture\nSAY Done.", "-i", path)
	if !slices.Equal(f.Texts, []string{"Done."}) || len(f.Fails) != 0 {
		t.Errorf("Codex says %+v", f)
	}
	up.last().whole(t, 2)
	if n := strings.Count(up.last().told("user"), "data:image/png;base64,"); n != 3 {
		t.Errorf("the model sees %d pictures:\n%s", n, up.last().Raw)
	}
}

// TestCodexSession: thirty turns of one session, each by a new process; what our tools
// said in all of them is there at the end. What another provider sealed in it is left out.
func TestCodexSession(t *testing.T) {
	t.Parallel()
	const turns = 30
	g, up, log := agentGateway(t)
	c := startCodex(t, g, true)
	f := c.ask("CALL tools__echo {\"turn\":1}\nSAY Turn 1.")
	thread := f.Thread
	for n := 2; n <= turns; n++ {
		prompt := fmt.Sprintf("CALL tools__echo {\"turn\":%d}\n", n)
		if n%3 == 0 {
			prompt += fmt.Sprintf("CALL exec_command {\"cmd\":\"echo turn %d >> turns.txt\"}\n", n)
		}
		said := fmt.Sprintf("Turn %d.", n)
		if f = c.resume(thread, prompt+"SAY "+said); !slices.Equal(f.Texts, []string{said}) || len(f.Fails) != 0 {
			t.Fatalf("turn %d: %+v", n, f)
		}
	}
	if n := len(ran(t, log)); n != turns {
		t.Errorf("%d calls of ours ran", n)
	}
	up.last().whole(t, turns+turns/3)
	if data, _ := os.ReadFile(filepath.Join(c.folder, "turns.txt")); strings.Count(string(data), "turn") != turns/3 {
		t.Errorf("Codex's commands left %q", data)
	}

	c.addToSession(thread, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAforeign"}`, `{"type":"compaction","encrypted_content":"gAAAAforeign"}`)
	if f = c.resume(thread, "CALL tools__again\nSAY Still here."); !slices.Equal(f.Texts, []string{"Still here."}) || len(f.Fails) != 0 {
		t.Errorf("after a compaction of another provider: %+v", f)
	}
	if body := string(up.last().Raw); strings.Contains(body, "gAAAAforeign") || strings.Count(body, "by another provider") != 1 {
		t.Errorf("the model is told %s", body)
	}
}

// addToSession puts items behind those that Codex keeps of a session.
func (c codex) addToSession(thread string, items ...string) {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.home, "sessions", "*", "*", "*", "*"+thread+"*"))
	if err != nil || len(found) != 1 {
		c.t.Fatalf("the session is kept in %s: %v", found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		c.t.Fatal(err)
	}
	at := strings.Count(string(data), "\n")
	for i, item := range items {
		data = fmt.Appendf(data, "{\"timestamp\":\"2026-11-22T12:00:00.000Z\",\"ordinal\":%d,\"type\":\"response_item\",\"payload\":%s}\n", at+i, item)
	}
	writeFile(c.t, found[0], string(data))
}

// TestCodexCompacts: where the history gets long Codex asks for a summary, and goes on
// with it.
func TestCodexCompacts(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	c := startCodex(t, g, true)
	// Its summary tells the stand-in how to go on.
	shorten := []string{"-c", "model_auto_compact_token_limit=9000", "-c", `compact_prompt="SAY The numbers are counted.\nSAY SAY One."`}
	f := c.ask("CALL exec_command {\"cmd\":\"seq 1 3000\"}\nCALL tools__echo {\"kept\":true}\nSAY Lost.", shorten...)
	if !slices.Equal(f.Texts, []string{"One."}) || len(f.Fails) != 0 {
		t.Errorf("Codex says %+v", f)
	}
	summary := up.last()
	for _, r := range up.all() {
		if strings.Contains(r.told("user"), "SAY SAY One.") {
			summary = r
		}
	}
	if len(summary.Tools) > 0 || !strings.Contains(summary.told("tool"), "kept") {
		t.Errorf("for a summary the model is offered %s and sees %s", summary.names(), summary.Raw)
	}
	f = c.resume(f.Thread, "CALL tools__again\nSAY Two.", shorten...)
	if !slices.Equal(f.Texts, []string{"Two."}) || len(f.Fails) != 0 {
		t.Errorf("after the summary Codex says %+v", f)
	}
	last := up.last()
	if !strings.Contains(last.told("user"), "The numbers are counted.") || strings.Contains(last.told("tool"), "2999") {
		t.Errorf("after the summary the model sees %s", last.Raw)
	}
	if got := ran(t, log); !slices.Equal(got, []string{"echo", "again"}) {
		t.Errorf("of ours ran %s", got)
	}
}

// TestCodexWindow: Codex takes a conversation for as long as the model got it last, not for
// as long as what all rounds got that it does not see.
func TestCodexWindow(t *testing.T) {
	t.Parallel()
	const rounds = 9
	g, up, log := agentGateway(t)
	c := startCodex(t, g, true)
	shorten := []string{"-c", "model_auto_compact_token_limit=60000"}
	prompt := strings.Repeat("word ", 8_000)
	for n := range rounds {
		prompt += fmt.Sprintf("\nTHEN\nCALL tools__echo {\"n\":%d}", n)
	}
	f := c.ask(prompt+"\nSAY One.", shorten...)
	if !slices.Equal(f.Texts, []string{"One."}) || len(ran(t, log)) != rounds {
		t.Fatalf("the first turn: %+v, and %d calls of ours", f, len(ran(t, log)))
	}
	before := len(up.all())
	if f = c.resume(f.Thread, "SAY Two.", shorten...); !slices.Equal(f.Texts, []string{"Two."}) || len(up.all()) != before+1 {
		t.Errorf("the second turn: %+v, for which the model was asked %d times", f, len(up.all())-before)
	}
	up.last().whole(t, rounds)
}

// TestCodexAgents: agents of Codex's own are told what to do, and tell what came of it, in
// messages to each other, the first of which is an argument that OpenAI would have encrypted.
func TestCodexAgents(t *testing.T) {
	t.Parallel()
	g, up, _ := agentGateway(t)
	c := startCodex(t, g, true)
	f := c.ask("CALL collaboration__spawn_agent {\"task_name\":\"six\",\"message\":\"SAY Forty-two.\"}\nTHEN\n"+
		"CALL collaboration__wait_agent {\"timeout_ms\":60000}\nTHEN\nSAY Done.", "-c", "features.multi_agent_v2=true")
	if !slices.Contains(f.Texts, "Done.") || len(f.Fails) != 0 {
		t.Fatalf("Codex says %+v", f)
	}
	if told := up.last().told("user"); !strings.Contains(told, "Message of the agent /root/six to the agent /root:") || !strings.Contains(told, "Forty-two.") {
		t.Errorf("the first agent's model is told %s", told)
	}
}

// TestCodexWaits: a call that a rule wants approved waits in the inbox, and Codex, which
// knows no approvals, waits with it.
func TestCodexWaits(t *testing.T) {
	t.Parallel()
	keys := makeKeys(t, []string{"codex"}, []string{"operator", "--right", "approve:*"})
	g, up, log := agentGateway(t, keys.option, careful)
	c := startCodex(t, g, true, "DRAGOMAN_API_KEY="+keys.of["codex"])
	done := make(chan codexFacts, 1)
	go func() {
		done <- c.ask("CALL tools__again {\"n\":1}\nCALL exec_command {\"cmd\":\"echo hi\"}\nSAY Done.")
	}()
	g.approves(keys.of["operator"])
	if f := <-done; !slices.Equal(f.Texts, []string{"Done."}) || len(f.Fails) != 0 {
		t.Errorf("Codex says %+v", f)
	}
	if got := ran(t, log); !slices.Equal(got, []string{"again"}) {
		t.Errorf("of ours ran %s", got)
	}
	up.last().whole(t, 2)
}

// TestCodexSearches: the search of the web that Codex declares in every request is a call of
// the tool that the configuration maps. Codex shows it as a search, the model has what was
// found, and a session that is resumed goes on with it.
func TestCodexSearches(t *testing.T) {
	t.Parallel()
	up := record(t)
	up.obeys = true
	found := `{"content":[],"structuredContent":{"hits":[{"url":"https://cats.example/oslo","title":"Cats in Oslo","snippet":"There are many."}]}}`
	search, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "web", Do: fakemcp.Fixed, Result: json.RawMessage(found)}}})
	g := start(t, up, servers{"search": search}, with("hosted", map[string]any{"web_search": map[string]any{
		"tool": "search__web", "query": "q", "results": "/hits", "url": "url", "title": "title", "text": "snippet",
	}})).ready()
	c := startCodex(t, g, true)
	f := c.ask("CALL web_search {\"query\":\"cats\"}\nCALL exec_command {\"cmd\":\"echo made\"}\nTHEN\nSAY See https://cats.example/oslo.")
	if !slices.Equal(f.Texts, []string{"See https://cats.example/oslo."}) || len(f.Fails) != 0 || !slices.Contains(f.Kinds, "web_search") {
		t.Fatalf("Codex says %+v", f)
	}
	if got := ran(t, log); !slices.Equal(got, []string{"web"}) {
		t.Errorf("of ours ran %s", got)
	}
	last := up.last()
	last.whole(t, 2)
	if told := last.told("tool"); !strings.Contains(told, "There are many.") {
		t.Errorf("the model has %s", told)
	}
	if !slices.Contains(last.names(), "web_search") || slices.Contains(last.names(), "search__web") {
		t.Errorf("offered are %s", last.names())
	}
	if f := c.resume(f.Thread, "SAY More."); !slices.Equal(f.Texts, []string{"More."}) || len(f.Fails) != 0 {
		t.Errorf("resumed, Codex says %+v", f)
	}
}
