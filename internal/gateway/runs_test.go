package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// keysOf returns keys of a file by name, with these rights.
func keysOf(t *testing.T, path string, grants map[string][]string) map[string]string {
	t.Helper()
	key := map[string]string{}
	for name, rights := range grants {
		made, id := apikey.New()
		key[name] = made
		if err := apikey.Add(path, apikey.Record{ID: id, Hash: apikey.Hash(made), User: name, Name: name, Rights: rights}); err != nil {
			t.Fatal(err)
		}
	}
	return key
}

const recordInBackground = `{"model":"rehearsal","background":true,"input":"Call demo__create_record with {\"table\":\"t\",\"data\":{\"a\":1}}"}`

// What runs in the background is seen and cancelled by whom it is, and by who has the
// right; for anybody else it is not there.
func TestOpsRuns(t *testing.T) {
	dir := t.TempDir()
	everyday := []string{"tool:*", "model:*", "route:*"}
	key := keysOf(t, filepath.Join(dir, "keys.jsonl"), map[string][]string{"ann": everyday, "bob": everyday, "olga": {"ops:runs"}})
	g := build(t, func(f *config.File) {
		f.Auth.KeysFile, f.Store.Path = filepath.Join(dir, "keys.jsonl"), filepath.Join(dir, "dragoman.db")
		f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "records", Ask: []string{"demo__create_record"}}}
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := serve(t, g)
	defer served.stop()
	if status, body := sent(t, key["ann"], "POST", served.url+"/v1/responses", recordInBackground); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	seen := func(who, query string) (all []run.Run, own bool) {
		status, body := sent(t, key[who], "GET", served.url+"/ops/runs"+query, "")
		var list struct {
			Data []run.Run
			Own  bool
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		return list.Data, list.Own
	}
	eventually(t, "it waits", func() bool { all, _ := seen("ann", "?state=waiting&limit=1"); return len(all) == 1 })
	all, own := seen("olga", "")
	if len(all) != 1 || own || all[0].Waits == "" {
		t.Fatalf("olga sees %+v, own %v", all, own)
	}
	at := served.url + "/ops/runs/" + all[0].ID
	if all, own := seen("bob", ""); len(all) != 0 || !own {
		t.Errorf("bob sees %+v, own %v", all, own)
	}
	for _, tt := range []struct {
		who, method, url string
		status           int
		words            string
	}{
		{"bob", "GET", at, http.StatusNotFound, "no such run"},
		{"bob", "GET", at + "/events", http.StatusNotFound, "no such run"},
		{"bob", "POST", at + "/cancel", http.StatusNotFound, "no such run"},
		{"ann", "GET", at, http.StatusOK, `"state":"waiting"`},
		{"ann", "GET", served.url + "/ops/runs?state=asleep", http.StatusBadRequest, "ready, running, waiting or done"},
		{"ann", "GET", served.url + "/ops/runs?limit=0", http.StatusBadRequest, "limit"},
		{"ann", "DELETE", at, http.StatusMethodNotAllowed, "cancel"},
		{"olga", "POST", at + "/cancel", http.StatusOK, `"outcome":"cancelled"`},
		{"olga", "POST", at + "/cancel", http.StatusOK, `"outcome":"cancelled"`},
		{"olga", "GET", at + "/events", http.StatusOK, "event: response.in_progress"},
		{"ann", "GET", served.url + "/v1/responses/" + all[0].ID, http.StatusOK, `"status":"cancelled"`},
		{"olga", "GET", served.url + "/v1/responses/" + all[0].ID, http.StatusForbidden, ""},
	} {
		if status, body := sent(t, key[tt.who], tt.method, tt.url, ""); status != tt.status || !strings.Contains(body, tt.words) {
			t.Errorf("%s %s %s: %d %s", tt.who, tt.method, tt.url, status, body)
		}
	}
}

// A gateway that a command makes for a moment takes no response in the background from
// those that serve.
func TestCommandsTakeNoRuns(t *testing.T) {
	dir := t.TempDir()
	make := func() *Gateway {
		return build(t, func(f *config.File) { f.Store.Path = filepath.Join(dir, "dragoman.db") })
	}
	g := make()
	for _, id := range []string{"a", "b"} {
		held, err := g.background.runs.Begin(t.Context(), run.New{Owner: "local", ID: id, Document: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	second := make()
	if err := second.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second.background.cancel != nil {
		t.Error("it looks after runs")
	}
	served := serve(t, second)
	defer served.stop()
	eventually(t, "one that serves takes them", func() bool {
		all, err := second.background.runs.List(context.Background(), run.Filter{State: run.Done})
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == 2
	})
}

// A gateway that is stopped lets what runs in the background come to its end.
func TestBackgroundDrains(t *testing.T) {
	dir := t.TempDir()
	g := build(t, func(f *config.File) { f.Store.Path = filepath.Join(dir, "dragoman.db") })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := serve(t, g)
	if status, body := sent(t, "", "POST", served.url+"/v1/responses", `{"model":"rehearsal:slow-stream","background":true,"input":"SAY `+strings.Repeat("word ", 10)+`"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	served.stop()
	<-served.done
	all, err := g.background.runs.List(context.Background(), run.Filter{})
	if err != nil || len(all) != 1 || all[0].Outcome != run.Completed {
		t.Errorf("%+v, %v", all, err)
	}
}

// Without a store a response in the background is made as well, and ends with the process.
func TestBackgroundInMemory(t *testing.T) {
	g := build(t, nil)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g.ledger != nil {
		t.Fatal("it has a store")
	}
	served := serve(t, g)
	_, body := sent(t, "", "POST", served.url+"/v1/responses", `{"model":"rehearsal","background":true,"input":"Call demo__create_record with {\"table\":\"t\",\"data\":{\"a\":1}}"}`)
	o, err := rawjson.ParseObject([]byte(body))
	if err != nil {
		t.Fatalf("%s", body)
	}
	id, _ := rawjson.String(o.Get("id"))
	_, events := sent(t, "", "GET", served.url+"/v1/responses/"+id+"?stream=true", "")
	for _, want := range []string{"response.queued", "response.mcp_call.completed", "response.completed", "data: [DONE]"} {
		if !strings.Contains(events, want) {
			t.Errorf("no %s: %s", want, events)
		}
	}
	if _, body := sent(t, "", "GET", served.url+"/v1/responses/"+id, ""); !strings.Contains(body, `"status":"completed"`) {
		t.Errorf("%s", body)
	}
	served.stop()
	<-served.done
}
