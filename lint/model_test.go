package lint

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A model is a server with which nothing is wrong, in either era, over lines or
// over HTTP. A fixture changes one thing about it. It is written for the tests of
// the linter, so that every answer can be changed; internal/stage/fakemcp has servers
// that misbehave as processes do.
type model struct {
	era       string
	tools     []json.RawMessage
	resources bool
	temp      string // its folder for temporary files

	// before sees each message first, and may answer it; lines that are no answer
	// are sent, too.
	before func(m *model, q query) (lines []string, done bool)
	// result may change the result of a call.
	result func(q query, result string) string
	// handler may stand in front of the HTTP handler.
	handler func(w http.ResponseWriter, r *http.Request, next http.Handler)
	// sent sees each line before it leaves.
	sent func(line string) string

	mu       sync.Mutex
	dead     bool
	calls    int
	sessions map[string]bool
}

// A query is a message of the client.
type query struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string          `json:"name"`
		URI             string          `json:"uri"`
		Cursor          *string         `json:"cursor"`
		ProtocolVersion string          `json:"protocolVersion"`
		Arguments       json.RawMessage `json:"arguments"`
		Meta            map[string]any  `json:"_meta"`
	} `json:"params"`
}

const modernVersion = "2026-07-28"

func (q query) modern() bool { return q.Params.Meta["io.modelcontextprotocol/protocolVersion"] != nil }

func (q query) reply(result string) string {
	if q.modern() {
		result = `{"resultType":"complete",` + strings.TrimPrefix(result, "{")
		result = strings.Replace(result, `",}`, `"}`, 1)
	}
	return `{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + result + `}`
}

func (q query) fail(code int, text string) string {
	id := string(q.ID)
	if id == "" {
		id = "null"
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q,"data":{"supported":[%q]}}}`, id, code, text, modernVersion)
}

// handle answers one line.
func (m *model) handle(line []byte) []string {
	var q query
	if json.Unmarshal(line, &q) != nil {
		if m.before != nil {
			if lines, done := m.before(m, q); done {
				return lines
			}
		}
		return []string{q.fail(-32700, "parse error")}
	}
	if m.before != nil {
		if lines, done := m.before(m, q); done {
			return lines
		}
	}
	if q.ID == nil {
		return nil
	}
	return []string{m.answer(q)}
}

func (m *model) answer(q query) string {
	version, _ := q.Params.Meta["io.modelcontextprotocol/protocolVersion"].(string)
	switch {
	case m.era == modern && version == "":
		return q.fail(-32602, "_meta is missing")
	case m.era == modern && version != modernVersion:
		return q.fail(-32022, "unsupported version")
	case m.era != modern && (version != "" || q.Method == "server/discover"):
		return q.fail(-32601, "method not found")
	}
	capabilities := `{"tools":{}}`
	if m.resources {
		capabilities = `{"tools":{},"resources":{}}`
	}
	info := `{"name":"notes-mcp-server","version":"1.0.0"}`
	cache := ""
	if m.era == modern {
		cache = `"ttlMs":0,"cacheScope":"private",`
	}
	switch q.Method {
	case "initialize":
		if m.era == modern {
			break
		}
		return q.reply(`{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"serverInfo":` + info + `}`)
	case "server/discover":
		return q.reply(`{` + cache + `"supportedVersions":["` + modernVersion + `"],"capabilities":` + capabilities + `,"_meta":{"io.modelcontextprotocol/serverInfo":` + info + `}}`)
	case "ping":
		return q.reply(`{}`)
	case "tools/list":
		if q.Params.Cursor != nil {
			return q.fail(-32602, "unknown cursor")
		}
		return q.reply(`{` + cache + `"tools":[` + strings.Join(texted(m.tools), ",") + `]}`)
	case "resources/list":
		return q.reply(`{` + cache + `"resources":[]}`)
	case "resources/templates/list":
		return q.reply(`{` + cache + `"resourceTemplates":[]}`)
	case "resources/read":
		return q.fail(-32602, "no such resource")
	case "tools/call":
		return m.call(q)
	}
	return q.fail(-32601, "method not found")
}

func texted(list []json.RawMessage) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

func (m *model) call(q query) string {
	var definition struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	found := false
	for _, t := range m.tools {
		if json.Unmarshal(t, &definition) == nil && definition.Name == q.Params.Name {
			found = true
			break
		}
	}
	if !found {
		return q.fail(-32602, "unknown tool")
	}
	arguments := q.Params.Arguments
	if arguments == nil {
		arguments = json.RawMessage(`{}`)
	}
	m.mu.Lock()
	m.calls++
	m.mu.Unlock()
	result := `{"content":[{"type":"text","text":"{\"text\":\"milk\"}"}],"structuredContent":{"text":"milk"}}`
	if strings.Contains(definition.Name, "tags") {
		result = tags(arguments)
	}
	if bad := judgeOf(definition.InputSchema).Validate(arguments); len(bad) > 0 {
		b, _ := json.Marshal("invalid arguments: " + bad[0].String())
		result = `{"isError":true,"content":[{"type":"text","text":` + string(b) + `}]}`
	}
	if m.result != nil {
		result = m.result(q, result)
	}
	return q.reply(result)
}

// tags is the result of notes_list_tags.
func tags(arguments json.RawMessage) string {
	limit := struct{ Limit int }{20}
	_ = json.Unmarshal(arguments, &limit) // what is wrong is refused by the schema
	names := []string{"home", "work", "garden"}
	text, _ := json.Marshal(map[string]any{"text": "tags", "items": names[:min(limit.Limit, 3)], "has_more": limit.Limit < 3})
	quoted, _ := json.Marshal(string(text))
	return `{"content":[{"type":"text","text":` + string(quoted) + `}],"structuredContent":` + string(text) + `}`
}

// pipe serves the model on a pair of pipes.
func (m *model) pipe(ctx context.Context) (io.ReadCloser, io.WriteCloser, error) {
	out, outEnd := io.Pipe()
	inEnd, in := io.Pipe()
	m.mu.Lock()
	m.dead = false
	m.mu.Unlock()
	go func() {
		defer outEnd.Close()
		defer inEnd.Close()
		lines := bufio.NewReaderSize(inEnd, 64<<10)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			for _, reply := range m.handle(line) {
				if reply == hangUp {
					return
				}
				if m.sent != nil {
					reply = m.sent(reply)
				}
				if _, err := io.WriteString(outEnd, reply+"\n"); err != nil {
					return
				}
			}
		}
	}()
	return out, in, nil
}

// hangUp is a line that ends the connection instead.
const hangUp = "hang up"

// ServeHTTP serves the model over Streamable HTTP.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	next := http.HandlerFunc(m.serve)
	if m.handler != nil {
		m.handler(w, r, next)
		return
	}
	next(w, r)
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != "" || !strings.HasPrefix(r.Host, "127.0.0.1") {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	m.mu.Lock()
	known := m.sessions[session]
	if r.Method == http.MethodDelete {
		delete(m.sessions, session)
	}
	m.mu.Unlock()
	if r.Method != http.MethodPost {
		if r.Method != http.MethodDelete {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q query
	broken := json.Unmarshal(body, &q) != nil
	if session != "" && !known {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	if m.era != modern && r.Header.Get("Mcp-Protocol-Version") == noVersion {
		http.Error(w, "no such version", http.StatusBadRequest)
		return
	}
	var lines []string
	if m.era == modern && !broken && r.Header.Get("Mcp-Method") != q.Method {
		lines = []string{q.fail(-32020, "header and body differ")}
	} else {
		lines = m.handle(body)
	}
	m.write(w, q, lines)
}

func (m *model) write(w http.ResponseWriter, q query, lines []string) {
	if len(lines) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if q.Method == "initialize" {
		m.mu.Lock()
		if m.sessions == nil {
			m.sessions = map[string]bool{}
		}
		id := fmt.Sprintf("s%d", len(m.sessions)+1)
		m.sessions[id] = true
		m.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	}
	switch {
	case strings.Contains(lines[0], `"error":{"code":-32601`) && m.era == modern:
		w.WriteHeader(http.StatusNotFound)
	case strings.Contains(lines[0], `"error":`):
		w.WriteHeader(http.StatusBadRequest)
	}
	io.WriteString(w, lines[0])
}

// newModel returns the model with its two tools.
func newModel(t *testing.T, era string) *model {
	t.Helper()
	var doc struct{ Tools []json.RawMessage }
	patches := []json.RawMessage{json.RawMessage(`{}`), json.RawMessage(second)}
	must(t, json.Unmarshal(list(t, patches), &doc))
	return &model{era: era, tools: doc.Tools}
}

// overPipe and overHTTP are targets that reach the model.
func (m *model) overPipe() Target { return Target{Label: "notes", Pipe: m.pipe} }

func (m *model) overHTTP(t *testing.T) Target {
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return Target{Label: "notes", URL: server.URL + "/mcp"}
}

// judges are the validators of the models' schemas, each compiled once for all
// fixtures.
var judges sync.Map // schema → *schema.Validator

func judgeOf(input json.RawMessage) *schema.Validator {
	known, ok := judges.Load(string(input))
	if !ok {
		known, _ = judges.LoadOrStore(string(input), schema.NewValidator(input))
	}
	return known.(*schema.Validator)
}
