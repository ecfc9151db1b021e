package openapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/toolkit"
	"github.com/dragoman-mcp/dragoman/toolkit/openapi"
)

func load(t *testing.T) *openapi.Document {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "tickets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func all(openapi.Operation) bool { return true }

// connect adds the tools of a document and connects a client to them.
func connect(t *testing.T, doc *openapi.Document, o openapi.Options) (*mcp.ClientSession, []openapi.Skipped) {
	t.Helper()
	s := toolkit.NewServer(toolkit.Options{Service: "tickets"})
	t.Cleanup(func() { s.Close() })
	skipped, err := doc.Add(s, o)
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session, skipped
}

func call(t *testing.T, session *mcp.ClientSession, tool, arguments string) (text string, failed bool) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

func TestTools(t *testing.T) {
	session, skipped := connect(t, load(t), openapi.Options{BaseURL: "http://127.0.0.1:1", Select: all, Configure: func(o openapi.Operation, tool *toolkit.Tool) {
		if o.ID == "TicketsCreate" {
			tool.Hints.Destructive = toolkit.No
		}
	}})
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, tool := range list.Tools {
		in, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		a := tool.Annotations
		got[tool.Name] = fmt.Sprintf("%s|%v %v %v|%s", tool.Description, a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint, in)
	}
	want := map[string]string{
		"tickets_list_tickets": `Lists tickets. The newest come first.|true false true|{"additionalProperties":false,"properties":{"X-Team":{"type":"string"},` +
			`"page":{"properties":{"size":{"exclusiveMinimum":0,"type":"integer"}},"type":"object"},` +
			`"state":{"description":"Only these","items":{"enum":["open","closed"],"type":"string"},"type":"array"},` +
			`"words":{"items":{"type":"string"},"type":"array"}},"type":"object"}`,
		"tickets_create_all": `Sends POST /tickets.|false false false|{"$defs":{"Ticket":{"properties":{"below":{"items":{"$ref":"#/$defs/Ticket"},"type":"array"},"kind":{"enum":["bug","wish",null],"format":"kind","type":["string","null"]}},"type":"object"}},` +
			`"additionalProperties":false,"properties":{"X-Team":{"type":"string"},"due":{"format":"date","type":["string","null"]},"parent":{"$ref":"#/$defs/Ticket"},"title":{"minLength":1,"type":"string"}},"required":["title"],"type":"object"}`,
		"tickets_get_by_id":         `Sends GET /tickets/{id}.|true false true|{"additionalProperties":false,"properties":{"id":{"pattern":"^(?!0)","type":"string"}},"required":["id"],"type":"object"}`,
		"tickets_replace_ticket":    `Sends PUT /tickets/{id}.|false true true|{"additionalProperties":false,"properties":{"body":{"properties":{"id":{"type":"string"}},"required":["id"],"type":"object"},"id":{"pattern":"^(?!0)","type":"string"}},"required":["id","body"],"type":"object"}`,
		"tickets_remove_old_ticket": `Sends DELETE /tickets/{id}.|false true true|{"additionalProperties":false,"properties":{"id":{"pattern":"^(?!0)","type":"string"}},"required":["id"],"type":"object"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var why []string
	for _, s := range skipped {
		why = append(why, s.Operation.ID+": "+s.Why)
	}
	if diff := cmp.Diff([]string{"checkLogin: parameter session is in a cookie", "uploadPicture: the body is not JSON"}, why); diff != "" {
		t.Errorf("skipped, -want +got:\n%s", diff)
	}
}

func TestCalls(t *testing.T) {
	t.Setenv("TICKETS_KEY", "secret-7")
	var seen string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen = fmt.Sprintf("%s %s %s %s %s", r.Method, r.RequestURI, r.Header.Get("X-Team"), r.Header.Get("Content-Type"), body)
		if r.Header.Get("Authorization") != "Bearer secret-7" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		switch strings.TrimPrefix(r.URL.Path, "/v1/tickets/") {
		case "404":
			http.Error(w, "no ticket 404", 404)
		case "401":
			http.Error(w, "secret-7", http.StatusUnauthorized)
		case "429":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		case "500":
			http.Error(w, "secret-7", 500)
		case "large":
			fmt.Fprint(w, strings.Repeat("x", 3000))
		case "text":
			fmt.Fprint(w, "hello")
		case "empty":
			w.WriteHeader(204)
		case "away":
			http.Redirect(w, r, "http://localhost:1/", http.StatusTemporaryRedirect)
		case "moved":
			http.Redirect(w, r, "/v1/tickets/text", http.StatusTemporaryRedirect)
		case "binary":
			w.Header().Set("Content-Type", "image/png")
			w.Write([]byte{0x89, 0xff})
		default:
			fmt.Fprint(w, ` {"big":9007199254740993,"id":1} `)
		}
	}))
	defer service.Close()
	session, _ := connect(t, load(t), openapi.Options{BaseURL: service.URL + "/v1/", Select: all, Authorize: openapi.Bearer(&toolkit.Key{Env: "TICKETS_KEY"}), MaxAnswer: 2000})
	ok := `{"status":200,"data":{"big":9007199254740993,"id":1}}`
	for _, tt := range []struct{ tool, arguments, sent, want string }{
		{"tickets_list_tickets", `{}`, "GET /v1/tickets   ", ok},
		{"tickets_list_tickets", `{"state":["open","closed"],"words":["a b","c|d"],"page":{"size":5},"X-Team":"core"}`,
			"GET /v1/tickets?state=open&state=closed&words=a+b%7Cc%7Cd&page%5Bsize%5D=5 core  ", ok},
		{"tickets_list_tickets", `{"state":["new"]}`, "", "Invalid arguments for tickets_list_tickets: state.0: expected one of 'open', 'closed', got \"new\"."},
		{"tickets_list_tickets", `{"X-Team":"a\r\nX-Evil: 1"}`, "", "Invalid arguments for tickets_list_tickets: X-Team: control characters cannot stand in a header."},
		{"tickets_create_all", `{"title":"Ä","due":null,"X-Team":"core"}`, `POST /v1/tickets core application/json {"due":null,"title":"Ä"}`, ok},
		{"tickets_create_all", `{"title":""}`, "", `Invalid arguments for tickets_create_all: title: expected at least 1 characters, got "".`},
		{"tickets_replace_ticket", `{"id":"a/b?c","body":{"id":"x"}}`, `PUT /v1/tickets/a%2Fb%3Fc  application/merge-patch+json {"id":"x"}`, ok},
		{"tickets_get_by_id", `{"id":".."}`, "", `Invalid arguments for tickets_get_by_id: id: ".." cannot stand in a path.`},
		{"tickets_get_by_id", `{"id":"01"}`, "", `Invalid arguments for tickets_get_by_id: id: expected`},
		{"tickets_get_by_id", `{"id":""}`, "", `Invalid arguments for tickets_get_by_id: id: "" cannot stand in a path.`},
		{"tickets_get_by_id", `{"id":"404"}`, "GET /v1/tickets/404   ", "The service has no such thing (404): no ticket 404"},
		{"tickets_get_by_id", `{"id":"401"}`, "GET /v1/tickets/401   ", "The service does not let this server do that (401). Whoever runs it can say why."},
		{"tickets_get_by_id", `{"id":"429"}`, "GET /v1/tickets/429   ", "The service is busy (429). Try again in 7 seconds."},
		{"tickets_get_by_id", `{"id":"500"}`, "GET /v1/tickets/500   ", "The service failed (500)."},
		{"tickets_remove_old_ticket", `{"id":"500"}`, "DELETE /v1/tickets/500   ", "The service failed (500). It may have carried out the request all the same; look before you try again."},
		{"tickets_get_by_id", `{"id":"large"}`, "GET /v1/tickets/large   ", "The answer is larger than 2000 bytes."},
		{"tickets_get_by_id", `{"id":"text"}`, "GET /v1/tickets/text   ", `{"status":200,"data":"hello"}`},
		{"tickets_get_by_id", `{"id":"empty"}`, "GET /v1/tickets/empty   ", `{"status":204,"data":null}`},
		{"tickets_get_by_id", `{"id":"binary"}`, "GET /v1/tickets/binary   ", `{"status":200,"data":"2 bytes of image/png"}`},
		{"tickets_get_by_id", `{"id":"moved"}`, "GET /v1/tickets/text   ", `{"status":200,"data":"hello"}`},
		{"tickets_get_by_id", `{"id":"away"}`, "GET /v1/tickets/away   ", "Internal error in tickets_get_by_id"},
	} {
		seen = ""
		got, failed := call(t, session, tt.tool, tt.arguments)
		if seen != tt.sent || !strings.HasPrefix(got, tt.want) || failed == strings.HasPrefix(tt.want, `{"status"`) {
			t.Errorf("%s %s: sent %q, want %q; got %q, want %q", tt.tool, tt.arguments, seen, tt.sent, got, tt.want)
		}
		if strings.Contains(got, "secret-7") {
			t.Errorf("%s %s: a secret in %s", tt.tool, tt.arguments, got)
		}
	}
	service.Close()
	if got, _ := call(t, session, "tickets_get_by_id", `{"id":"1"}`); got != "The service gave no answer." {
		t.Errorf("a service that is not there: %s", got)
	}
}

// TestLists writes lists and objects with commas between their parts, and a comma in a part
// so that it separates nothing.
func TestLists(t *testing.T) {
	var seen string
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.RequestURI + " " + r.Header.Get("X-P") }))
	defer service.Close()
	doc, err := openapi.Load([]byte(`{"openapi":"3.0.3","info":{"title":"x","version":"1"},"paths":{"/a/{list}/{map}":{"get":{"operationId":"getA","parameters":[
		{"name":"list","in":"path","required":true,"schema":{"type":"array","items":{"type":"string"}}},
		{"name":"map","in":"path","required":true,"explode":true,"schema":{"type":"object"}},
		{"name":"some","in":"query","explode":false,"schema":{"type":"array","items":{"type":"string"}}},
		{"name":"pair","in":"query","explode":false,"schema":{"type":"object"}},
		{"name":"wide","in":"query","style":"spaceDelimited","explode":false,"schema":{"type":"array","items":{"type":"string"}}},
		{"name":"X-P","in":"header","schema":{"type":"array","items":{"type":"string"}}}],"responses":{"200":{"description":"x"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	session, _ := connect(t, doc, openapi.Options{BaseURL: service.URL})
	if got, failed := call(t, session, "tickets_get_a", `{"list":["a/b","c,d"],"map":{"k":"1,2","l":"3"},"some":["a,b","c&d","{list}"],"pair":{"k":"1,2"},"wide":["a","b"],"X-P":["a","b"]}`); failed {
		t.Fatal(got)
	}
	if want := "/a/a%2Fb,c%2Cd/k=1%2C2,l=3?some=a%2Cb,c%26d,%7Blist%7D&pair=k,1%2C2&wide=a+b a,b"; seen != want {
		t.Errorf("sent %s, want %s", seen, want)
	}
}

// TestNamesOfArguments gives each parameter, and the body, an argument of its own, also where
// the name that would tell two of one name apart is that of a third.
func TestNamesOfArguments(t *testing.T) {
	var seen string
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = r.RequestURI + " " + string(body)
	}))
	defer service.Close()
	doc, err := openapi.Load([]byte(`{"openapi":"3.0.3","info":{"title":"x","version":"1"},"paths":{"/a/{id}":{"post":{"operationId":"createA","parameters":[
		{"name":"query_id","in":"query","schema":{"type":"string"}},
		{"name":"id","in":"path","required":true,"schema":{"type":"string"}},
		{"name":"id","in":"query","schema":{"type":"string"}},
		{"name":"body","in":"query","schema":{"type":"string"}},
		{"name":"request_body","in":"query","schema":{"type":"string"}}],
		"requestBody":{"content":{"application/json":{"schema":{"type":"array","items":{"type":"integer"}}}}},"responses":{"200":{"description":"x"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	session, _ := connect(t, doc, openapi.Options{BaseURL: service.URL})
	if got, failed := call(t, session, "tickets_create_a", `{"query_id":"q","id":"p","query_query_id":"i","body":"b","request_body":"r","request_request_body":[1]}`); failed {
		t.Fatal(got)
	}
	if want := "/a/p?query_id=q&id=i&body=b&request_body=r [1]"; seen != want {
		t.Errorf("sent %s, want %s", seen, want)
	}
}

// TestBodyOfSeveralKinds makes the same tool of a document each time, whichever of several
// kinds of JSON its body can be.
func TestBodyOfSeveralKinds(t *testing.T) {
	for range 60 {
		doc, err := openapi.Load([]byte(`{"openapi":"3.0.3","info":{"title":"x","version":"1"},"paths":{"/a":{"patch":{"operationId":"updateA","requestBody":{"content":{
			"application/merge-patch+json":{"schema":{"type":"object","properties":{"replicas":{"type":"integer"}}}},
			"application/json-patch+json":{"schema":{"type":"array","items":{"type":"object"}}}}},"responses":{"200":{"description":"x"}}}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		session, _ := connect(t, doc, openapi.Options{BaseURL: "http://127.0.0.1:1"})
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		in, err := json.Marshal(list.Tools[0].InputSchema)
		if want := `{"additionalProperties":false,"properties":{"body":{"items":{"type":"object"},"type":"array"}},"type":"object"}`; err != nil || string(in) != want {
			t.Fatalf("got %s, %v; want %s", in, err, want)
		}
	}
}

// TestIntegersInAddresses writes integers as services read them, however a model spells them.
func TestIntegersInAddresses(t *testing.T) {
	var seen string
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.RequestURI }))
	defer service.Close()
	doc, err := openapi.Load([]byte(`{"openapi":"3.0.3","info":{"title":"x","version":"1"},"paths":{"/a/{id}":{"get":{"operationId":"getA","parameters":[
		{"name":"id","in":"path","required":true,"schema":{"type":"integer"}},
		{"name":"some","in":"query","schema":{"type":"array","items":{"type":"integer"}}},
		{"name":"price","in":"query","schema":{"type":"number"}},
		{"name":"version","in":"query","schema":{"type":"string"}}],"responses":{"200":{"description":"x"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	session, _ := connect(t, doc, openapi.Options{BaseURL: service.URL})
	if got, failed := call(t, session, "tickets_get_a", `{"id":3.0,"some":[1e2,-4.0,9007199254740993],"price":1.50,"version":"1.0"}`); failed {
		t.Fatal(got)
	}
	if want := "/a/3?some=100&some=-4&some=9007199254740993&price=1.50&version=1.0"; seen != want {
		t.Errorf("sent %s, want %s", seen, want)
	}
}

// TestServerOfTheDocument trusts an address that the document chose only if it
// is public.
func TestServerOfTheDocument(t *testing.T) {
	reached := false
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer service.Close()
	document := func(server string) []byte {
		return []byte(`{"openapi":"3.1.0","info":{"title":"x","version":"1"},"servers":[` + server + `],"paths":{"/a":{"get":{"operationId":"getA","responses":{"200":{"description":"x"}}}}}}`)
	}
	doc, err := openapi.Load(document(`{"url":"` + service.URL + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	session, _ := connect(t, doc, openapi.Options{})
	if got, _ := call(t, session, "tickets_get_a", `{}`); got != "The service gave no answer." || reached {
		t.Errorf("got %s, reached %v", got, reached)
	}
	for _, server := range []string{"", `{"url":"/v1"}`, `{"url":"https://{region}.example","variables":{"region":{"default":"eu"}}}`} {
		doc, err := openapi.Load(document(server))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := doc.Add(toolkit.NewServer(toolkit.Options{Service: "tickets"}), openapi.Options{}); err == nil || !strings.Contains(err.Error(), "give BaseURL") {
			t.Errorf("%s: %v", server, err)
		}
	}
}

// TestServersOfOperations leaves out what the document has at another server.
func TestServersOfOperations(t *testing.T) {
	for _, tt := range []struct{ document, path, operation, base, want string }{
		{`[{"url":"https://shop.example/v1"}]`, ``, ``, "", ""},
		{`[{"url":"https://shop.example/v1"}]`, ``, `[{"url":"https://files.shop.example"}]`, "", "getA: it is at a server of its own, https://files.shop.example"},
		{`[{"url":"https://shop.example/v1"}]`, `[{"url":"https://files.shop.example"}]`, ``, "http://127.0.0.1:1", "getA: it is at a server of its own, https://files.shop.example"},
		{`[{"url":"https://shop.example/v1"}]`, `[{"url":"https://files.shop.example"}]`, `[{"url":"https://shop.example/v1/"}]`, "http://127.0.0.1:1", ""},
		{`[{"url":"https://shop.example/v1"}]`, ``, `[{"url":"http://127.0.0.1:1/"}]`, "http://127.0.0.1:1", ""},
		{`[]`, `[{"url":"/"}]`, ``, "http://127.0.0.1:1", ""},
		{`[]`, `[{"url":"/v2"}]`, ``, "http://127.0.0.1:1", "getA: it is at a server of its own, /v2"},
	} {
		servers := func(list string) string {
			if list == "" {
				return ""
			}
			return `"servers":` + list + `,`
		}
		doc, err := openapi.Load([]byte(`{"openapi":"3.0.3","info":{"title":"x","version":"1"},` + servers(tt.document) +
			`"paths":{"/a":{` + servers(tt.path) + `"get":{"operationId":"getA",` + servers(tt.operation) + `"responses":{"200":{"description":"x"}}}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		s := toolkit.NewServer(toolkit.Options{Service: "tickets"})
		defer s.Close()
		skipped, err := doc.Add(s, openapi.Options{BaseURL: tt.base})
		got := ""
		for _, op := range skipped {
			got += op.Operation.ID + ": " + op.Why
		}
		if err != nil || got != tt.want {
			t.Errorf("%+v: skipped %q, %v", tt, got, err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for document, want := range map[string]string{
		"":                            "openapi:",
		"{}":                          "openapi:",
		`{"swagger":"2.0"}`:           "openapi:",
		strings.Repeat(" ", 16<<20+1): "more than",
		`{"openapi":"3.0.3","info":{"title":"x","version":"1"},"paths":{"/a":{"$ref":"http://127.0.0.1:1/x.yaml"}}}`:                                                                                                     "leads out of the document",
		`{"openapi":"3.0.3","info":{"title":"x","version":"1"},"paths":{"/a":{"get":{"parameters":[{"$ref":"/etc/passwd"}],"responses":{"200":{"description":"x"}}}}}}`:                                                  "leads out of the document",
		`{"openapi":"3.0.3","info":{"title":"x","version":"1"},"paths":{"/a":{"get":{"parameters":[{"name":"q","in":"query","schema":{"$ref":"#/components/schemas/none"}}],"responses":{"200":{"description":"x"}}}}}}`: "openapi:",
	} {
		if _, err := openapi.Load([]byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", document, err, want)
		}
	}
}

// TestRequires gives an operation a right.
func TestRequires(t *testing.T) {
	s := toolkit.NewServer(toolkit.Options{Service: "tickets"})
	defer s.Close()
	if _, err := load(t).Add(s, openapi.Options{BaseURL: "http://127.0.0.1:1", Configure: func(o openapi.Operation, tool *toolkit.Tool) {
		if o.Method != "GET" {
			tool.Requires = []string{"tickets:write"}
		}
	}}); err != nil {
		t.Fatal(err)
	}
	session, err := s.Client(toolkit.As(context.WithoutCancel(t.Context()), toolkit.Caller{User: "bob"}))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got, failed := call(t, session, "tickets_replace_ticket", `{"id":"1","body":{"id":"1"}}`); !failed || !strings.Contains(got, `needs the right "tickets:write"`) {
		t.Errorf("got %s", got)
	}
}
