package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// TestPassedOnIsShown: a request that goes on to a model's API as it is stands under Live as
// others do: what was asked, the beginning of the answer, its tokens and its failure.
func TestPassedOnIsShown(t *testing.T) {
	model := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "too much") {
			http.Error(w, `{"type":"error","error":{"type":"overloaded_error","message":"no"}}`, 529)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Good day to you."}],"stop_reason":"end_turn","usage":{"input_tokens":41,"output_tokens":17}}`)
	}))
	s := gatedBy(t, func(f *config.File) {
		f.Models = []upstream.Model{{Match: "*", BaseURL: model + "/v1", Wires: []string{"chat", "messages"}}}
	})
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		for i := range all {
			all[i].Rights = append(all[i].Rights, "model:*", "route:*")
		}
		return all, nil
	})
	ann, bob := newBrowser(t, s.url), newBrowser(t, s.url)
	if ann.signIn(s.ann) != 200 || bob.signIn(s.bob) != 200 {
		t.Fatal("nobody is signed in")
	}
	ann.want("/console/live") // she watches from now on
	ask := func(text string) (id string) {
		req, _ := http.NewRequest("POST", s.url+"/v1/messages", strings.NewReader(`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"`+text+`"}]}`))
		req.Header.Set("Authorization", "Bearer "+s.ann)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		if res.Header.Get("X-Dragoman-Wire") != "" && !strings.Contains(string(body), "day") && res.StatusCode != 529 {
			t.Fatalf("%s %s", res.Status, body)
		}
		return res.Header.Get(RequestHeader)
	}
	fine, busy := ask("A greeting, please."), ask("too much")
	settled(t, s.Gateway)
	ann.want("/console/live/of/"+fine, "A greeting, please.", "Good day to you.", "41 → 17 tokens", "went on to the model", "messages")
	ann.want("/console/live/of/"+busy, "too much", `<span class="bad">529</span>`)
	if status, _ := bob.get("/console/live/of/" + fine); status != 404 {
		t.Errorf("another's: %d", status)
	}
	if list := bob.want("/console/live"); strings.Contains(list, "messages") {
		t.Error("bob is shown what ann did")
	}
}
