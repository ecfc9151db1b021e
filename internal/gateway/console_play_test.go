package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
)

// asks sends a request of the playground as its page does, and returns the answer and the
// id of the request.
func (b *browser) asks(body, site string) (status int, answer, id string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), "POST", b.base+"/console/playground", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Sec-Fetch-Site": {site}, "Origin": {b.base}}
	if site != "same-origin" {
		req.Header.Set("Origin", "https://elsewhere.example")
	}
	status, answer, header := exchange(b.T, b.client, req)
	return status, answer, header.Get(RequestHeader)
}

func exchange(t *testing.T, c *http.Client, req *http.Request) (int, string, http.Header) {
	t.Helper()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text strings.Builder
	if err := res.Write(&text); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, text.String(), res.Header
}

// TestConsolePlayground: the playground asks models by the API's own way, as the person who
// is signed in, and shows what their client does not see: what the model was asked and
// wrote, and what became of its arguments. Nobody else sees it, but who has the right, and
// leaves a record.
func TestConsolePlayground(t *testing.T) {
	s := gated(t)
	key, keyID := apikey.New()
	watcher := apikey.Record{ID: keyID, Hash: apikey.Hash(key), User: "wes", Name: "wes", Rights: []string{"tool:*", "ops:live"}}
	s.change(func(all []apikey.Record) ([]apikey.Record, error) { return append(all, watcher), nil })
	ann, wes := newBrowser(t, s.url), newBrowser(t, s.url)
	if ann.signIn(s.ann) != 200 || wes.signIn(key) != 200 {
		t.Fatal("nobody is signed in")
	}
	ann.want("/console/playground", `data-server="demo"`, "calculate_sum", "data-keys")
	const sum = `{"model":"m","stream":true,"messages":[{"role":"user","content":"CALL calculate_sum {\"a\":\"2\",\"b\":3}\nTHEN\nSAY It is five."}]}`
	if status, answer, _ := ann.asks(sum, "cross-site"); status != 403 || strings.Contains(answer, "five") {
		t.Errorf("from another site: %d %s", status, answer)
	}
	status, answer, id := ann.asks(sum, "same-origin")
	if status != 200 || !strings.Contains(answer, "text/event-stream") || !strings.Contains(answer, "five") || id == "" {
		t.Fatalf("%d %s", status, answer)
	}
	page := ann.want("/console/live/of/"+id, "CALL calculate_sum", "what the model was asked", "as the model wrote them", `{&#34;a&#34;:&#34;2&#34;,&#34;b&#34;:3}`, "numberFromString /a", "functions,", "The client saw none of this", "→")
	if strings.Contains(page, s.ann) {
		t.Error("the key stands on the page")
	}
	if status, answer, _ := wes.asks(sum, "same-origin"); status != 403 {
		t.Errorf("a model that the person may not use: %d %s", status, answer)
	}
	if status, _ := wes.get("/console/live/of/" + id); status != 404 {
		t.Errorf("another's trace: %d", status)
	}
	list := wes.want("/console/live", "ann")
	run := list[strings.LastIndex(list, `href="/console/live/`)+len(`href="`):]
	run, _, _ = strings.Cut(run, `"`)
	wes.want(run, "as the model wrote them")
	eventually(t, "a record that wes looked", func() bool {
		found, err := s.audit().Find(t.Context(), audit.Filter{})
		return err == nil && slices.ContainsFunc(found, func(r audit.Record) bool { return r.Method == "console/live" && r.CallerName == "wes" })
	})
}
