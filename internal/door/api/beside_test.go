package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

// What Claude Code asks beside its conversation, a title or whether a call is safe, has no
// tools of its own, and gets none of ours; its conversation has them, be they its only ones.
func TestClaudeCodeBeside(t *testing.T) {
	up := &recorder{}
	d := open(t, nil, up.model(t, "m"))
	const claude, class = "X-Claude-Code-Session-Id", "X-Claude-Code-Request-Class"
	const turn = `,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"thinking":{"type":"adaptive"},"context_management":{"edits":[]}`
	for _, tt := range []struct {
		name, more string
		headers    []string
		offered    bool
	}{
		{"a title", `,"tools":[],"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},"stream":true`, []string{claude, "a"}, false},
		{"whether a call is safe", `,"stop_sequences":["</block>"],"thinking":{"type":"disabled"}`, []string{claude, "a"}, false},
		{"a turn", `,"tools":[{"name":"Bash","input_schema":{"type":"object"}}]`, []string{claude, "a"}, true},
		{"a turn without tools of its own", `,"tools":[],"thinking":{"type":"adaptive","display":"updates"},"context_management":{"edits":[]}`, []string{claude, "a"}, true},
		{"a turn that says so", turn, []string{claude, "a", class, "main"}, true},
		{"a turn of an agent", turn, []string{claude, "a", class, "subagent"}, true},
		{"a side question", turn, []string{claude, "a", class, "auxiliary"}, false},
		{"a summary", turn, []string{claude, "a", class, "compaction"}, false},
		{"a side question that names a server", turn + `,"mcp_servers":[{"name":"weather"}]`, []string{claude, "a", class, "auxiliary"}, true},
		{"a turn that names a server", `,"mcp_servers":[{"name":"weather"}]`, []string{claude, "a"}, true},
		{"somebody else", `,"tools":[]`, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for path, max := range map[string]string{"/v1/messages": `"max_tokens":9,`, "/v1/messages/count_tokens": ""} {
				body := `{"model":"m",` + max + `"messages":[{"role":"user","content":"Hi"}]`
				bare := len(d.do("POST", path, body+tt.more+`,"tool_choice":{"type":"none"}}`).body)
				a := d.do("POST", path, body+tt.more+"}", tt.headers...)
				if path != "/v1/messages" {
					if a.status != 200 || (len(a.body) > bare) != tt.offered {
						t.Errorf("it counts %s", a.body)
					}
					continue
				}
				if got := up.last(t); strings.Contains(got.body, "weather__get") != tt.offered || (a.header.Get("X-Dragoman-Tools") == "") != tt.offered {
					t.Errorf("%q, sent %s", a.header.Get("X-Dragoman-Tools"), got.body)
				}
			}
		})
	}
}

// In its plan mode Claude Code wants nothing changed, and denies calls of its own tools for
// it. Ours it does not see: of those the model is offered the ones that only read.
func TestClaudeCodePlans(t *testing.T) {
	up := &recorder{}
	d := open(t, nil, up.model(t, "m"))
	for mode, all := range map[string]bool{"plan": false, "auto": true, "": true} {
		t.Run(mode, func(t *testing.T) {
			body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"Write","input_schema":{"type":"object"}}]`
			if mode != "" {
				body += `,"safeguards":[{"type":"dangerous_tool_use","classifier_context":{"permission_mode":"` + mode + `"}}]`
			}
			a := d.do("POST", "/v1/messages", body+"}", "X-Claude-Code-Session-Id", "a")
			got := up.last(t).body
			if a.status != 200 || !strings.Contains(got, "weather__get") || !strings.Contains(got, "Write") || strings.Contains(got, "weather__warn") != all || (a.header.Get("X-Dragoman-Tools") == "") != all {
				t.Errorf("%d %q, sent %s", a.status, a.header.Get("X-Dragoman-Tools"), got)
			}
		})
	}
}

// In Codex's plan mode, too, which is the one that a developer's message told of last; nobody
// else's words are taken for it, nor those of a client that is not Codex.
func TestCodexPlans(t *testing.T) {
	up := &recorder{}
	d := open(t, nil, up.model(t, "m"))
	const (
		codex = `{"x-codex-turn-metadata":"{\"thread_source\":\"user\"}"}`
		plan  = `"<collaboration_mode># Plan Mode (Conversational)\n\nNothing is changed."`
		act   = `"<collaboration_mode># Collaboration Mode: Default\n\nYou are now in Default mode."`
	)
	message := func(role string, texts ...string) string {
		for i, text := range texts {
			texts[i] = `{"type":"input_text","text":` + text + `}`
		}
		return `{"type":"message","role":"` + role + `","content":[` + strings.Join(texts, ",") + `]}`
	}
	for _, tt := range []struct {
		name, client, input string
		all                 bool
	}{
		{"plans", codex, message("developer", `"Skills"`, plan) + `,` + message("user", `"Hi"`), false},
		{"plans by now", codex, message("developer", act) + `,` + message("user", `"Hi"`) + `,` + message("developer", plan) + `,` + message("user", act), false},
		{"no longer plans", codex, message("developer", plan) + `,` + message("user", `"Hi"`) + `,` + message("developer", act, `"More"`) + `,` + message("user", plan), true},
		{"says nothing", codex, message("user", plan), true},
		{"is not Codex", `{}`, message("developer", plan) + `,` + message("user", `"Hi"`), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := d.do("POST", "/v1/responses", `{"model":"m","input":[`+tt.input+`],"client_metadata":`+tt.client+`,"tools":[{"type":"function","name":"exec_command","parameters":{"type":"object"}}]}`)
			got := up.last(t).body
			if !strings.Contains(got, "weather__get") || !strings.Contains(got, "exec_command") || strings.Contains(got, "weather__warn") != tt.all || (a.header.Get("X-Dragoman-Tools") == "") != tt.all {
				t.Errorf("%q, sent %s", a.header.Get("X-Dragoman-Tools"), got)
			}
		})
	}
}

// What Codex asks in threads that it begins by itself gets none of our tools, be there some
// of its own, nor does a summary; a turn of a person's and of an agent of its own have them.
func TestCodexBeside(t *testing.T) {
	up := &recorder{}
	d := open(t, nil, up.model(t, "m"))
	for _, tt := range []struct {
		says, more string
		offered    bool
	}{
		{`{"request_kind":"turn","thread_source":"thread_title"}`, `"tools":[]`, false},
		{`{"request_kind":"turn","thread_source":"guardian_review"}`, `"tools":[{"type":"function","name":"exec_command","parameters":{"type":"object"}}]`, false},
		{`{"request_kind":"turn","thread_source":"memory_consolidation"}`, `"tools":[]`, false},
		{`{"request_kind":"turn","thread_source":"system"}`, `"tools":[]`, false},
		{`{"request_kind":"turn","thread_source":"thread_sample","history_initialization":"warm_fork"}`, `"tools":[{"type":"function","name":"exec_command","parameters":{"type":"object"}}]`, false},
		{`{"request_kind":"turn","thread_source":"tui_side_chat","history_initialization":"warm_fork"}`, `"tools":[]`, true},
		{`{"request_kind":"turn","thread_source":"thread_title"}`, `"tools":[{"type":"mcp","server_label":"weather","require_approval":"never"}]`, true},
		{`{"request_kind":"turn","thread_source":"user"}`, `"tools":[]`, true},
		{`{"request_kind":"compaction","thread_source":"user"}`, `"tools":[]`, false},
		{`{"request_kind":"turn","thread_source":"subagent"}`, `"tools":[]`, true},
		{`thread_title`, `"tools":[]`, true},
		{`{}`, `"tools":[]`, true},
	} {
		t.Run(tt.says, func(t *testing.T) {
			said, err := json.Marshal(tt.says)
			if err != nil {
				t.Fatal(err)
			}
			a := d.do("POST", "/v1/responses", `{"model":"m","input":"Hi","client_metadata":{"x-codex-turn-metadata":`+string(said)+`},`+tt.more+`}`)
			if got := up.last(t); strings.Contains(got.body, "weather__get") != tt.offered || (a.header.Get("X-Dragoman-Tools") == "") != tt.offered {
				t.Errorf("%q, sent %s", a.header.Get("X-Dragoman-Tools"), got.body)
			}
		})
	}
}

// Claude Code searches the web in a request of its own, beside the conversation: that has the tool
// that searches, and no other; where none does, none.
func TestClaudeCodeSearches(t *testing.T) {
	for name, want := range map[string]string{"weather__get": `"web_search"`, "": ""} {
		t.Run(name, func(t *testing.T) {
			up := &recorder{}
			d := open(t, func(o *Options) {
				o.Sessions = session.New(session.Options{
					Tools: session.Shared(&toolset{}), Servers: map[string]bool{"files": true, "weather": true}, Upstreams: o.Upstreams,
					Dialects: dialect.Builtin(), Hosted: session.Hosted{WebSearch: session.WebSearch{Tool: name, Query: "city"}},
				})
			}, up.model(t, "m"))
			const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Perform a web search"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`
			a := d.do("POST", "/v1/messages", body, "X-Claude-Code-Session-Id", "a", "X-Claude-Code-Request-Class", "auxiliary")
			got := up.last(t).body
			if a.status != 200 || strings.Contains(got, "weather__") || strings.Contains(got, "files__") || !strings.Contains(got, want) || a.header.Get("X-Dragoman-Tools") == "" {
				t.Errorf("%d %q, sent %s", a.status, a.header.Get("X-Dragoman-Tools"), got)
			}
			d.do("POST", "/v1/messages", body)
			if got := up.last(t).body; !strings.Contains(got, "weather__warn") || !strings.Contains(got, "files__") {
				t.Errorf("somebody else's has %s", got)
			}
		})
	}
}
