package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/prove"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A written is what an engine wrote for a tool.
type written struct {
	name, arguments string
	parameters      json.RawMessage // the schema that it was held to
	cut             bool            // it came to no end
	refused         error           // the engine takes no such schema
}

// A writer has an engine write a call of a tool, as the request's tools define it.
type writer func(ctx context.Context, tool json.RawMessage, seed int) written

// TestEnginesWrite has engines of others write calls, each tool offered alone, and
// brings them back through the whole door of dragoman serve, streams included. What a
// tool's plan calls exact has to arrive, all of it. In "make test" few tools are asked.
func TestEnginesWrite(t *testing.T) {
	seeds, every := 1, 1
	if os.Getenv("DRAGOMAN_JUDGE") != "" {
		seeds, every = 2, everyNth(t, "public")
	}
	for _, engine := range []struct {
		name, dialect string
		open          func(t *testing.T) writer
	}{
		{"llama.cpp", "llamacpp", llamaWriter},
		{"XGrammar", "vllm", xgrammarWriter},
	} {
		t.Run(engine.name, func(t *testing.T) {
			j := newWrittenJudge(t, engine.dialect, engine.open(t))
			n := 0
			for _, tool := range j.tools {
				if n++; n%every == 0 {
					for seed := 1; seed <= seeds; seed++ {
						j.ask(tool, seed)
					}
				}
			}
			j.report(engine.name)
		})
	}
}

// A writtenJudge is a gateway with servers behind it and an engine in front.
type writtenJudge struct {
	t       *testing.T
	dialect string
	write   writer
	gateway *gateway
	tools   []judgedTool
	servers map[string]*fakemcp.Server

	mu     sync.Mutex
	last   written
	told   string // what the model was told of the call
	counts map[string]int
	wrong  []string
}

// A judgedTool is one of a server, and whether its plan says that nothing is lost.
type judgedTool struct {
	server, name string
	schema       json.RawMessage
	exact        bool
}

func newWrittenJudge(t *testing.T, name string, write writer) *writtenJudge {
	j := &writtenJudge{t: t, dialect: name, write: write, servers: map[string]*fakemcp.Server{}, counts: map[string]int{}}
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	all, behind := lists(t), servers{}
	if os.Getenv("DRAGOMAN_JUDGE") == "" {
		all = map[string]json.RawMessage{"judged": all["judged"]}
	}
	for label, list := range all {
		var offered []fakemcp.Tool
		for _, tool := range toolsOf(t, list) {
			plan, problem := d.Plan(dragoman.Tool{Name: tool.Name, InputSchema: tool.InputSchema})
			if problem != nil {
				j.counts["held back by us"]++
				continue
			}
			exact := !plan.Wide() && len(plan.Unchecked()) == 0 && !slices.ContainsFunc(plan.Report(), func(c dialect.Change) bool { return !c.Lossless })
			offered = append(offered, fakemcp.Tool{Name: tool.Name, Description: "Does something.", InputSchema: tool.InputSchema})
			j.tools = append(j.tools, judgedTool{label, tool.Name, tool.InputSchema, exact})
		}
		j.servers[label] = fakemcp.New(fakemcp.Config{Name: label, Tools: offered})
		at := httptest.NewServer(j.servers[label])
		t.Cleanup(at.Close)
		behind[label] = server{"type": "http", "url": at.URL}
	}
	slices.SortFunc(j.tools, func(a, b judgedTool) int { return strings.Compare(a.server+"/"+a.name, b.server+"/"+b.name) })
	up := httptest.NewServer(http.HandlerFunc(j.upstream))
	t.Cleanup(up.Close)
	j.gateway = start(t, nil, behind, with("models", []any{map[string]any{"match": "*", "base_url": up.URL + "/v1", "dialect": name}})).ready()
	return j
}

// toolsOf are the tools of a list: of a tools/list result, or of an array.
func toolsOf(t *testing.T, list json.RawMessage) (tools []struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
}) {
	t.Helper()
	var frame struct {
		Tools  json.RawMessage `json:"tools"`
		Result struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(list, &frame) == nil {
		switch {
		case frame.Tools != nil:
			list = frame.Tools
		case frame.Result.Tools != nil:
			list = frame.Result.Tools
		}
	}
	if err := json.Unmarshal(list, &tools); err != nil {
		t.Fatal(err)
	}
	return tools
}

// ask has the engine write one call of a tool, every other one as a stream.
func (j *writtenJudge) ask(tool judgedTool, seed int) {
	j.t.Helper()
	before := j.servers[tool.server].Log.Executions(tool.name)
	stream := (len(tool.name)+seed)%2 == 0
	body, err := json.Marshal(map[string]any{
		"model": "engine", "stream": stream, "messages": []any{map[string]any{"role": "user", "content": strconv.Itoa(seed)}},
		"tools": []any{map[string]any{"type": "mcp", "server_label": tool.server, "allowed_tools": []string{tool.name}}},
	})
	if err != nil {
		j.t.Fatal(err)
	}
	j.mu.Lock()
	j.last, j.told = written{}, ""
	j.mu.Unlock()
	res, err := http.Post(j.gateway.Base+"/chat/completions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		j.t.Fatal(err)
	}
	said, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		j.t.Fatal(err)
	}
	ran := j.servers[tool.server].Log.Executions(tool.name) - before
	j.mu.Lock()
	defer j.mu.Unlock()
	where := tool.server + "/" + tool.name
	switch {
	case j.last.refused != nil:
		j.counts["the engine refuses the schema"]++
		j.note(tool, "%s: the engine refuses it: %v", where, j.last.refused)
	case j.last.cut:
		j.counts["came to no end"]++
	case j.last.arguments == "":
		j.counts["not offered"]++
		j.note(tool, "%s: no call was asked for: %d %.300s", where, res.StatusCode, said)
	case ran == 1:
		j.counts["accepted"]++
	case beyondNumbers.MatchString(j.last.arguments):
		j.counts["a number that nobody can compute with"]++ // the grammars bound no exponent
	case j.dialect == "vllm" && j.last.breaksEnum():
		j.counts["none of the enum, a fault of XGrammar 0.1.27"]++
	default:
		kind := "refused, plan not exact"
		if tool.exact {
			kind = "refused, plan exact"
		}
		j.counts[kind]++
		j.note(tool, "%s: it wrote %.300s and was told %.400s", where, j.last.arguments, j.told)
	}
}

// note keeps what is wrong with an exact plan.
func (j *writtenJudge) note(tool judgedTool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if tool.exact {
		j.wrong = append(j.wrong, text)
	} else if os.Getenv("DRAGOMAN_JUDGE_SHOW") != "" {
		j.t.Log(text)
	}
}

func (j *writtenJudge) report(engine string) {
	exact := 0
	for _, tool := range j.tools {
		if tool.exact {
			exact++
		}
	}
	j.t.Logf("%s (%s): %d tools, %d of them with an exact plan: %v", engine, j.dialect, len(j.tools), exact, j.counts)
	if j.counts["accepted"] == 0 {
		j.t.Error("no call came through")
	}
	for i, w := range j.wrong {
		if i < 40 {
			j.t.Errorf("an exact plan: %s", w)
		}
	}
}

// upstream is a chat completions API in front of the engine: a call first, and when its
// result is there, a word.
func (j *writtenJudge) upstream(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Stream   bool
		Messages []struct{ Role, Content string }
		Tools    []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	last := request.Messages[len(request.Messages)-1]
	if last.Role == "tool" || len(request.Tools) == 0 {
		j.mu.Lock()
		j.told = last.Content
		j.mu.Unlock()
		answerWith(w, request.Stream, map[string]any{"role": "assistant", "content": "Done."}, "stop")
		return
	}
	seed, _ := strconv.Atoi(last.Content)
	wrote := j.write(r.Context(), request.Tools[0], seed)
	var sent struct {
		Function struct{ Parameters json.RawMessage }
	}
	_ = json.Unmarshal(request.Tools[0], &sent) // the writer has said where that is no function
	wrote.parameters = sent.Function.Parameters
	j.mu.Lock()
	j.last = wrote
	j.mu.Unlock()
	switch {
	case wrote.refused != nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": wrote.refused.Error(), "type": "invalid_request_error"}})
	case wrote.cut:
		answerWith(w, request.Stream, map[string]any{"role": "assistant", "content": "…"}, "length")
	default:
		answerWith(w, request.Stream, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"index": 0, "id": "call_" + last.Content, "type": "function", "function": map[string]any{"name": wrote.name, "arguments": wrote.arguments},
		}}}, "tool_calls")
	}
}

// answerWith answers with a message, as a stream in pieces of seven bytes.
func answerWith(w http.ResponseWriter, stream bool, message map[string]any, finish string) {
	frame := func(object string, choice map[string]any) []byte {
		b, err := json.Marshal(map[string]any{"id": "chatcmpl-1", "object": object, "created": 1, "model": "engine", "choices": []any{choice}})
		if err != nil {
			panic(err) // all of it is ours
		}
		return b
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(frame("chat.completion", map[string]any{"index": 0, "message": message, "finish_reason": finish}))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	delta := func(d map[string]any, finish any) {
		fmt.Fprintf(w, "data: %s\n\n", frame("chat.completion.chunk", map[string]any{"index": 0, "delta": d, "finish_reason": finish}))
	}
	if calls, ok := message["tool_calls"].([]any); ok {
		call := calls[0].(map[string]any)
		function := call["function"].(map[string]any)
		text := function["arguments"].(string)
		call["function"] = map[string]any{"name": function["name"], "arguments": ""}
		delta(map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}, nil)
		for len(text) > 0 {
			n := min(7, len(text))
			for n < len(text) && text[n]&0xC0 == 0x80 {
				n++ // engines send whole characters
			}
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": text[:n]}}}}, nil)
			text = text[n:]
		}
	} else {
		delta(message, nil)
	}
	delta(map[string]any{}, finish)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// breaksEnum reports that the engine has written, of what it was sent, nothing wrong but
// values that are in no enum. XGrammar 0.1.27 merges the ends of values: with createTable,
// deleteTable and deleteColumn it lets createColumn be written.
func (w written) breaksEnum() bool {
	wrong := schema.NewValidator(w.parameters).Validate(json.RawMessage(w.arguments))
	return len(wrong) > 0 && !slices.ContainsFunc(wrong, func(v schema.Violation) bool { return v.Keyword != "enum" })
}

// beyondNumbers are numbers with an exponent of more than three digits.
var beyondNumbers = regexp.MustCompile(`[0-9][eE][+-]?[0-9]{4}`)

// longestWritten is how many tokens an engine may write before it is given up.
const longestWritten = 1500

// llamaWriter is llama.cpp as the npm package @fugood/llama.node has it.
func llamaWriter(t *testing.T) writer {
	t.Helper()
	if _, err := os.Stat("engines/node_modules/@fugood/node-llama-linux-x64"); err != nil {
		missing(t, "%v; run npm ci in e2e/engines", err)
	}
	program, err := findNode()
	if err != nil {
		if program, err = exec.LookPath("node"); err != nil {
			missing(t, "%v", err)
		}
	}
	cmd := exec.Command(program, "engines/written.mjs", modelFile(t))
	cmd.Env = cleanEnv(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(4*time.Hour, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the engine ended with %v", err)
		}
		stuck.Stop()
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	return func(ctx context.Context, tool json.RawMessage, seed int) written {
		request, err := json.Marshal(map[string]any{"tools": []json.RawMessage{tool}, "seed": seed, "limit": longestWritten})
		if err != nil {
			return written{refused: err}
		}
		if _, err := in.Write(append(request, '\n')); err != nil {
			return written{refused: err}
		}
		for lines.Scan() {
			var reply struct {
				Calls []struct{ Name, Arguments string }
				Text  string
				Cut   bool
				Error string
			}
			if json.Unmarshal(lines.Bytes(), &reply) != nil {
				continue // the engine's own words
			}
			switch {
			case reply.Error != "":
				return written{refused: fmt.Errorf("llama.cpp: %s", reply.Error)}
			case reply.Cut:
				return written{cut: true}
			case len(reply.Calls) != 1:
				return written{refused: fmt.Errorf("llama.cpp's parser found %d calls in %.300s", len(reply.Calls), reply.Text)}
			}
			return written{name: reply.Calls[0].Name, arguments: reply.Calls[0].Arguments}
		}
		return written{refused: fmt.Errorf("llama.cpp has ended: %v", lines.Err())}
	}
}

// xgrammarWriter is XGrammar's mask over the next token, and a random choice.
func xgrammarWriter(t *testing.T) writer {
	t.Helper()
	engines := &prove.Engines{Dir: "engines"}
	engine, err := engines.For(t.Context(), "vllm")
	if err != nil {
		missing(t, "%v; run make engines", err)
	}
	t.Cleanup(engines.Close)
	return func(ctx context.Context, tool json.RawMessage, seed int) written {
		var function struct {
			Function struct {
				Name       string
				Parameters json.RawMessage
			}
		}
		if err := json.Unmarshal(tool, &function); err != nil {
			return written{refused: err}
		}
		language, err := engine.Read(ctx, function.Function.Parameters)
		if err != nil {
			return written{refused: err}
		}
		texts, err := language.Sample(ctx, 1, uint64(seed))
		if err != nil {
			return written{refused: err}
		}
		if len(texts) == 0 {
			return written{cut: true}
		}
		return written{name: function.Function.Name, arguments: texts[0]}
	}
}
