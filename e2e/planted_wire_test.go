package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/headervalue"
	"github.com/dragoman-mcp/dragoman/lint"
)

// A bareServer carries a planted server without any SDK, and with a fault of the wire.
type bareServer struct {
	*planted
	fault string
	token string // what is asked for, where the fault is one of authorization

	mu       sync.Mutex
	sessions map[string]string // what the client of each calls itself
	opened   int
}

const (
	plantedVersion = "2026-07-28"
	metaVersion    = "io.modelcontextprotocol/protocolVersion"
)

type bareQuery struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string          `json:"name"`
		URI             string          `json:"uri"`
		Cursor          *string         `json:"cursor"`
		ProtocolVersion string          `json:"protocolVersion"`
		Arguments       json.RawMessage `json:"arguments"`
		Meta            map[string]any  `json:"_meta"`
		ClientInfo      struct {
			Name string `json:"name"`
		} `json:"clientInfo"`
	} `json:"params"`
}

func (q *bareQuery) version() string { s, _ := q.Params.Meta[metaVersion].(string); return s } // what is none is empty

type fields = map[string]any

// answer answers one message; nil is no answer. client is who greeted.
func (s *bareServer) answer(line []byte, client *string, notify func(fields)) fields {
	var q bareQuery
	if json.Unmarshal(line, &q) != nil {
		if s.fault == "no-parse-error" || s.fault == "parse-dies" {
			return nil
		}
		return fields{"jsonrpc": "2.0", "id": nil, "error": fields{"code": -32700, "message": "this is no JSON"}}
	}
	if q.ID == nil {
		if s.fault == "answers-notifications" {
			return fields{"jsonrpc": "2.0", "id": nil, "result": fields{}}
		}
		return nil
	}
	reply := fields{"jsonrpc": "2.0", "id": q.ID}
	result, failed := s.result(&q, client, notify)
	if failed != nil {
		e := fields{"code": failed.Code, "message": failed.Message}
		if failed.Code == -32022 {
			e["data"] = fields{"supported": []string{plantedVersion}, "requested": q.version()}
		}
		reply["error"] = e
	} else {
		result = maps.Clone(result)
		if s.modern {
			s.stamp(&q, result)
		}
		reply["result"] = result
	}
	s.spoil(&q, reply)
	return reply
}

// stamp adds what the modern era wants in results.
func (s *bareServer) stamp(q *bareQuery, result fields) {
	result["resultType"] = "complete"
	result["_meta"] = fields{"io.modelcontextprotocol/serverInfo": s.spec.Info}
	if strings.HasSuffix(q.Method, "/list") || q.Method == "server/discover" || q.Method == "resources/read" {
		result["ttlMs"], result["cacheScope"] = 0, "private"
	}
}

func (s *bareServer) result(q *bareQuery, client *string, notify func(fields)) (fields, *plantedError) {
	version := q.version()
	switch {
	case s.modern && q.Method == "initialize" && s.fault != "no-initialize-refusal":
		return nil, &plantedError{-32601, "there is no initialize"}
	case s.modern && version == "" && s.fault != "no-meta-wanted":
		return nil, &plantedError{-32602, "_meta is missing"}
	case s.modern && version != plantedVersion && version != "" && s.fault != "any-version":
		return nil, &plantedError{-32022, "this version is not spoken"}
	case !s.modern && (version != "" || q.Method == "server/discover"):
		return nil, &plantedError{-32601, "there is no method " + q.Method}
	}
	if s.modern {
		info, _ := q.Params.Meta["io.modelcontextprotocol/clientInfo"].(fields) // what is none is empty
		name, _ := info["name"].(string)
		*client = name
	}
	switch q.Method {
	case "initialize":
		*client = q.Params.ClientInfo.Name
		speak := "2025-11-25"
		switch q.Params.ProtocolVersion {
		case "2024-11-05", "2025-03-26", "2025-06-18":
			speak = q.Params.ProtocolVersion
		}
		return s.greeting(fields{"protocolVersion": speak, "serverInfo": s.spec.Info}), nil
	case "server/discover":
		return s.greeting(fields{"supportedVersions": []string{plantedVersion}}), nil
	case "ping":
		if !s.modern && s.fault != "no-ping" {
			return fields{}, nil
		}
	case "tools/list":
		if q.Params.Cursor != nil && s.fault != "cursor-any" && s.fault != "cursor-loop" {
			return nil, &plantedError{-32602, "there is no such page"}
		}
		return fields{"tools": s.listTools(*client)}, nil
	case "tools/call":
		return s.call(q.Params.Name, q.Params.Arguments, func(n float64) {
			if token := q.Params.Meta["progressToken"]; token != nil {
				notify(fields{"jsonrpc": "2.0", "method": "notifications/progress", "params": fields{"progressToken": token, "progress": n, "total": 1}})
			}
		})
	}
	switch {
	case s.spec.Prompts != nil && q.Method == "prompts/list":
		return fields{"prompts": s.listPrompts()}, nil
	case s.spec.Prompts != nil && q.Method == "prompts/get":
		return s.getPrompt(q.Params.Name)
	case s.spec.Resources != nil && q.Method == "resources/list":
		return fields{"resources": s.listResources()}, nil
	case s.spec.Resources != nil && q.Method == "resources/templates/list":
		return fields{"resourceTemplates": []any{}}, nil
	case s.spec.Resources != nil && q.Method == "resources/read":
		return s.readResource(q.Params.URI)
	case s.fault == "unknown-method":
		return fields{}, nil
	case s.fault == "unknown-method-code":
		return nil, &plantedError{-32603, "Internal error"}
	}
	return nil, &plantedError{-32601, "there is no method " + q.Method}
}

func (s *bareServer) greeting(result fields) fields {
	capabilities := fields{"tools": fields{}}
	if s.spec.Prompts != nil {
		capabilities["prompts"] = fields{}
	}
	if s.spec.Resources != nil {
		capabilities["resources"] = fields{}
	}
	delete(capabilities, s.spec.Serves.Undeclared)
	result["capabilities"] = capabilities
	if s.spec.Instructions != "" {
		result["instructions"] = s.spec.Instructions
	}
	return result
}

// spoil makes the fault, where it is one of answers.
func (s *bareServer) spoil(q *bareQuery, reply fields) {
	result, _ := reply["result"].(fields) // an error has none
	failed, _ := reply["error"].(fields)
	called := q.Method == "tools/call" && result != nil
	switch s.fault {
	case "no-server-info":
		delete(result, "serverInfo")
	case "version-unknown", "version-number", "version-echo", "no-capabilities":
		s.spoilGreeting(q, result)
	case "id-string":
		reply["id"] = string(q.ID)
	case "no-jsonrpc":
		delete(reply, "jsonrpc")
	case "result-and-error":
		if result != nil {
			reply["error"] = fields{"code": 0, "message": "no error"}
		}
	case "error-string":
		if failed != nil {
			failed["code"] = fmt.Sprint(failed["code"])
		}
	case "reserved-code":
		if failed != nil && failed["code"] == -32602 && q.Method == "tools/call" {
			failed["code"] = -32021
		}
	case "unknown-tool":
		if q.Method == "tools/call" && failed != nil {
			delete(reply, "error")
			reply["result"] = fields{"content": []any{fields{"type": "text", "text": "ok"}}, "resultType": "complete"}
		}
	case "unknown-tool-internal":
		if q.Method == "tools/call" && failed != nil {
			failed["code"] = -32603
		}
	case "tools-null", "cursor-empty", "cursor-loop":
		if q.Method == "tools/list" && result != nil {
			s.spoilPage(result)
		}
	case "no-content", "content-null", "content-string", "is-error-string", "text-number", "structured-list":
		if called {
			s.spoilCall(result)
		}
	default:
		if s.modern && result != nil {
			s.spoilStamp(q, result)
		}
	}
}

func (s *bareServer) spoilGreeting(q *bareQuery, result fields) {
	if q.Method != "initialize" || result == nil {
		return
	}
	switch s.fault {
	case "version-unknown":
		result["protocolVersion"] = "2027-01-01"
	case "version-number":
		result["protocolVersion"] = 1
	case "version-echo":
		result["protocolVersion"] = q.Params.ProtocolVersion
	case "no-capabilities":
		delete(result, "capabilities")
	}
}

func (s *bareServer) spoilPage(result fields) {
	switch s.fault {
	case "tools-null":
		result["tools"] = nil
	case "cursor-empty":
		result["nextCursor"] = ""
	case "cursor-loop":
		result["nextCursor"] = "more"
	}
}

func (s *bareServer) spoilCall(result fields) {
	content, _ := result["content"].([]any) // ours
	switch s.fault {
	case "no-content":
		delete(result, "content")
	case "content-null":
		result["content"] = nil
	case "content-string":
		result["content"] = "three tickets"
	case "is-error-string":
		result["isError"] = fmt.Sprint(result["isError"] == true)
	case "text-number":
		result["content"] = append([]any{fields{"type": "text", "text": 3}}, content...)
	case "structured-list":
		result["structuredContent"] = []any{1, 2}
	}
}

func (s *bareServer) spoilStamp(q *bareQuery, result fields) {
	listed := result["ttlMs"] != nil
	switch {
	case s.fault == "no-result-type":
		delete(result, "resultType")
	case s.fault == "other-result-type" && q.Method == "tools/call":
		result["resultType"] = "final"
	case s.fault == "no-ttl" && listed:
		delete(result, "ttlMs")
	case s.fault == "negative-ttl" && listed:
		result["ttlMs"] = -5
	case s.fault == "other-scope" && listed:
		result["cacheScope"] = "everybody"
	case s.fault == "no-supported":
		delete(result, "supportedVersions")
	}
}

// target reaches the server over lines or over HTTP.
func (s *bareServer) target(t *testing.T, web bool) lint.Target {
	if !web {
		return lint.Target{Legacy: !s.modern, Pipe: s.pipe}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(s.stopped) }) // before, or that waits for ever
	target := lint.Target{URL: server.URL + "/mcp"}
	if s.token != "" {
		target.Header = http.Header{"Authorization": {"Bearer " + s.token}}
	}
	return target
}

func (s *bareServer) pipe(context.Context) (io.ReadCloser, io.WriteCloser, error) {
	out, outEnd := io.Pipe()
	inEnd, in := io.Pipe()
	var mu sync.Mutex
	send := func(reply fields) {
		b := marshal(reply)
		if s.fault == "two-lines" {
			b = bytes.Replace(b, []byte(`"jsonrpc"`), []byte("\n"+`"jsonrpc"`), 1)
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(outEnd, "%s\n", b) // the client may be gone
		if s.fault == "twice" && reply["id"] != nil {
			_, _ = fmt.Fprintf(outEnd, "%s\n", b)
		}
	}
	go func() {
		defer outEnd.Close()
		defer inEnd.Close()
		lines := bufio.NewReaderSize(inEnd, 64<<10)
		var client string
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil || s.fault == "parse-dies" && !json.Valid(line) {
				return
			}
			var q bareQuery
			if json.Unmarshal(line, &q) != nil || q.Method != "tools/call" {
				if reply := s.answer(line, &client, send); reply != nil {
					send(reply)
				}
				continue
			}
			caller := client
			go func() { // calls run beside each other
				if reply := s.answer(line, &caller, send); reply != nil {
					send(reply)
				}
			}()
		}
	}()
	return out, in, nil
}

// ServeHTTP serves it over Streamable HTTP.
func (s *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.token != "" && !s.letIn(w, r) {
		return
	}
	switch {
	case s.fault == "redirects":
		http.Redirect(w, r, "http://localhost:1/elsewhere", http.StatusTemporaryRedirect)
		return
	case s.fault == "open-cors":
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Headers", "*")
	}
	if r.Header.Get("Origin") != "" && s.fault != "any-origin" || !strings.HasPrefix(r.Host, "127.0.0.1") && s.fault != "any-host" {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodDelete:
		s.end(w, r)
	case http.MethodPost:
		s.post(w, r)
	default:
		if s.fault == "get-hangs" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html><body>It works!</body></html>")
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *bareServer) end(w http.ResponseWriter, r *http.Request) {
	if s.modern {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, r.Header.Get("Mcp-Session-Id"))
}

func (s *bareServer) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q bareQuery
	broken := json.Unmarshal(body, &q) != nil
	session := r.Header.Get("Mcp-Session-Id")
	s.mu.Lock()
	client, known := s.sessions[session]
	s.mu.Unlock()
	if !s.modern && session != "" && !known && s.fault != "any-session" {
		status := http.StatusNotFound
		if s.fault == "no-404-session" {
			status = http.StatusBadRequest
		}
		http.Error(w, "there is no such session", status)
		return
	}
	if v := r.Header.Get("Mcp-Protocol-Version"); !s.modern && v != "" && !strings.HasPrefix(v, "2024-") && !strings.HasPrefix(v, "2025-") && s.fault != "version-header" {
		http.Error(w, "this version is not spoken", http.StatusBadRequest)
		return
	}
	var reply fields
	name, _ := headervalue.Decode(r.Header.Get("Mcp-Name"))
	if s.modern && !broken && q.version() != "" && s.fault != "header-mismatch" && (r.Header.Get("Mcp-Method") != q.Method || r.Header.Get("Mcp-Protocol-Version") != q.version() || q.Params.Name != "" && name != q.Params.Name) {
		reply = fields{"jsonrpc": "2.0", "id": q.ID, "error": fields{"code": -32020, "message": "headers and body differ"}}
	} else {
		var before []fields // what comes before the answer makes it a stream
		reply = s.answer(body, &client, func(m fields) { before = append(before, m) })
		if before != nil && reply != nil {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, m := range append(before, reply) {
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", marshal(m))
			}
			return
		}
	}
	s.write(w, &q, client, reply)
}

func (s *bareServer) write(w http.ResponseWriter, q *bareQuery, client string, reply fields) {
	if reply == nil {
		if s.fault == "notification-body" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"result":{}}`)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch s.fault {
	case "html-type":
		w.Header().Set("Content-Type", "text/html")
	case "plain-type":
		w.Header().Set("Content-Type", "text/plain")
	}
	if q.Method == "initialize" && reply["error"] == nil {
		s.mu.Lock()
		if s.sessions == nil {
			s.sessions = map[string]string{}
		}
		s.opened++
		id := fmt.Sprintf("session-%d", s.opened)
		s.sessions[id] = client
		s.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	}
	if failed, ok := reply["error"].(fields); ok && s.modern {
		switch {
		case s.fault == "unknown-method-200" && failed["code"] == -32601, s.fault == "missing-meta-200" && failed["code"] == -32602:
		case failed["code"] == -32601:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	} else if s.fault == "error-status" && reply["result"] != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = w.Write(marshal(reply)) // the client may be gone
}

// letIn answers requests about authorization and those without a good token.
func (s *bareServer) letIn(w http.ResponseWriter, r *http.Request) bool {
	base := "http://" + r.Host
	resource := fields{"resource": base + "/mcp", "authorization_servers": []string{base}, "scopes_supported": []string{"tickets:read"}, "bearer_methods_supported": []string{"header"}}
	issuer := fields{"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"tickets:read"}}
	switch s.fault {
	case "auth-other-resource":
		resource["resource"] = "https://helpdesk.example.com/mcp"
	case "auth-no-servers":
		delete(resource, "authorization_servers")
	case "auth-issuer":
		issuer["issuer"] = "https://login.example.com"
	case "auth-no-pkce":
		delete(issuer, "code_challenge_methods_supported")
	case "auth-plain-pkce":
		issuer["code_challenge_methods_supported"] = []string{"plain"}
	case "auth-no-endpoint":
		delete(issuer, "token_endpoint")
	case "auth-wide-scope":
		resource["scopes_supported"] = []string{"*"}
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") && s.fault != "auth-no-metadata":
		_, _ = w.Write(marshal(resource)) // the client may be gone
		return false
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
		_, _ = w.Write(marshal(issuer)) // the client may be gone
		return false
	case strings.HasPrefix(r.URL.Path, "/.well-known/"):
		http.NotFound(w, r)
		return false
	}
	shown := r.Header.Get("Authorization")
	if shown == "Bearer "+s.token || s.fault == "auth-any-token" && shown != "" || s.fault == "auth-some-open" && (r.Header.Get("Mcp-Session-Id") != "" || s.modern && r.Header.Get("Mcp-Method") != "server/discover") {
		return true
	}
	challenge := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="tickets:read"`, base)
	if shown != "" {
		challenge += `, error="invalid_token"`
	}
	if s.fault != "auth-no-challenge" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	switch s.fault {
	case "auth-403":
		http.Error(w, "forbidden", http.StatusForbidden)
	case "auth-200":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"error":"unauthorized"}`)
	default:
		http.Error(w, "a token is needed", http.StatusUnauthorized)
	}
	return false
}
