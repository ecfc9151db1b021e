package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// A client goes on with another model, whose API cannot read what the first one thought: the
// model is told so, once, and knows all the same what tools of ours said that the client did
// not see. So does the first model of what was said by the second one.
func TestModelSwitchedBehindThoughts(t *testing.T) {
	native := &fakeresponses.API{}
	first := httptest.NewServer(native)
	t.Cleanup(first.Close)
	var asked string
	model := &rehearsal.Model{}
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked, r.Body = string(body), io.NopCloser(strings.NewReader(string(body)))
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(second.Close)
	d := open(t, nil,
		upstream.Model{Match: "native", BaseURL: first.URL + "/v1", Wires: []string{"responses"}, Dialect: "openai"},
		upstream.Model{Match: "*", BaseURL: second.URL + "/v1", Wires: []string{"chat"}})
	ask := func(model, input string) {
		t.Helper()
		a := d.do("POST", "/v1/responses", `{"model":"`+model+`","store":false,"prompt_cache_key":"thread","input":[`+input+`]}`)
		if a.status != http.StatusOK {
			t.Fatalf("%d %s, refused %q", a.status, a.body, native.Refused())
		}
	}
	const (
		weather = `{"role":"user","content":"Weather?"}`
		cold    = `{"role":"assistant","content":[{"type":"output_text","text":"It is cold."}]}`
		there   = `{"role":"user","content":"SAY Here.\nCALL weather__get {\"city\":\"Rome\"}\nTHEN\nSAY It is warm."}`
		warm    = `{"role":"assistant","content":[{"type":"output_text","text":"Here."}]},{"role":"assistant","content":[{"type":"output_text","text":"It is warm."}]}`
		thanks  = `{"role":"user","content":"SAY Thanks."}`
	)
	native.Say(said(thoughtItem, getItem), said(coldItem), said(coldItem))
	ask("native", weather)
	told := weather + "," + thoughtItem + "," + cold + "," + there
	ask("another", told)
	note := strings.Index(asked, "by another provider")
	if strings.Count(asked, `"tool_call_id"`) != 2 || strings.Count(asked, "by another provider") != 1 || note > strings.Index(asked, `"tool_call_id"`) || note < strings.Index(asked, "Weather?") {
		t.Errorf("the second model is asked %s", asked)
	}
	native.Asked()
	ask("native", told+","+warm+","+thanks)
	if all := native.Asked(); len(all) != 1 || strings.Count(string(all[0]), `"function_call_output"`) != 2 {
		t.Errorf("the first model is asked %s", all)
	}
}
