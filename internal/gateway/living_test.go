package gateway

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// What a section says counts after a reload, and what it said before does after the next
// one. A probe says what can be seen of it.
func TestReloadSections(t *testing.T) {
	at := web(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "other"}}}))
	store := filepath.Join(t.TempDir(), "store.db")
	const key = "a key for a test 5Zq"
	status := func(l *living, key, method, path, body string) string {
		code, _ := sent(t, key, method, l.url+path, body)
		return fmt.Sprint(code)
	}
	chat := `{"model":"rehearsal","messages":[{"role":"user","content":"SAY x"}]}`
	long := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 3000) + `"}}`
	listed := func(l *living, name string) string {
		s, err := newStranger(t.Context(), l.url+"/mcp", mcp.Legacy, http.DefaultClient)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.post(t.Context(), `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "tools/list", "")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(strings.Contains(string(body), `"name":"`+name+`"`))
	}
	for _, tt := range []struct {
		section, before, after string
		probe                  func(l *living) string
		was, is                string
	}{
		{"limits", "", `limits: [{of: ["model:*"], rate: 1/h}]`, func(l *living) string {
			return status(l, "", "POST", "/v1/chat/completions", chat) + " " + status(l, "", "POST", "/v1/chat/completions", chat)
		}, "200 200", "200 429"},
		{"mcp.search", "", "mcp: {search: always}", func(l *living) string { return listed(l, "find_tools") }, "false", "true"},
		{"http.max_body", "", "http: {max_body: 1KiB}", func(l *living) string {
			return status(l, "", "POST", "/v1/chat/completions", strings.Replace(chat, "SAY x", "SAY "+strings.Repeat("x", 3000), 1)) + " " +
				status(l, "", "POST", "/mcp", long)
		}, "200 400", "413 413"},
		{"auth", "", "auth: {api_keys: ['" + key + "']}", func(l *living) string {
			return status(l, "", "GET", "/v1/models", "") + " " + status(l, key, "GET", "/v1/models", "")
		}, "200 200", "401 200"},
	} {
		t.Run(tt.section, func(t *testing.T) {
			file := func(more string) string {
				return "listen: 127.0.0.1:0\nstore: {path: " + store + "}\nmodels: [{match: '*', base_url: http://rehearsal.invalid/v1}]\n" + more + "\nmcpServers:\n" + server("a", at)
			}
			l := live(t, file(tt.before))
			l.T = t
			if got := tt.probe(l); got != tt.was {
				t.Errorf("before: %s", got)
			}
			l.reload(file(tt.after))
			if got := tt.probe(l); got != tt.is {
				t.Errorf("after: %s", got)
			}
			l.reload(file(tt.before))
			want := tt.was
			if tt.section == "auth" {
				want = "401 401" // the last key opens nothing
			}
			if got := tt.probe(l); got != want {
				t.Errorf("as before: %s", got)
			}
		})
	}
}

// A call that waits for somebody's approval is denied within two seconds where a reload
// takes the right away, and waits on where it does not.
func TestReloadEndsAWaitingApproval(t *testing.T) {
	at := web(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}}))
	store := filepath.Join(t.TempDir(), "store.db")
	file := func(rule string) string {
		return "listen: 127.0.0.1:0\nstore: {path: " + store + "}\nmodels: [{match: '*', base_url: http://rehearsal.invalid/v1}]\npolicy: [{allow: ['*']}, {ask: ['a__echo']}" + rule + "]\nmcpServers:\n" + server("a", at)
	}
	l := live(t, file(""))
	answered := make(chan string, 1)
	go func() {
		_, body := sent(t, "", "POST", l.url+"/v1/chat/completions", `{"model":"rehearsal","stream":true,"messages":[{"role":"user","content":"CALL echo {}\nTHEN\nSAY done"}]}`)
		answered <- body
	}()
	waits := func() bool {
		all, err := l.inbox().List(t.Context(), approval.Filter{State: approval.Pending})
		return err == nil && len(all) == 1
	}
	eventually(t, "a call waits", waits)
	l.reload(file(", {deny: ['a__none']}"))
	select {
	case body := <-answered:
		t.Fatalf("another right was taken away, and it ended: %s", body)
	case <-time.After(300 * time.Millisecond):
	}
	start := time.Now()
	l.reload(file(", {deny: ['a__echo']}"))
	if body := <-answered; !strings.Contains(body, "[DONE]") {
		t.Errorf("the stream is %s", body)
	}
	if took := time.Since(start); took > 20*time.Second { // on a machine with nothing else to do, milliseconds
		t.Errorf("after %s", took)
	}
}

// With watch a file that changed is read again, through the links of a ConfigMap, and so
// is the file of policies that it names; what is wrong leaves all as it is, and stops to
// be said when it is put right.
func TestWatch(t *testing.T) {
	folder := t.TempDir()
	at := web(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}}))
	swap := func(version, text string) {
		t.Helper()
		dir := filepath.Join(folder, version)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "dragoman.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		next := filepath.Join(folder, "..next")
		if err := os.Symlink(version, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(folder, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	rules := filepath.Join(folder, "rules.cedar")
	policy := func(text string) {
		t.Helper()
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(more string) string {
		return "listen: 127.0.0.1:0\nwatch: true\nstore: {path: " + filepath.Join(folder, "store.db") + "}\npolicy_file: " + rules + "\n" + more + "mcpServers:\n" + server("a", at)
	}
	policy("permit (principal, action, resource);")
	swap("one", file(""))
	l := &living{T: t, path: filepath.Join(folder, "dragoman.yaml")}
	if err := os.Symlink(filepath.Join("..data", "dragoman.yaml"), l.path); err != nil {
		t.Fatal(err)
	}
	l.begin()
	hosts := func() []string { return l.now.Load().file.AllowedHosts }
	swap("two", file("allowed_hosts: [two]\n"))
	eventually(t, "the other version counts", func() bool { return slices.Equal(hosts(), []string{"two"}) })
	swap("three", "allowed_hosts: [")
	eventually(t, "the wrong one is said", func() bool { return l.refused.Load() != nil })
	swap("four", file("allowed_hosts: [two]\n"))
	eventually(t, "the right one is not", func() bool { return l.refused.Load() == nil })
	before := string(l.now.Load().rules.Cedar())
	policy("permit (principal, action, resource);\nforbid (principal, action, resource == Tool::\"a__x\");")
	eventually(t, "the other rules count", func() bool { return string(l.now.Load().rules.Cedar()) != before })
}

// A file that is being written is not read: it has to be as it was at the look before.
func TestFollowerSettles(t *testing.T) {
	sum := func(text string) map[string][32]byte { return map[string][32]byte{"f": {text[0]}} }
	f := &follower{}
	for i, tt := range []struct {
		text     string
		inEffect bool
		want     bool
	}{{"a", true, false}, {"a", true, false}, {"b", false, false}, {"c", false, false}, {"c", false, true}, {"c", false, false}, {"d", false, false}, {"d", false, true}} {
		now := sums(nil)
		for path, s := range sum(tt.text) {
			now[path] = s
		}
		if got := f.settled(now, tt.inEffect); got != tt.want {
			t.Errorf("look %d: %t", i, got)
		} else if got {
			f.done = now
		}
	}
}
