package hosted

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

var search = Search{Server: "search", Original: "web", Query: "q", Results: "/answer/hits", URL: "link", Title: "name", Text: "words"}

func shaped(content string, wanted Wanted) string {
	res := search.Shape(dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(content)}, wanted)
	if res.Failed {
		return "failed"
	}
	return string(res.Content)
}

// What a tool answers becomes pages, wherever they stand in it.
func TestShape(t *testing.T) {
	const one = `{"content":[],"structuredContent":{"results":[{"url":"https://a.example/x","title":"A","text":"a b"}]}}`
	const hits = `{"answer":{"hits":[{"link":"https://a.example/x","name":"A","words":"a b","rank":3}]}}`
	for name, tc := range map[string]struct{ content, want string }{
		"structured":           {`{"content":[],"structuredContent":` + hits + `}`, one},
		"in a text":            {`{"content":[{"type":"text","text":"found:"},{"type":"text","text":` + string(rawjson.Quote(hits)) + `}]}`, one},
		"none":                 {`{"structuredContent":{"answer":{"hits":[]}}}`, `{"content":[],"structuredContent":{"results":[]}}`},
		"no pages":             {`{"structuredContent":{"answer":{"hits":{"a":1}}}}`, ""},
		"elsewhere":            {`{"structuredContent":{"hits":[]}}`, ""},
		"words":                {`{"content":[{"type":"text","text":"Cats: https://cats.example"}]}`, ""},
		"a page of no address": {`{"structuredContent":{"answer":{"hits":[{"link":"javascript:alert(1)","name":"A"}]}}}`, ""},
		"not an object":        {`{"structuredContent":{"answer":{"hits":["https://a.example/"]}}}`, ""},
	} {
		want := tc.want
		if want == "" {
			want = tc.content // as it came
		}
		if got := shaped(tc.content, Wanted{}); got != want {
			t.Errorf("%s: %s", name, got)
		}
		if tc.want == "" && shaped(tc.content, Wanted{Allowed: []string{"a.example"}}) != "failed" {
			t.Errorf("%s: pages that nobody can tell apart reach a client that wants some only", name)
		}
	}
	failed := dragoman.Result{Failed: true, Content: json.RawMessage(`{"isError":true}`)}
	if got := search.Shape(failed, Wanted{}); !got.Failed || string(got.Content) != `{"isError":true}` {
		t.Errorf("a failed call became %s", got.Content)
	}
}

// A pointer is RFC 6901's.
func TestPointers(t *testing.T) {
	const document = `{"a/b":[{"c~d":1},2],"":3}`
	for pointer, want := range map[string]string{
		"": document, "/a~1b/0/c~0d": "1", "/a~1b/1": "2", "/": "3", "/a~1b/2": "", "/a~1b/-1": "", "/a~1b/x": "", "/none": "", "/a~1b/1/x": "",
	} {
		if got := at(json.RawMessage(document), pointer); string(got) != want {
			t.Errorf("%q: %s, want %s", pointer, got, want)
		}
	}
}

// A client's sites are a rule: a page of no such site reaches neither it nor the model.
func TestSites(t *testing.T) {
	var hits []string
	for _, u := range []string{"https://a.example/", "https://www.a.example/blog/1", "https://A.example:8443/blog", "https://nota.example/", "https://b.example/a.example", "https://a.example.evil/"} {
		hits = append(hits, `{"link":"`+u+`"}`)
	}
	content := `{"structuredContent":{"answer":{"hits":[` + strings.Join(hits, ",") + `]}}}`
	for name, tc := range map[string]struct {
		wanted Wanted
		want   string
	}{
		"all":     {Wanted{}, "https://a.example/ https://www.a.example/blog/1 https://A.example:8443/blog https://nota.example/ https://b.example/a.example https://a.example.evil/"},
		"allowed": {Wanted{Allowed: []string{"A.example"}}, "https://a.example/ https://www.a.example/blog/1 https://A.example:8443/blog"},
		"a path":  {Wanted{Allowed: []string{"a.example/blog/"}}, "https://www.a.example/blog/1 https://A.example:8443/blog"},
		"blocked": {Wanted{Blocked: []string{"a.example", "b.example"}}, "https://nota.example/ https://a.example.evil/"},
		"both":    {Wanted{Allowed: []string{"a.example"}, Blocked: []string{"www.a.example"}}, "https://a.example/ https://A.example:8443/blog"},
	} {
		var got []string
		for _, r := range Results(json.RawMessage(shaped(content, tc.wanted))) {
			got = append(got, r.URL)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a client says of its searches is read in the words of both APIs, and strictly.
func TestRead(t *testing.T) {
	for entry, want := range map[string]string{
		`{}`:                             `{"Most":0,"Allowed":null,"Blocked":null}`,
		`{"max_uses":3,"filters":null}`:  `{"Most":3,"Allowed":null,"Blocked":null}`,
		`{"blocked_domains":["b.test"]}`: `{"Most":0,"Allowed":null,"Blocked":["b.test"]}`,
		`{"allowed_domains":[]}`:         `{"Most":0,"Allowed":null,"Blocked":null}`,
		`{"filters":{"allowed_domains":["a.test/x"]},"search_context_size":"low","user_location":{"type":"approximate"}}`: `{"Most":0,"Allowed":["a.test/x"],"Blocked":null}`,
		`{"max_uses":0}`:                               "tools[1].max_uses",
		`{"max_uses":"3"}`:                             "tools[1].max_uses",
		`{"filters":[]}`:                               "tools[1].filters",
		`{"filters":{"allowed_domains":"a"}}`:          "tools[1].filters.allowed_domains",
		`{"allowed_domains":["https://a.test"]}`:       "tools[1].allowed_domains",
		`{"allowed_domains":["*.a.test"]}`:             "tools[1].allowed_domains",
		`{"filters":{"blocked_domains":["a.test",1]}}`: "tools[1].filters.blocked_domains",
	} {
		o, err := rawjson.ParseObject(json.RawMessage(entry))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		w, err := Read(o, "tools[1]")
		if e, ok := errors.AsType[*model.Error](err); ok {
			got = e.Param
		} else {
			document, _ := json.Marshal(w)
			got = string(document)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", entry, got, want)
		}
	}
}

// The tool that a model is offered is in order, and changes what the one behind it does.
func TestTool(t *testing.T) {
	does := dragoman.Tool{Server: "search", Original: "web", Declared: dragoman.ReadOnly, Pin: [32]byte{1}}
	tool := search.Tool(&does, "web_search_2")
	if tool.Quarantined != nil || tool.Name != "web_search_2" || !Is(&tool) || Is(&does) || Is(nil) || !search.Does(&does) || search.Does(&tool) || (Search{}).Does(&dragoman.Tool{}) {
		t.Errorf("%+v", tool)
	}
	if tool.Effect() != dragoman.ReadOnly || tool.Pin != does.Pin {
		t.Errorf("it is %v, with the pin %x", tool.Effect(), tool.Pin)
	}
	if got := string(search.Arguments(Query(json.RawMessage(`{"query":"a \"b\""}`)))); got != `{"q":"a \"b\""}` {
		t.Error(got)
	}
	if Query(nil) != "" {
		t.Error("no arguments search for something")
	}
}
