package gateway

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/state/captured"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

const asksForASum = `{"model":"m","user":"tom","messages":[{"role":"user","content":"CALL calculate_sum {\"a\":\"2\",\"b\":3}\nTHEN\nSAY It is five."}]}`

// keptAddress finds the page of a conversation that is kept, on the page Live.
var keptAddress = regexp.MustCompile(`href="(/console/live/[A-Z2-7]{20,})"`)

// keptOf waits until a browser is shown a conversation that was kept, and returns its page.
func keptOf(b *browser) (page string) {
	b.Helper()
	eventually(b.T, "a conversation that is kept", func() bool {
		_, list := b.get("/console/live")
		found := keptAddress.FindStringSubmatch(list)
		if found != nil {
			page = found[1]
		}
		return found != nil
	})
	return page
}

// TestCaptures: where it is wanted, conversations are kept once they are over, for the next
// process too; each sees their own, who has the right sees all and leaves a record, and who
// is erased is erased here as well.
func TestCaptures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dragoman.db")
	keep := func(f *config.File) { f.Store.Path, f.Capture.Keep = file, captured.On }
	first := gatedBy(t, keep)
	if status, body := first.do(first.ann, "POST", "/v1/chat/completions", asksForASum); status != 200 {
		t.Fatal(body)
	}
	// Another process on the same store has nothing of it in memory.
	s := gatedBy(t, func(f *config.File) { keep(f); f.Auth.KeysFile = first.path })
	s.ann, s.bob, s.path = first.ann, first.bob, first.path
	key, id := apikey.New()
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		return append(all, apikey.Record{ID: id, Hash: apikey.Hash(key), User: "wes", Name: "wes", Rights: []string{"ops:live"}}), nil
	})
	ann, bob, wes := newBrowser(t, s.url), newBrowser(t, s.url), newBrowser(t, s.url)
	for b, key := range map[*browser]string{ann: s.ann, bob: s.bob, wes: key} {
		if status := b.signIn(key); status != 200 {
			t.Fatalf("signing in: %d", status)
		}
	}
	page := keptOf(ann)
	ann.want(page, "CALL calculate_sum", "as the model wrote them", `{&#34;a&#34;:&#34;2&#34;,&#34;b&#34;:3}`, "numberFromString /a", "It is five.")
	if list := bob.want("/console/live", "What is over is kept"); keptAddress.MatchString(list) || strings.Contains(list, "calculate_sum") {
		t.Error("bob is shown what ann did")
	}
	if status, body := bob.get(page); status != 404 || strings.Contains(body, "five") {
		t.Errorf("bob reads it: %d", status)
	}
	looked := func() bool {
		found, err := s.audit().Find(t.Context(), audit.Filter{})
		return err == nil && slices.ContainsFunc(found, func(r audit.Record) bool { return r.Method == "console/live" && r.CallerName == "wes" })
	}
	wes.want("/console/live", page, "calculate_sum", "ann")
	if looked() {
		t.Error("a list is taken for reading")
	}
	wes.want(page, "It is five.")
	eventually(t, "a record that wes looked", looked)

	if _, err := keeping.Erase(t.Context(), s.ledger.DB, keeping.Whose{User: "tom"}); err != nil {
		t.Fatal(err)
	}
	if status, _ := ann.get(page); status != 404 {
		t.Errorf("erased, and yet: %d", status)
	}
}

// TestCapturesHideWhatAReloadBrought: a secret that the configuration has got since the start
// is hidden in what is kept, and so is the one in whose place it came.
func TestCapturesHideWhatAReloadBrought(t *testing.T) {
	file := func(key string) string {
		return "listen: 127.0.0.1:0\nstore: {path: " + filepath.Join(t.TempDir(), "dragoman.db") + "}\nmodels: [{match: far, base_url: 'http://far.test/v1', api_key: " + key + "}, {base_url: 'http://rehearsal.invalid/v1'}]\n"
	}
	first := file("first-secret-of-far")
	l := live(t, first)
	l.reload(strings.Replace(first, "first-secret-of-far", "second-secret-of-far", 1))
	if status, body := sent(t, "", "POST", l.url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"SAY first-secret-of-far, then second-secret-of-far."}]}`); status != 200 {
		t.Fatal(body)
	}
	settled(t, l.Gateway)
	kept, err := l.captures.List(t.Context(), "", time.Now().Add(time.Hour), 1)
	if err != nil || len(kept) != 1 {
		t.Fatalf("%d are kept, %v", len(kept), err)
	}
	run, _, err := l.captures.Get(t.Context(), "", kept[0].Key)
	if text := fmt.Sprintf("%+v", run); err != nil || strings.Contains(text, "secret-of-far") {
		t.Errorf("%v, kept as it was said: %s", err, text)
	}
}

// settled waits until no request is being answered and what was given to be kept is.
func settled(t *testing.T, g *Gateway) {
	t.Helper()
	eventually(t, "the end of all requests", func() bool { return g.open.Load() == 0 })
	if err := g.ledger.DB.Write(t.Context(), func(*store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestCapturesAreWanted: without a word about it nothing is kept where callers have keys, and
// everything where they have none; names choose, and off is off.
func TestCapturesAreWanted(t *testing.T) {
	count := func(g *Gateway) (n int) {
		all, err := g.captures.kept.List(t.Context(), "", time.Now().Add(time.Hour), 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	for name, test := range map[string]struct {
		config captured.Config
		want   int
	}{
		"auto": {captured.Config{Keep: captured.Auto}, 0}, "off": {captured.Config{Keep: captured.Off}, 0}, "on": {captured.Config{Keep: captured.On}, 1},
		"ann's": {captured.Config{Keep: captured.On, Callers: []string{"an*"}}, 1}, "bob's": {captured.Config{Keep: captured.On, Callers: []string{"bob"}}, 0},
	} {
		s := gatedBy(t, func(f *config.File) { f.Capture.Keep, f.Capture.Callers = test.config.Keep, test.config.Callers })
		if status, body := s.do(s.ann, "POST", "/v1/chat/completions", asksForASum); status != 200 {
			t.Fatal(body)
		}
		settled(t, s.Gateway)
		if got := count(s.Gateway); got != test.want {
			t.Errorf("%s: %d are kept", name, got)
		}
	}
	g := build(t, func(f *config.File) { f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db") })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, body := sent(t, "", "POST", serve(t, g).url+"/v1/chat/completions", asksForASum); status != 200 {
		t.Fatal(body)
	}
	settled(t, g)
	if got := count(g); got != 1 {
		t.Errorf("without keys: %d are kept", got)
	}
}
