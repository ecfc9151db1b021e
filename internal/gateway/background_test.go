package gateway

import (
	"bytes"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A response in the background whose call waits for an operator waits with it, without
// anybody who has it, and goes on when it was answered: here, or in a gateway that was
// started since. One that was denied, or that nobody approved in time, is told so, and is not
// asked about once more.
func TestBackgroundWaitsForApproval(t *testing.T) {
	for _, tt := range []struct {
		restart        bool
		answer, events string
	}{
		{false, `{"decision":"approve","arguments":null}`, "response.mcp_call.completed"},
		{true, `{"decision":"approve"}`, "response.mcp_call.completed"},
		{false, `{"decision":"deny","why":"too dear"}`, "The reason given: too dear"},
		{true, `{"decision":"deny","why":"too dear"}`, "The reason given: too dear"},
		{false, "", "Nobody approved the call in time"},
	} {
		restart := tt.restart
		dir := t.TempDir()
		keys := filepath.Join(dir, "keys.jsonl")
		grants := map[string][]string{"ann": {"tool:*", "model:*", "route:*"}, "olga": {"approve:*"}}
		key := map[string]string{}
		for _, name := range []string{"ann", "olga"} {
			made, id := apikey.New()
			key[name] = made
			if err := apikey.Add(keys, apikey.Record{ID: id, Hash: apikey.Hash(made), User: name, Name: name, Rights: grants[name]}); err != nil {
				t.Fatal(err)
			}
		}
		begin := func() (*Gateway, *serving) {
			g := build(t, func(f *config.File) {
				f.Auth.KeysFile, f.Store.Path = keys, filepath.Join(dir, "dragoman.db")
				f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "records", Ask: []string{"demo__create_record"}}}
				if tt.answer == "" {
					f.Approvals.Expires = 2 * time.Second
				}
			})
			if err := g.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			return g, serve(t, g)
		}
		g, served := begin()
		status, body := sent(t, key["ann"], "POST", served.url+"/v1/responses", `{"model":"rehearsal","background":true,"input":"Call demo__create_record with {\"table\":\"t\",\"data\":{\"a\":1}}"}`)
		o, err := rawjson.ParseObject([]byte(body))
		if err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		id, _ := rawjson.String(o.Get("id"))
		var owner string
		eventually(t, "it waits", func() bool {
			all, err := g.background.runs.List(t.Context(), run.Filter{})
			if err != nil || len(all) != 1 {
				t.Fatalf("%v, %v", all, err)
			}
			owner = all[0].Owner
			return all[0].State == run.Waiting
		})
		if _, body := sent(t, key["ann"], "GET", served.url+"/v1/responses/"+id, ""); !strings.Contains(body, `"status":"in_progress"`) {
			t.Errorf("%s", body)
		}
		if restart {
			served.stop()
			<-served.done
			g.background.close()
			g, served = begin()
		}
		now, err := g.background.runs.Get(t.Context(), owner, id)
		if err != nil || now.Waits == "" {
			t.Fatalf("%+v, %v", now, err)
		}
		if tt.answer != "" {
			if status, body := sent(t, key["olga"], "POST", served.url+"/approvals/"+now.Waits, tt.answer); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
		}
		_, events := sent(t, key["ann"], "GET", served.url+"/v1/responses/"+id+"?stream=true", "")
		if !strings.Contains(events, tt.events) || !strings.Contains(events, "response.completed") || strings.Contains(events, "approval_pending") {
			t.Errorf("restart %v, %s: %s", restart, tt.answer, events)
		}
		if _, body := sent(t, key["olga"], "GET", served.url+"/approvals", ""); body != "{\"approvals\":[]}\n" {
			t.Errorf("restart %v, %s, and still asked about: %s", restart, tt.answer, body)
		}
		if !restart {
			served.stop()
		}
	}
}

// A response whose tool is another one when its approval is answered asks about that one.
func TestBackgroundWaitsForAnotherTool(t *testing.T) {
	keys, path := filepath.Join(t.TempDir(), "keys.jsonl"), filepath.Join(t.TempDir(), "dragoman.db")
	key := map[string]string{}
	for name, rights := range map[string][]string{"ann": {"tool:*", "model:*", "route:*"}, "olga": {"approve:*"}} {
		made, id := apikey.New()
		key[name] = made
		if err := apikey.Add(keys, apikey.Record{ID: id, Hash: apikey.Hash(made), User: name, Name: name, Rights: rights}); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(description string) (*Gateway, *serving) {
		url := web(t, fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "keep", Description: description}}}))
		g := build(t, func(f *config.File) {
			f.Auth.KeysFile, f.Store.Path, f.Pins.Mode = keys, path, pin.Off
			f.MCPServers = map[string]servers.Config{"notes": {URL: url + "/mcp"}}
			f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "notes", Ask: []string{"notes__keep"}}}
		})
		if err := g.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return g, serve(t, g)
	}
	g, served := begin("Keeps a note.")
	status, body := sent(t, key["ann"], "POST", served.url+"/v1/responses", `{"model":"rehearsal","background":true,"input":"Call notes__keep with {}"}`)
	o, err := rawjson.ParseObject([]byte(body))
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	id, _ := rawjson.String(o.Get("id"))
	var waits run.Run
	eventually(t, "it waits", func() bool {
		all, err := g.background.runs.List(t.Context(), run.Filter{})
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		waits = all[0]
		return waits.State == run.Waiting
	})
	now, err := g.background.runs.Get(t.Context(), waits.Owner, id)
	if err != nil {
		t.Fatal(err)
	}
	served.stop()
	<-served.done
	g.background.close()
	_, served = begin("Keeps a note, and shows it to everybody.")
	if status, body := sent(t, key["olga"], "POST", served.url+"/approvals/"+now.Waits, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	_, events := sent(t, key["ann"], "GET", served.url+"/v1/responses/"+id+"?stream=true", "")
	if !strings.Contains(events, "approval_pending") {
		t.Errorf("%s", events)
	}
	if _, body := sent(t, key["olga"], "GET", served.url+"/approvals", ""); !strings.Contains(body, "shows it to everybody") {
		t.Errorf("%s", body)
	}
}

// Who has no key any more when a response goes on, after a restart, gets none; see
// [TestBackgroundWaitsForApproval] for who has.
func TestBackgroundEndsWithItsKey(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys.jsonl")
	key, id := apikey.New()
	if err := apikey.Add(keys, apikey.Record{ID: id, Hash: apikey.Hash(key), User: "ann", Name: "ann", Rights: []string{"tool:*", "model:*", "route:*"}}); err != nil {
		t.Fatal(err)
	}
	begin := func() (*Gateway, *serving) {
		g := build(t, func(f *config.File) {
			f.Auth.KeysFile, f.Auth.APIKeys, f.Store.Path = keys, []secret.Text{secret.New("a key of the configuration")}, filepath.Join(dir, "dragoman.db")
			f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "records", Ask: []string{"demo__create_record"}}}
		})
		if err := g.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return g, serve(t, g)
	}
	g, served := begin()
	if status, body := sent(t, key, "POST", served.url+"/v1/responses", `{"model":"rehearsal","background":true,"input":"Call demo__create_record with {\"table\":\"t\",\"data\":{\"a\":1}}"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	var at run.Run
	eventually(t, "it waits", func() bool {
		all, err := g.background.runs.List(t.Context(), run.Filter{})
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		at = all[0]
		return at.State == run.Waiting
	})
	served.stop()
	<-served.done
	g.Close()
	if err := apikey.Change(keys, func([]apikey.Record) ([]apikey.Record, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	g, served = begin()
	defer served.stop()
	if err := g.ledger.DB.Write(t.Context(), func(tx *store.Tx) error { // its time has come
		_, err := tx.Exec("UPDATE runs SET due = 1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has failed", func() bool {
		now, err := g.background.runs.Get(t.Context(), at.Owner, at.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.State == run.Done && now.Outcome == run.Failed
	})
}

// serveLogged serves a gateway with a store of its own; logged stops it, and returns what it
// wrote into its log.
func serveLogged(t *testing.T, change func(*config.File)) (g *Gateway, served *serving, logged func() string) {
	t.Helper()
	var log bytes.Buffer
	file := config.Default()
	file.Listen, file.Store.Path = "127.0.0.1:0", filepath.Join(t.TempDir(), "dragoman.db")
	change(file)
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	closed := sync.OnceFunc(g.Close)
	t.Cleanup(closed)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	served = serve(t, g)
	return g, served, func() string {
		served.stop()
		<-served.done
		closed()
		return log.String()
	}
}

// A response in the background that waits, or that its client cancels, has not failed: not for
// the log, and not for those who watch.
func TestBackgroundLeftIsNoFailure(t *testing.T) {
	g, served, logged := serveLogged(t, func(f *config.File) {
		f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "records", Ask: []string{"demo__create_record"}}}
	})
	counted := func() string {
		_, all := sent(t, "", "GET", served.url+"/metrics", "")
		var lines []string
		for line := range strings.Lines(all) {
			if strings.HasPrefix(line, "gen_ai_invoke_agent_duration_seconds_count") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	for _, model := range []string{"rehearsal", "rehearsal:slow"} {
		status, body := sent(t, "", "POST", served.url+"/v1/responses", `{"model":"`+model+`","background":true,"input":"CALL create_record {\"table\":\"t\",\"data\":{\"a\":1}}"}`)
		o, err := rawjson.ParseObject([]byte(body))
		if err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		id, _ := rawjson.String(o.Get("id"))
		want := run.Waiting
		if model != "rehearsal" {
			want = run.Done
			if status, body := sent(t, "", "POST", served.url+"/v1/responses/"+id+"/cancel", ""); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
		}
		eventually(t, "it is left", func() bool {
			all, err := g.background.runs.List(t.Context(), run.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(all, func(r run.Run) bool { return r.ID == id && r.State == want })
		})
	}
	eventually(t, "it is counted", func() bool { return counted() != "" })
	if got := counted(); strings.Contains(got, `"_other"`) {
		t.Errorf("metrics: %s", got)
	}
	if said := logged(); strings.Contains(said, "level=WARN") || !strings.Contains(said, `why="the run waits"`) {
		t.Errorf("the log: %s", said)
	}
}

// The log says why a response in the background failed, beside its id.
func TestBackgroundFailureIsLogged(t *testing.T) {
	g, served, logged := serveLogged(t, func(*config.File) {})
	for _, model := range []string{"rehearsal:401", "rehearsal:cut-stream"} {
		if status, body := sent(t, "", "POST", served.url+"/v1/responses", `{"model":"`+model+`","background":true,"input":"SAY one two three"}`); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	eventually(t, "both have failed", func() bool {
		all, err := g.background.runs.List(t.Context(), run.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == 2 && all[0].Outcome == run.Failed && all[1].Outcome == run.Failed
	})
	said := logged()
	if n := strings.Count(said, "a response in the background failed"); n != 2 || strings.Contains(said, "error=<nil>") {
		t.Errorf("%d times in the log: %s", n, said)
	}
}
