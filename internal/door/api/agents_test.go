package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Codex, Claude Code, opencode, Kilo Code, Qwen Code, Pi and Copilot send requests again without a header
// that says so: they are known by what else they say. Requests of others that are the same are two.
func TestRequestsThatAgentsSendAgain(t *testing.T) {
	const turn = `{"model":"m","stream":true,"input":"Go","client_metadata":{"turn_id":"t1","try":"%d"}}`
	const message = `{"model":"m","max_tokens":100,"stream":%s,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Go"}]}`
	// Claude Code says the same otherwise to another model.
	const other = `{"model":"n","max_tokens":50,"stream":true,"thinking":{"type":"enabled","budget_tokens":40},"tools":[{"name":"Read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nHere.\n</system-reminder>"},{"type":"text","text":"Go"}]}]}`
	shown := func(part string) string {
		return `{"model":"m","max_tokens":100,"stream":true,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Go"},` + part + `]}]}`
	}
	const talk = `{"model":"m","stream":true,"messages":[{"role":"user","content":"Go"}]}`
	for _, tt := range []struct {
		name, path    string
		first, second string
		headers       []string
		runs          string
	}{
		{"Codex", "/v1/responses", fmt.Sprintf(turn, 1), fmt.Sprintf(turn, 2), nil, "files__delete {}"},
		{"another turn of Codex", "/v1/responses", fmt.Sprintf(turn, 1), strings.Replace(fmt.Sprintf(turn, 1), "t1", "t2", 1), nil, "files__delete {}\nfiles__delete {}"},
		{"somebody", "/v1/responses", `{"model":"m","input":"Go"}`, `{"model":"m","input":"Go"}`, nil, "files__delete {}\nfiles__delete {}"},
		{"Claude Code", "/v1/messages", fmt.Sprintf(message, "true"), fmt.Sprintf(message, "false"), []string{"X-Claude-Code-Session-Id", "s"}, "files__delete {}"},
		{"Claude Code, with less of thinking", "/v1/messages", fmt.Sprintf(message, `true,"thinking":{"type":"adaptive","display":"omitted"}`), fmt.Sprintf(message, `false,"thinking":{"type":"adaptive"}`), []string{"X-Claude-Code-Session-Id", "s"}, "files__delete {}"},
		{"another agent of Claude Code", "/v1/messages", fmt.Sprintf(message, "true"), fmt.Sprintf(message, "true"), []string{"X-Claude-Code-Session-Id", "s"}, "files__delete {}\nfiles__delete {}"},
		{"Claude Code, in a stream again", "/v1/messages", fmt.Sprintf(message, "true"), fmt.Sprintf(message, "true"), []string{"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Request-Class", "main", "X-Claude-Code-Prompt-Id", "p"}, "files__delete {}"},
		{"Claude Code, of its fallback", "/v1/messages", fmt.Sprintf(message, "true"), other, []string{"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Request-Class", "main", "X-Claude-Code-Prompt-Id", "p"}, "files__delete {}"},
		{"Claude Code, of its fallback that sees no pictures", "/v1/messages", shown(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`), shown(`{"type":"text","text":"[Image removed: the API could not process this image.]"}`), []string{"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Request-Class", "main", "X-Claude-Code-Prompt-Id", "p"}, "files__delete {}"},
		{"an agent of Claude Code, of its fallback", "/v1/messages", fmt.Sprintf(message, "true"), other, []string{"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Prompt-Id", "p", "X-Claude-Code-Request-Class", "subagent", "X-Claude-Code-Agent-Id", "a"}, "files__delete {}"},
		{"two agents of Claude Code for a prompt", "/v1/messages", fmt.Sprintf(message, "true"), fmt.Sprintf(message, "true"), []string{"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Prompt-Id", "p", "X-Claude-Code-Request-Class", "subagent", "X-Claude-Code-Agent-Id", "a%d"}, "files__delete {}\nfiles__delete {}"},
		{"two prompts of Claude Code", "/v1/messages", fmt.Sprintf(message, "true"), fmt.Sprintf(message, "true"), []string{"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Request-Class", "main", "X-Claude-Code-Prompt-Id", "p%d"}, "files__delete {}\nfiles__delete {}"},
		{"opencode", "/v1/chat/completions", talk, talk, []string{"User-Agent", "opencode/1.18.33", "X-Session-Id", "ses_1"}, "files__delete {}"},
		{"opencode, Responses", "/v1/responses", `{"model":"m","stream":true,"input":"Go"}`, `{"model":"m","stream":true,"input":"Go"}`, []string{"User-Agent", "opencode/1.18.33", "X-Session-Id", "ses_1"}, "files__delete {}"},
		{"opencode, Messages", "/v1/messages", fmt.Sprintf(message, "true"), fmt.Sprintf(message, "true"), []string{"User-Agent", "opencode/1.18.33", "X-Session-Id", "ses_1"}, "files__delete {}"},
		{"two sessions of opencode", "/v1/chat/completions", talk, talk, []string{"User-Agent", "opencode/1.18.33", "X-Session-Id", "ses_%d"}, "files__delete {}\nfiles__delete {}"},
		{"Kilo Code", "/v1/chat/completions", talk, talk, []string{"User-Agent", "Kilo-Code/7.7.9 ai-sdk/provider-utils/4.0.27", "X-Session-Id", "ses_1"}, "files__delete {}"},
		{"two sessions of Kilo Code", "/v1/chat/completions", talk, talk, []string{"User-Agent", "Kilo-Code/7.7.9", "X-Session-Id", "ses_%d"}, "files__delete {}\nfiles__delete {}"},
		{"Qwen Code", "/v1/chat/completions", talk, talk, []string{"X-Stainless-Retry-Count", "0", "User-Agent", "QwenCode/0.24.4 (linux; x64)", "X-Session-Id", "ses_1"}, "files__delete {}"},
		{"two sessions of Qwen Code", "/v1/chat/completions", talk, talk, []string{"User-Agent", "QwenCode/0.24.4 (linux; x64)", "X-Session-Id", "ses_%d"}, "files__delete {}\nfiles__delete {}"},
		{"sessions of a Qwen Code that fills no name in", "/v1/chat/completions", talk, talk, []string{"User-Agent", "QwenCode/0.14.0 (linux; x64)", "X-Session-Id", "${session_id}"}, "files__delete {}\nfiles__delete {}"},
		{"Pi", "/v1/chat/completions", talk, talk, []string{"session_id", "s1", "X-Client-Request-Id", "s1", "X-Session-Affinity", "s1"}, "files__delete {}"},
		{"Pi, Responses", "/v1/responses", `{"model":"m","stream":true,"input":"Go"}`, `{"model":"m","stream":true,"input":"Go"}`, []string{"X-Client-Request-Id", "s1", "session_id", "s1"}, "files__delete {}"},
		{"ids of requests", "/v1/chat/completions", talk, talk, []string{"X-Session-Affinity", "s1", "X-Client-Request-Id", "r%d"}, "files__delete {}\nfiles__delete {}"},
		{"Copilot", "/v1/chat/completions", talk, talk, []string{"X-Stainless-Retry-Count", "0", "X-Initiator", "agent"}, "files__delete {}"},
		{"Copilot, asked by a person", "/v1/chat/completions", talk, talk, []string{"X-Stainless-Retry-Count", "0", "X-Initiator", "user"}, "files__delete {}\nfiles__delete {}"},
		{"agents of Copilot in an editor", "/v1/chat/completions", talk, talk, []string{"User-Agent", "GitHubCopilotChat/0.36.2", "X-Initiator", "agent"}, "files__delete {}\nfiles__delete {}"},
		{"a session of somebody's", "/v1/chat/completions", talk, talk, []string{"X-Session-Id", "ses_1"}, "files__delete {}\nfiles__delete {}"},
	} {
		up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, body []byte) {
			if bytes.Contains(body, []byte(`"role":"tool"`)) {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(503)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"files__delete","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
		}}
		chat := up.model(t, "*")
		chat.Wires = nil
		d := open(t, nil, chat)
		for i, body := range []string{tt.first, tt.second} {
			headers := slices.Clone(tt.headers)
			if n := len(headers); n > 0 {
				headers[n-1] = strings.Replace(headers[n-1], "%d", fmt.Sprint(i), 1)
			}
			if a := d.do("POST", tt.path, body, headers...); a.status == 404 || a.status == 400 {
				t.Errorf("%s: %d %s", tt.name, a.status, a.body)
			}
		}
		if got := d.tools.calls(); strings.TrimSpace(got) != tt.runs {
			t.Errorf("%s: ran %q, want %q", tt.name, got, tt.runs)
		}
	}
}

// TestClaudeCodeComplainsOfSilence: where the model said nothing in the end, Claude Code says so behind
// the prompt, and the model reads that behind what was done.
func TestClaudeCodeComplainsOfSilence(t *testing.T) {
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/json")
		if bytes.Contains(body, []byte(`"role":"tool"`)) {
			_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"files__delete","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	}}
	chat := up.model(t, "*")
	chat.Wires = nil
	d := open(t, nil, chat)
	for _, complaint := range []string{"", `,{"type":"text","text":"<system-reminder>\nNothing was visible.\n</system-reminder>"}`} {
		a := d.do("POST", "/v1/messages", `{"model":"m","max_tokens":100,"metadata":{"user_id":"u"},"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Go"}`+complaint+`]}]}`,
			"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Request-Class", "main", "X-Claude-Code-Prompt-Id", "p")
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if got := strings.TrimSpace(d.tools.calls()); got != "files__delete {}" {
		t.Errorf("ran %q", got)
	}
	last := up.last(t).body
	if done, complaint := strings.Index(last, `"role":"tool"`), strings.Index(last, "Nothing was visible."); done < 0 || complaint < done {
		t.Errorf("the model reads %s", last)
	}
}

// TestAgentsWaitForTheAPI: where tools have changed something before the model's API is busy, agents
// that name their turns read so, and what they send again goes on from there.
func TestAgentsWaitForTheAPI(t *testing.T) {
	for path, tt := range map[string]struct {
		body    string
		headers []string
	}{
		"/v1/messages": {
			`{"model":"m","max_tokens":100,"metadata":{"user_id":"u"},"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Go"}]}`,
			[]string{"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Request-Class", "main", "X-Claude-Code-Prompt-Id", "p"},
		},
		"/v1/responses": {`{"model":"m","input":"Go","client_metadata":{"turn_id":"t1","x-codex-turn-metadata":"{}"}}`, nil},
	} {
		busy := true
		up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case !bytes.Contains(body, []byte(`"role":"tool"`)):
				_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"files__delete","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
			case busy:
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(http.StatusTooManyRequests)
			default:
				_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}`)
			}
		}}
		chat := up.model(t, "*")
		chat.Wires = nil
		d := open(t, nil, chat)
		for _, want := range []int{http.StatusTooManyRequests, http.StatusOK} {
			a := d.do("POST", path, tt.body, tt.headers...)
			if a.status != want || want == http.StatusTooManyRequests && (a.header.Get("Retry-After") != "600" || a.header.Get("X-Should-Retry") != "") {
				t.Errorf("%s: %d %v %s", path, a.status, a.header, a.body)
			}
			busy = false
		}
		if got := strings.TrimSpace(d.tools.calls()); got != "files__delete {}" {
			t.Errorf("%s: ran %q", path, got)
		}
	}
}
