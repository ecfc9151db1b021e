package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/revocation"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// everyone are the rights of the keys of these tests.
var everyone = []string{"tool:*", "model:*", "route:*"}

// beside returns another process: a gateway with the configuration of this one, on the
// same store.
func (s *gatedGateway) beside(t *testing.T) *gatedGateway {
	t.Helper()
	other := *s
	other.Gateway = build(t, func(f *config.File) { *f = *s.file })
	if err := other.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.url = serve(t, other.Gateway).url
	return &other
}

// key adds a key to the file and returns it with its id.
func (s *gatedGateway) key(name string) (key, id string) {
	s.Helper()
	key, id = apikey.New()
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		return append(all, apikey.Record{ID: id, Hash: apikey.Hash(key), User: name, Name: name, Rights: everyone}), nil
	})
	return key, id
}

// respond makes a response and returns it.
func (s *gatedGateway) respond(key, rest string) (r struct {
	ID     string
	Output []struct{ ID, Type, Output, Error string }
}) {
	s.Helper()
	status, body := s.do(key, "POST", "/v1/responses", `{"model":"rehearsal",`+rest+`}`)
	if err := json.Unmarshal([]byte(body), &r); err != nil || status != http.StatusOK {
		s.Fatalf("%d %s", status, body)
	}
	return r
}

// errorIDs are what differs in errors of one kind.
var errorIDs = regexp.MustCompile(`"(request_id|id)": ?"[^"]*"|req_[A-Za-z0-9]+|(see|ID|id) [a-z0-9-]+|duration_ms[\\":]+[0-9]+`)

// TestIsolation: what belongs to a caller is, for everybody else, at every process, what
// is not there: another caller, another person behind the same key where the request names
// one, and a key that was revoked and made anew for the same name.
func TestIsolation(t *testing.T) {
	s := gatedBy(t, func(f *config.File) { f.Policy = append(f.Policy, policy.Rule{Deny: []string{"nothing__*"}}) })
	there := s.beside(t)
	ann, annID := s.key("ann of many")
	bob, _ := s.key("bob of many")

	const person = `,"user":"ada"`
	made := s.respond(ann, `"input":"SAY hello"`+person)
	item := made.Output[0].ID
	asked := s.respond(ann, `"input":"CALL get_weather {\"city\":\"Oslo\"}","tools":[{"type":"mcp","server_label":"demo","require_approval":"always"}]`+person)
	var request string
	for _, o := range asked.Output {
		if o.Type == "mcp_approval_request" {
			request = o.ID
		}
	}
	if request == "" {
		t.Fatalf("nothing is asked: %+v", asked)
	}
	cut := "abcdefghijklmnop"
	s.results.Keep("key-"+annID, cut, []byte(`{"roots":[{"pointer":"/data","value":"WzEsMl0="}],"limit":1000}`))
	written(t, s.ledger.DB)
	waiting, err := s.ledger.Inbox.Ask(t.Context(), approval.Request{
		Key: approval.Key{Caller: "key-" + annID, Server: "demo", Tool: "create_record"}, Arguments: json.RawMessage(`{}`), Rule: "records",
	})
	if err != nil {
		t.Fatal(err)
	}

	_, body := s.do(ann, "POST", "/v1/conversations", `{"items":[{"type":"message","role":"user","content":"hello"}]}`)
	var talk struct{ ID string }
	if err := json.Unmarshal([]byte(body), &talk); err != nil || talk.ID == "" {
		t.Fatal(body)
	}
	s.respond(ann, `"input":"SAY hello","conversation":"`+talk.ID+`"`+person) // which makes it ada's
	_, body = s.do(ann, "GET", "/v1/conversations/"+talk.ID+"/items?limit=1", "")
	var page struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Data) != 1 {
		t.Fatal(body, err)
	}

	routes := []struct {
		name, method, path, body string // with the id as %
		id                       string
		names                    bool // the request can name a person
		status                   int  // for others, and for what is not there
		owns                     int  // for the owner; 0: it is not for the owner either
	}{
		{"a response", "GET", "/v1/responses/%", "", made.ID, false, 404, 200},
		{"its input", "GET", "/v1/responses/%/input_items", "", made.ID, false, 404, 200},
		{"to cancel it", "POST", "/v1/responses/%/cancel", "", made.ID, false, 404, 400},
		{"to go on from it", "POST", "/v1/responses", `{"model":"rehearsal","previous_response_id":"%","input":"SAY more"PERSON}`, made.ID, true, 400, 200},
		{"to count from it", "POST", "/v1/responses/input_tokens", `{"model":"rehearsal","previous_response_id":"%","input":"more"PERSON}`, made.ID, true, 400, 200},
		{"an item of it", "POST", "/v1/responses", `{"model":"rehearsal","input":[{"type":"item_reference","id":"%"},{"role":"user","content":"SAY more"}]PERSON}`, item, true, 404, 200},
		{"what was asked of a client", "POST", "/v1/responses", `{"model":"rehearsal","previous_response_id":"` + "PREVIOUS" + `","input":[{"type":"mcp_approval_response","approval_request_id":"%","approve":false}]PERSON}`, request, true, 400, 200},
		{"a conversation", "GET", "/v1/conversations/%", "", talk.ID, false, 404, 200},
		{"to change it", "POST", "/v1/conversations/%", `{"metadata":{"a":"b"}}`, talk.ID, false, 404, 200},
		{"its items", "GET", "/v1/conversations/%/items", "", talk.ID, false, 404, 200},
		{"to add to it", "POST", "/v1/conversations/%/items", `{"items":[{"type":"message","role":"user","content":"more"}]}`, talk.ID, false, 404, 200},
		{"an item of a conversation", "GET", "/v1/conversations/" + talk.ID + "/items/%", "", page.Data[0].ID, false, 404, 200},
		{"to delete an item", "DELETE", "/v1/conversations/" + talk.ID + "/items/%", "", page.Data[0].ID, false, 404, 200},
		{"to go on from a conversation", "POST", "/v1/responses", `{"model":"rehearsal","conversation":"%","input":"SAY more"PERSON}`, talk.ID, true, 404, 200},
		{"to count from it", "POST", "/v1/responses/input_tokens", `{"model":"rehearsal","conversation":"%","input":"more"PERSON}`, talk.ID, true, 404, 200},
		{"to answer in it in the background", "POST", "/v1/responses", `{"model":"rehearsal","background":true,"conversation":"%","input":"SAY more"PERSON}`, talk.ID, true, 404, 200},
		{"to delete a conversation", "DELETE", "/v1/conversations/%", "", talk.ID, false, 404, 200},
		{"the rest of a result", "POST", "/v1/tools/call", `{"name":"read_more","arguments":{"handle":"%"},"tool_call_id":"c","dialect":"openai"}`, cut, false, 200, 200},
		{"what was asked of an operator", "POST", "/approvals/%", `{"decision":"approve"}`, waiting.ID, false, 404, 0},
		{"to delete a response", "DELETE", "/v1/responses/%", "", made.ID, false, 404, 200}, // the last one
	}
	again, _ := s.key("ann of many") // while the first is good
	for _, r := range routes {
		send := func(at *gatedGateway, key, id, person string) (int, string) {
			body := strings.NewReplacer("%", id, "PERSON", person).Replace(r.body)
			body = strings.Replace(body, `"previous_response_id":"PREVIOUS",`, "", 1)
			status, answer := at.do(key, r.method, strings.Replace(r.path, "%", id, 1), body)
			return status, errorIDs.ReplaceAllString(strings.ReplaceAll(answer, id, "ID"), "…")
		}
		unknown := strings.Repeat("z", len(r.id))
		if strings.HasPrefix(r.id, "resp_dg") {
			unknown = "resp_dg" + unknown[7:]
		} else if strings.HasPrefix(r.id, "conv_dg") {
			unknown = "conv_dg" + unknown[7:]
		} else if strings.HasPrefix(r.id, "mcpr_") {
			unknown = "mcpr_" + unknown[5:]
		}
		status, want := send(s, bob, unknown, "")
		if status != r.status {
			t.Errorf("%s that is not there: %d %s", r.name, status, want)
		}
		others := map[string][2]string{"another caller": {bob, person}, "the key that was made anew": {again, person}}
		if r.names {
			others["another person"] = [2]string{ann, `,"user":"eve"`}
		}
		for who, as := range others {
			for place, at := range map[string]*gatedGateway{"here": s, "at another process": there} {
				if status, got := send(at, as[0], r.id, as[1]); status != r.status || got != want {
					t.Errorf("%s, %s, for %s: %d %s\nwhat is not there: %s", r.name, place, who, status, got, want)
				}
			}
		}
		if status, got := send(there, ann, r.id, person); r.owns != 0 && (status != r.owns || got == want) {
			t.Errorf("%s, for its owner: %d %s", r.name, status, got)
		}
	}
	// What nobody was asked to decide here waits on.
	if a, err := s.ledger.Inbox.Get(t.Context(), waiting.ID); err != nil || a.State != "pending" {
		t.Errorf("%v, %v", a.State, err)
	}
}

// written waits until what was appended to a store is there.
func written(t *testing.T, db *store.DB) {
	t.Helper()
	if err := db.Write(t.Context(), func(*store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestResponsesOutliveTheProcess: a response is there for the next process: to get, to go
// on from, with its items; and not any more once it is deleted.
func TestResponsesOutliveTheProcess(t *testing.T) {
	s := gated(t)
	ann, _ := s.key("ann of many")
	made := s.respond(ann, `"input":"SAY hello"`)
	there := s.beside(t)
	_, first := s.do(ann, "GET", "/v1/responses/"+made.ID, "")
	if status, body := there.do(ann, "GET", "/v1/responses/"+made.ID, ""); status != 200 || body != first {
		t.Errorf("%d %s\nwas %s", status, body, first)
	}
	if status, body := there.do(ann, "GET", "/v1/responses/"+made.ID+"/input_items", ""); status != 200 || !strings.Contains(body, "SAY hello") {
		t.Errorf("%d %s", status, body)
	}
	next := there.respond(ann, `"previous_response_id":"`+made.ID+`","input":"SAY more"`)
	if status, _ := there.do(ann, "DELETE", "/v1/responses/"+made.ID, ""); status != 200 {
		t.Errorf("%d", status)
	}
	if status, _ := s.do(ann, "GET", "/v1/responses/"+made.ID, ""); status != 404 {
		t.Errorf("deleted, and: %d", status)
	}
	if status, _ := s.do(ann, "GET", "/v1/responses/"+next.ID, ""); status != 200 {
		t.Errorf("the next one: %d", status)
	}
}

// TestClientsApprovalIsSpentOnce: what a client approves runs once, at whichever process
// the approval comes, with store:false too.
func TestClientsApprovalIsSpentOnce(t *testing.T) {
	s := gatedBy(t, func(f *config.File) { f.Policy = []policy.Rule{{Allow: []string{"*"}}} })
	ann, _ := s.key("ann of many")
	there := s.beside(t)
	for _, kept := range []string{"true", "false"} {
		const tools = `"tools":[{"type":"mcp","server_label":"demo","require_approval":"always"}]`
		_, body := s.do(ann, "POST", "/v1/responses", `{"model":"rehearsal","store":`+kept+`,"input":"CALL create_record {\"table\":\"people\",\"data\":{\"name\":\"Ada\"}}",`+tools+`}`)
		var asked struct{ Output []json.RawMessage }
		if err := json.Unmarshal([]byte(body), &asked); err != nil {
			t.Fatal(err)
		}
		var request json.RawMessage
		var id string
		for _, o := range asked.Output {
			var item struct{ ID, Type string }
			if err := json.Unmarshal(o, &item); err == nil && item.Type == "mcp_approval_request" {
				request, id = o, item.ID
			}
		}
		if id == "" {
			t.Fatalf("nothing is asked: %s", body)
		}
		answer := `{"model":"rehearsal","store":` + kept + `,"input":[{"role":"user","content":"CALL create_record {\"table\":\"people\",\"data\":{\"name\":\"Ada\"}}"},` +
			string(request) + `,{"type":"mcp_approval_response","approval_request_id":"` + id + `","approve":true}],` + tools + `}`
		if status, body := there.do(ann, "POST", "/v1/responses", answer); status != 200 || !strings.Contains(body, `"mcp_call"`) || strings.Contains(body, `"status":"failed"`) {
			t.Errorf("approved: %d %s", status, body)
		}
		for place, at := range map[string]*gatedGateway{"here": s, "at the other process": there} {
			if status, body := at.do(ann, "POST", "/v1/responses", answer); status != 400 || !strings.Contains(body, "used before") {
				t.Errorf("once more %s: %d %s", place, status, body)
			}
		}
		// Decoders of base64 overlook line breaks, and bits that are too many at the end.
		for _, other := range []string{id[:20] + `\n` + id[20:], id + `\r\n`} {
			again := strings.ReplaceAll(answer, `"`+id+`"`, `"`+other+`"`)
			if status, body := s.do(ann, "POST", "/v1/responses", again); status != 400 || !strings.Contains(body, "invalid_approval") {
				t.Errorf("once more, as %s: %d %s", other, status, body)
			}
		}
	}
}

// TestKeysRevokedInTheStore: a key that is revoked in the store is good at no gateway on
// it, though the file has it.
func TestKeysRevokedInTheStore(t *testing.T) {
	s := gated(t)
	ann, id := s.key("ann of many")
	there := s.beside(t)
	if status, body := there.do(ann, "GET", "/v1/models", ""); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if err := revocation.Revoke(t.Context(), s.ledger.DB, id); err != nil {
		t.Fatal(err)
	}
	for _, at := range []*gatedGateway{s, there} {
		eventually(t, "the key is refused", func() bool {
			status, _ := at.do(ann, "GET", "/v1/models", "")
			return status == http.StatusUnauthorized
		})
	}
	late := s.beside(t)
	if status, _ := late.do(ann, "GET", "/v1/models", ""); status != http.StatusUnauthorized {
		t.Errorf("at the next process: %d", status)
	}
}

// TestReadsCostNoStatement: a conversation that begins, a call of a tool that only reads,
// and a list wait for nothing in the store.
func TestReadsCostNoStatement(t *testing.T) {
	entry, _ := fakes(t, fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})
	entry.Effects.ReadOnly = []string{"*"}
	s := gatedBy(t, func(f *config.File) { f.MCPServers = map[string]servers.Config{"demo": entry} })
	ann, _ := s.key("ann of many")
	for name, r := range map[string][2]string{
		"a chat":                {"/v1/chat/completions", `{"model":"rehearsal","messages":[{"role":"user","content":"CALL echo {}"}]}`},
		"a call":                {"/v1/tools/call", `{"name":"echo","arguments":{},"tool_call_id":"c","dialect":"openai"}`},
		"a message":             {"/v1/messages", `{"model":"rehearsal","max_tokens":100,"messages":[{"role":"user","content":"SAY hello"}]}`},
		"a response unstored":   {"/v1/responses", `{"model":"rehearsal","store":false,"input":"CALL echo {}","tools":[{"type":"mcp","server_label":"demo","require_approval":"never"}]}`},
		"a call that is denied": {"/v1/tools/call", `{"name":"nothing_like_it","arguments":{},"tool_call_id":"c","dialect":"openai"}`},
	} {
		least := ^uint64(0) // what the gateway looks after meanwhile counts as well
		for range 20 {
			before := s.ledger.DB.Waited()
			if status, body := s.do(ann, "POST", r[0], r[1]); status != 200 {
				t.Fatalf("%s: %d %s", name, status, body)
			}
			least = min(least, s.ledger.DB.Waited()-before)
		}
		if least > 0 {
			t.Errorf("%s waits for the store %d times", name, least)
		}
	}
}

// TestDeniedIsNotAskedOfClients: what the rules deny is denied, before the client is asked;
// and what the client allows still waits for the operator, whom no yes of a client stands
// in for.
func TestDeniedIsNotAskedOfClients(t *testing.T) {
	s := gatedBy(t, func(f *config.File) {
		f.Policy = append(f.Policy, policy.Rule{Name: "north", Deny: []string{"demo__get_weather"}, When: policy.When{Arguments: []policy.Argument{{Name: "city", Match: []string{"Oslo"}}}}})
	})
	ann, _ := s.key("ann of many")
	const tools = `"tools":[{"type":"mcp","server_label":"demo","require_approval":"always"}]`
	_, body := s.do(ann, "POST", "/v1/responses", `{"model":"rehearsal","input":"CALL get_weather {\"city\":\"Oslo\"}",`+tools+`}`)
	if strings.Contains(body, "mcp_approval_request") {
		t.Errorf("what is denied is asked: %s", body)
	}
	asked := s.respond(ann, `"input":"CALL create_record {\"table\":\"people\",\"data\":{}}",`+tools)
	id := asked.Output[len(asked.Output)-1].ID
	waiting := func() []approval.Approval {
		all, err := s.ledger.Inbox.List(t.Context(), approval.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := waiting(); len(all) != 0 {
		t.Errorf("the operator is asked before the client: %+v", all)
	}
	answered := make(chan string, 1)
	go func() {
		_, body := s.do(ann, "POST", "/v1/responses", `{"model":"rehearsal","previous_response_id":"`+asked.ID+`","input":[{"type":"mcp_approval_response","approval_request_id":"`+id+`","approve":true}],`+tools+`}`)
		answered <- body
	}()
	eventually(t, "the operator is asked", func() bool { return len(waiting()) == 1 })
	if _, err := s.ledger.Inbox.Deny(t.Context(), waiting()[0].ID, approval.Person{ID: "terminal:olga", Name: "olga"}, "not today"); err != nil {
		t.Fatal(err)
	}
	if body := <-answered; !strings.Contains(body, "not today") {
		t.Errorf("the client's yes stands in for the operator's: %s", body)
	}
}

// TestIdempotencyKeyOfProcesses: a request that comes again with its key at another
// process gets the answer of the first, and runs nothing twice; another request with the
// key is refused there; and one without a key leaves nothing.
func TestIdempotencyKeyOfProcesses(t *testing.T) {
	s := gatedBy(t, func(f *config.File) { f.Policy = []policy.Rule{{Allow: []string{"*"}}} })
	ann, _ := s.key("ann of many")
	bob, _ := s.key("bob of many")
	there := s.beside(t)
	claims := func() (n int) {
		if err := s.ledger.DB.Read(t.Context(), func(tx *store.Tx) error { return tx.Row("SELECT count(*) FROM claims", nil, &n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, r := range map[string][2]string{
		"/v1/chat/completions": {makesARecord, strings.Replace(makesARecord, "Ada", "Eve", 1)},
		"/v1/tools/call": {
			`{"name":"create_record","arguments":{"table":"people","data":{"name":"Ada"}},"tool_call_id":"c","dialect":"openai"}`,
			`{"name":"create_record","arguments":{"table":"people","data":{"name":"Eve"}},"tool_call_id":"c","dialect":"openai"}`,
		},
	} {
		before := claims()
		if status, body := s.do(ann, "POST", name, r[0]); status != 200 || claims() != before {
			t.Errorf("%s without a key: %d, %d claims, %s", name, status, claims(), body)
		}
		send := func(at *gatedGateway, key, body string) (int, string, bool) {
			req, err := http.NewRequestWithContext(t.Context(), "POST", at.url+name, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+key)
			req.Header.Set("Idempotency-Key", "k"+name)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode, string(b), res.Header.Get("Idempotent-Replayed") == "true"
		}
		status, first, again := send(s, ann, r[0])
		if status != 200 || again || claims() != before+1 {
			t.Errorf("%s: %d %s, %d claims", name, status, first, claims())
		}
		if status, body, again := send(there, ann, r[0]); status != 200 || body != first || !again {
			t.Errorf("%s at another process: %d, given before: %v, %s\nthe first: %s", name, status, again, body, first)
		}
		if status, body, _ := send(there, ann, r[1]); status != http.StatusUnprocessableEntity {
			t.Errorf("%s, another request: %d %s", name, status, body)
		}
		if status, _, again := send(there, bob, r[0]); status != 200 || again {
			t.Errorf("%s, another caller: %d, given before: %v", name, status, again)
		}
	}
}

// TestTurnsOfAgentsAreClaimed: a request of a turn of Claude Code's whose first run died with
// its process, while a call that may change something ran, goes on at another one, where the
// call is not made again; so does the rest of the turn, and a turn that came to its end leaves
// nothing.
func TestTurnsOfAgentsAreClaimed(t *testing.T) {
	s := gatedBy(t, func(f *config.File) { f.Policy = []policy.Rule{{Allow: []string{"*"}}} })
	ann, _ := s.key("ann of turns")
	there := s.beside(t)
	send := func(ctx context.Context, at *gatedGateway, model, prompt string, behind ...string) (int, string) {
		body := `{"model":"` + model + `","max_tokens":99,"context_management":{},"messages":[{"role":"user","content":"CALL create_record {\"table\":\"people\",\"data\":{\"name\":\"Ada\"}}\nTHEN\nSAY Made."}` + strings.Join(behind, "") + `]}`
		req, err := http.NewRequestWithContext(ctx, "POST", at.url+"/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + ann, "X-Claude-Code-Session-Id": "s", "X-Claude-Code-Request-Class": "main", "X-Claude-Code-Prompt-Id": prompt} {
			req.Header.Set(name, value)
		}
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		res, err := client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			return 0, err.Error()
		}
		return res.StatusCode, string(b)
	}
	count := func(of string) (n int) {
		if err := s.ledger.DB.Read(t.Context(), func(tx *store.Tx) error { return tx.Row("SELECT count(*) FROM "+of, nil, &n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	claims := func() int { return count("claims WHERE changed = 1 OR holder <> ''") }
	intents := func() int { return count("audit_records WHERE kind = 'intent'") }
	if status, body := send(t.Context(), s, "rehearsal", "whole"); status != 200 || !strings.Contains(body, "Made.") || claims() != 0 {
		t.Fatalf("%d %s, and %d claims", status, body, claims())
	}
	ctx, die := context.WithCancel(t.Context())
	var first sync.WaitGroup
	defer first.Wait()
	defer die()
	first.Go(func() { send(ctx, s, "rehearsal:slow", "cut") })
	eventually(t, "the call is claimed", func() bool { return claims() == 1 })
	if err := s.ledger.DB.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE claims SET lease = 1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	made := intents()
	if status, body := send(t.Context(), there, "rehearsal", "cut"); status != 200 || !strings.Contains(body, "Made.") || intents() != made || claims() != 0 {
		t.Errorf("at another process: %d %s, %d calls and not %d, %d claims", status, body, intents(), made, claims())
	}
	if status, body := send(t.Context(), there, "rehearsal", "cut", `,{"role":"assistant","content":"Made."},{"role":"user","content":"SAY And on."}`); status != 200 || !strings.Contains(body, "And on.") {
		t.Errorf("the rest of the turn: %d %s", status, body)
	}
	if status, body := send(t.Context(), there, "rehearsal", "next"); status != 200 || !strings.Contains(body, "Made.") {
		t.Errorf("the next prompt: %d %s", status, body)
	}
}

// TestRequestsOfAgentsAreClaimed: a request that names its turn, as Codex's do, and comes again at
// another process while the first still runs, since its client lost the connection and nobody has
// told the gateway, waits for what that does and goes on behind it; where that process has died,
// it goes on at once. Neither makes a call again, and nothing is left of the claims.
func TestRequestsOfAgentsAreClaimed(t *testing.T) {
	s := gatedBy(t, func(f *config.File) { f.Policy = []policy.Rule{{Allow: []string{"*"}}} })
	ann, _ := s.key("ann of requests")
	there := s.beside(t)
	count := func(of string) (n int) {
		if err := s.ledger.DB.Read(t.Context(), func(tx *store.Tx) error { return tx.Row("SELECT count(*) FROM "+of, nil, &n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	intents := func() int { return count("audit_records WHERE kind = 'intent'") }
	for _, tt := range []struct {
		name  string
		dies  bool
		calls int
	}{
		{"it runs elsewhere", false, 2},
		{"it died elsewhere", true, 1},
	} {
		script := `CALL create_record {\"table\":\"people\",\"data\":{\"name\":\"Ada\"}}\nTHEN\n`
		if tt.calls == 2 {
			script += `CALL create_record {\"table\":\"people\",\"data\":{\"name\":\"Eve\"}}\nTHEN\n`
		}
		body := `{"model":"rehearsal:slow","input":"` + script + `SAY Made.","prompt_cache_key":"thread","client_metadata":{"turn_id":"` + tt.name + `"}}`
		before := intents()
		var first sync.WaitGroup
		first.Go(func() {
			if status, got := s.do(ann, "POST", "/v1/responses", body); status != 200 || !strings.Contains(got, "Made.") {
				t.Errorf("%s: the first: %d %s", tt.name, status, got)
			}
		})
		eventually(t, "its call is made", func() bool { return intents() > before })
		if tt.dies {
			if err := s.ledger.DB.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec("UPDATE claims SET lease = 1")
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if status, got := there.do(ann, "POST", "/v1/responses", body); status != 200 || !strings.Contains(got, "Made.") {
			t.Errorf("%s: %d %s", tt.name, status, got)
		}
		first.Wait()
		if made, claims := intents()-before, count("claims WHERE changed = 1 OR holder <> ''"); made != tt.calls || claims != 0 {
			t.Errorf("%s: %d calls and not %d, %d claims are left", tt.name, made, tt.calls, claims)
		}
	}
}
