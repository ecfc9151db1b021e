package gateway

import (
	"encoding/json"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// A browser keeps cookies, follows redirects, and reads pages.
type browser struct {
	*testing.T
	client *http.Client
	base   string
	header http.Header
}

func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{T: t, client: &http.Client{Jar: jar, Transport: &http.Transport{}}, base: base, header: http.Header{"Accept-Language": {"en"}}}
	t.Cleanup(b.client.CloseIdleConnections)
	return b
}

// send makes a request as a browser's page of ours does.
func (b *browser) send(method, path string, form url.Values) (status int, page string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	req.Header = b.header.Clone()
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", b.base)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	maps.Copy(req.Header, b.header)
	res, err := b.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	if strings.HasPrefix(path, "/console/") && b.header.Get("Origin") == "" && res.Request.URL.Host == strings.TrimPrefix(b.base, "http://") {
		if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			b.Errorf("%s has the policy %q", path, policy)
		}
	}
	return res.StatusCode, string(text)
}

func (b *browser) get(path string) (int, string) { return b.send("GET", path, nil) }

// signIn shows a secret or a key.
func (b *browser) signIn(secret string) int {
	b.Helper()
	status, _ := b.send("POST", "/console/sign-in", url.Values{"secret": {secret}})
	return status
}

// want reads a page that has to be there and to hold some texts.
func (b *browser) want(path string, texts ...string) string {
	b.Helper()
	status, page := b.get(path)
	if status != 200 {
		b.Errorf("%s: %d %.500s", path, status, page)
	}
	for _, text := range texts {
		if !strings.Contains(page, text) {
			b.Errorf("%s does not have %q:\n%.6000s", path, text, page)
		}
	}
	return page
}

// TestConsoleSignIn: the secret signs in once, what comes next signs in as well, and
// signing out ends it. Nobody else sees anything.
func TestConsoleSignIn(t *testing.T) {
	g := build(t, nil)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := serve(t, g).url
	b := newBrowser(t, url)
	if status, page := b.get("/console/"); status != 401 || !strings.Contains(page, "dragoman console") || strings.Contains(page, "demo") {
		t.Fatalf("nobody sees %d %s", status, page)
	}
	secret := g.secret.Key().Secret
	for _, wrong := range []string{"", "x", secret[1:], strings.ToLower(secret) + "x"} {
		if status := b.signIn(wrong); status != 401 && status != 429 {
			t.Errorf("%q: %d", wrong, status)
		}
	}
	if status := b.signIn(secret); status != 200 {
		t.Fatalf("the secret: %d", status)
	}
	b.want("/console/", "operator", "demo", "connected")
	other := newBrowser(t, url)
	if status := other.signIn(secret); status == 200 {
		t.Error("a secret signs in twice")
	}
	if status := other.signIn(g.secret.Key().Secret); status != 200 {
		t.Errorf("the next secret: %d", status)
	}
	if status, _ := b.send("POST", "/console/sign-out", nil); status != 200 {
		t.Errorf("signing out: %d", status)
	}
	if status, _ := b.get("/console/"); status != 401 {
		t.Errorf("signed out: %d", status)
	}
	other.want("/console/")
}

// TestConsoleTries: who shows wrong secrets is slowed down; the right one is taken all the
// same, so that nobody can keep the operator out.
func TestConsoleTries(t *testing.T) {
	g := build(t, nil)
	b := newBrowser(t, serve(t, g).url)
	slow := false
	for range 20 {
		slow = b.signIn("wrong") == http.StatusTooManyRequests || slow
	}
	if !slow {
		t.Error("twenty wrong secrets were looked at as fast as they came")
	}
	if status := b.signIn(g.secret.Key().Secret); status != 200 {
		t.Errorf("then the right one: %d", status)
	}
}

// TestConsoleTriesOfKeys: so it is where people show keys.
func TestConsoleTriesOfKeys(t *testing.T) {
	s := gated(t)
	b := newBrowser(t, s.url)
	slow := false
	for range 20 {
		slow = b.signIn("wrong") == http.StatusTooManyRequests || slow
	}
	if !slow {
		t.Error("twenty wrong keys were looked at as fast as they came")
	}
	if status := b.signIn(s.ann); status != 200 {
		t.Errorf("then a right one: %d", status)
	}
}

// TestConsoleTriesAtAnIssuer: nor can anybody keep those out who sign in at an authorization
// server, with wrong keys or with answers that are to no sign-in.
func TestConsoleTriesAtAnIssuer(t *testing.T) {
	i := issuertest.New(t, "")
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{}
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			answer = map[string]any{
				"issuer": i.Name, "jwks_uri": i.Name + "/keys", "authorization_endpoint": i.Name + "/authorize", "token_endpoint": i.Name + "/token",
				"code_challenge_methods_supported": []string{"S256"},
			}
		case "/token":
			if r.PostFormValue("code") != "ada's" {
				w.WriteHeader(http.StatusBadRequest)
				answer["error"] = "invalid_grant"
				break
			}
			answer = map[string]any{"access_token": i.Token(i.Good(public, nil)), "token_type": "Bearer"}
		default:
			i.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(issuer.Close)
	i.Name = issuer.URL
	g := build(t, func(f *config.File) {
		tokens(i)(f)
		f.Auth.OAuth[0].Console.ID = "console"
	})
	var cookies []*http.Cookie
	send := func(method, path string, form url.Values) *http.Response {
		t.Helper()
		r := httptest.NewRequest(method, public+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		return w.Result()
	}
	// comeBack brings a code back from the issuer.
	comeBack := func(code string) *http.Response {
		t.Helper()
		cookies = nil
		away := send("GET", "/console/sign-in/at?"+url.Values{"issuer": {i.Name}}.Encode(), nil)
		to, err := away.Location()
		if err != nil {
			t.Fatalf("on the way there: %d", away.StatusCode)
		}
		cookies = away.Cookies()
		return send("GET", "/console/sign-in/back?"+url.Values{"code": {code}, "state": {to.Query().Get("state")}}.Encode(), nil)
	}
	for range 20 {
		send("POST", "/console/sign-in", url.Values{"secret": {"wrong"}})
	}
	for range 20 {
		if back := comeBack("wrong"); back.StatusCode != http.StatusUnauthorized {
			t.Fatalf("a wrong code: %d", back.StatusCode)
		}
	}
	if back := comeBack("ada's"); back.StatusCode != http.StatusSeeOther {
		t.Errorf("then a right one: %d", back.StatusCode)
	}
}

// TestConsoleSignInGoesOn: who shows a wrong key, and then the right one, gets to the page
// that was asked for all the same.
func TestConsoleSignInGoesOn(t *testing.T) {
	s := gated(t)
	b := newBrowser(t, s.url)
	const kept = `name="next" value="/console/audit?kind=pin"`
	if _, page := b.get("/console/audit?kind=pin"); !strings.Contains(page, kept) {
		t.Fatalf("the page is not remembered:\n%s", page)
	}
	if status, page := b.send("POST", "/console/sign-in", url.Values{"secret": {"wrong"}, "next": {"/console/audit?kind=pin"}}); status != 401 || !strings.Contains(page, kept) {
		t.Errorf("after a wrong key: %d\n%s", status, page)
	}
	if _, page := b.send("POST", "/console/sign-in", url.Values{"secret": {"wrong"}, "next": {"https://evil.example/console/"}}); !strings.Contains(page, `name="next" value="/console/"`) {
		t.Errorf("another site is gone on to:\n%s", page)
	}
}

// TestConsoleSignInGoesBackToTheForm: a form that was sent when nobody was signed in any more
// does nothing, and whoever then signs in comes to the page that it is on.
func TestConsoleSignInGoesBackToTheForm(t *testing.T) {
	s := gated(t)
	key, id := apikey.New()
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		return append(all, apikey.Record{ID: id, Hash: apikey.Hash(key), User: "root", Name: "root", Rights: []string{"*"}}), nil
	})
	for sent, want := range map[string]string{
		"/console/call?server=demo&name=get_weather&dialect=gemini": "What the server sent, and what a model gets",
		"/console/inbox/a1b2c3":         "Calls that wait",
		"/console/pins":                 "Definitions that changed",
		"/console/audit/verify":         "Verify the chain",
		"/console/configuration/reload": "In effect, defaults filled in",
	} {
		b := newBrowser(t, s.url)
		status, page := b.send("POST", sent, nil)
		_, to, found := strings.Cut(page, `name="next" value="`)
		to, _, _ = strings.Cut(to, `"`)
		if status != 401 || !found {
			t.Fatalf("%s: %d\n%s", sent, status, page)
		}
		if status, page := b.send("POST", "/console/sign-in", url.Values{"secret": {key}, "next": {html.UnescapeString(to)}}); status != 200 || !strings.Contains(page, want) {
			t.Errorf("%s leads to %s: %d\n%.600s", sent, to, status, page)
		}
	}
	b := newBrowser(t, s.url)
	b.signIn(key)
	if page := b.want("/console/tool?server=demo&name=get_weather&dialect=gemini"); !strings.Contains(page, `action="/console/call?server=demo&amp;name=get_weather&amp;dialect=gemini#answer"`) {
		t.Error("the form of a call is sent elsewhere")
	}
}

// TestConsoleModelsOfAKey: the overview names the models that a key may use and where they go,
// and no others, as GET /v1/models does; who reads the configuration sees all.
func TestConsoleModelsOfAKey(t *testing.T) {
	s := gatedBy(t, func(f *config.File) {
		f.Models = []upstream.Model{
			{Match: "hush-*", BaseURL: "http://127.0.0.1:1/v1"}, {Match: "merger", BaseURL: "http://127.0.0.2:1/v1"}, {Match: "rehearsal", BaseURL: "http://127.0.0.3:1/v1"},
		}
	})
	key, id := apikey.New()
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		return append(all, apikey.Record{ID: id, Hash: apikey.Hash(key), User: "root", Name: "root", Rights: []string{"ops:config"}}), nil
	})
	for _, tt := range []struct {
		key  string
		sees []string
	}{{key, []string{"hush-*", "merger", "rehearsal"}}, {s.ann, []string{"hush-*", "merger", "rehearsal"}}, {s.bob, []string{"rehearsal"}}, {s.olga, nil}} {
		b := newBrowser(t, s.url)
		b.signIn(tt.key)
		var sees []string
		for _, row := range regexp.MustCompile(`<tr><td><code>([^<]*)</code>`).FindAllStringSubmatch(b.want("/console/"), -1) {
			sees = append(sees, row[1])
		}
		if !slices.Equal(sees, tt.sees) {
			t.Errorf("a key sees the models %q, not %q", sees, tt.sees)
		}
	}
}

// pagesOf are addresses of each page.
var pagesOf = []string{
	"/console/", "/console/servers/demo", "/console/tools", "/console/tools?q=weather&sort=tokens", "/console/tool?server=demo&name=get_weather",
	"/console/inbox", "/console/live", "/console/audit", "/console/configuration",
}

// TestConsolePages: each page is there for the operator, in both languages.
func TestConsolePages(t *testing.T) {
	g := build(t, func(f *config.File) { f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db") })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, serve(t, g).url)
	b.signIn(g.secret.Key().Secret)
	b.want("/console/servers/demo", "get_weather", "connected")
	b.want("/console/tools", "get_weather", "tokens in openai")
	b.want("/console/tools?q=weather", "get_weather")
	b.want("/console/tools?q=xyzzy", "No tool is like that")
	tool := b.want("/console/tool?server=demo&name=get_weather", "the server sent", "the model gets", "checked here", `data-at="/city"`, "allow")
	if !strings.Contains(tool, "additionalProperties") {
		t.Error("the converted schema is not there")
	}
	for _, name := range g.now.Load().dialects.Names() {
		b.want("/console/tool?server=demo&name=get_weather&dialect="+name, name)
	}
	b.want("/console/inbox", "Nothing waits")
	b.want("/console/live", "Nobody was watching")
	b.want("/console/audit", "records", "Since (UTC)", "Until (UTC)") // times in the table are those of the reader
	b.want("/console/configuration", "listen: 127.0.0.1:0")
	if status, page := b.send("POST", "/console/audit/verify", nil); status != 200 || !strings.Contains(page, "In order") {
		t.Errorf("verifying: %d %.300s", status, page)
	}
	if status, page := b.send("POST", "/console/configuration/reload", nil); status != 200 || !strings.Contains(page, "no configuration that it could read") {
		t.Errorf("a reload: %d %.300s", status, page)
	}
	for _, path := range []string{"/console/none", "/console/servers/none", "/console/tool?server=demo&name=none", "/console/tools?dialect=none", "/console/live/7", "/console/assets/none"} {
		if status, _ := b.get(path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	b.header.Set("Accept-Language", "zh-CN,zh;q=0.9,en;q=0.8")
	stranger := newBrowser(t, b.base)
	stranger.header = b.header
	if status, page := stranger.get("/console/"); status != 401 || !strings.Contains(page, "登录") {
		t.Errorf("who is not signed in: %d %s", status, page)
	}
	for _, path := range pagesOf {
		b.want(path, `lang="zh-Hans"`, "概览")
	}
}

// TestConsoleCall: a call by hand goes the way of all calls, and is seen as it runs.
func TestConsoleCall(t *testing.T) {
	g := build(t, func(f *config.File) {
		f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
		f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "no-sums", Deny: []string{"demo__calculate_sum"}}}
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, serve(t, g).url)
	b.signIn(g.secret.Key().Secret)
	b.want("/console/live")
	call := func(tool, arguments string) string {
		_, page := b.send("POST", "/console/call", url.Values{"server": {"demo"}, "name": {tool}, "dialect": {"openai"}, "arguments": {arguments}})
		return page
	}
	if page := call("get_weather", `{"city":"Beijing"}`); !strings.Contains(page, "as a model reads it") || !strings.Contains(page, "ran: yes") {
		t.Errorf("%.3000s", page)
	}
	if page := call("get_weather", `{"city":7, }`); !strings.Contains(page, "invalid_arguments") && !strings.Contains(page, "repaired") {
		t.Errorf("%.3000s", page)
	}
	if page := call("calculate_sum", `{"a":1,"b":2}`); strings.Contains(page, "ran: yes") || !strings.Contains(page, "There is no such tool") {
		t.Errorf("a call that a rule denies: %.3000s", page)
	}
	live := b.want("/console/live", "get_weather", "a call")
	id := regexp.MustCompile(`/console/live/(\d+)`).FindStringSubmatch(live)
	if id == nil {
		t.Fatal("no conversation is listed")
	}
	b.want("/console/live/"+id[1], "Time line", "as the server sent it")
	b.want("/console/audit?caller=operator&tool=get_weather", "demo / get_weather", "allow")
	if status, text := b.get("/console/audit/export?since=1h"); status != 200 || !strings.Contains(text, `"hash":"`) {
		t.Errorf("an export: %d %.300s", status, text)
	}
}

// TestConsoleApproval: what waits is answered at the console as anywhere else: by who may,
// for the arguments that were shown, once, whoever of two is faster.
func TestConsoleApproval(t *testing.T) {
	s := gated(t)
	answered := make(chan string, 1)
	go func() {
		_, body := s.do(s.ann, "POST", "/v1/chat/completions", makesARecord)
		answered <- body
	}()
	ann, olga, second := newBrowser(t, s.url), newBrowser(t, s.url), newBrowser(t, s.url)
	for b, key := range map[*browser]string{ann: s.ann, olga: s.olga, second: s.olga} {
		if status := b.signIn(key); status != 200 {
			t.Fatalf("signing in: %d", status)
		}
	}
	var page string
	eventually(t, "a question", func() bool {
		_, page = olga.get("/console/inbox")
		return strings.Contains(page, "create_record")
	})
	if !strings.Contains(page, "Ada") || !strings.Contains(page, "records") || !strings.Contains(page, "ann") {
		t.Errorf("olga sees %s", page)
	}
	if page := ann.want("/console/inbox"); strings.Contains(page, "create_record") {
		t.Error("ann is asked about her own call")
	}
	path := regexp.MustCompile(`/console/inbox/[0-9a-z]+`).FindString(page)
	digest := regexp.MustCompile(`name="digest" value="([0-9a-f]+)"`).FindStringSubmatch(page)[1]
	if status, _ := ann.send("POST", path, url.Values{"digest": {digest}, "decision": {"approve"}}); status != 404 {
		t.Errorf("ann approves: %d", status)
	}
	if status, _ := olga.send("POST", path, url.Values{"digest": {strings.Repeat("0", 64)}, "decision": {"approve"}}); status != 404 {
		t.Errorf("other arguments than were shown: %d", status)
	}
	olga.header.Set("Origin", "https://evil.example")
	if status, _ := olga.send("POST", path, url.Values{"digest": {digest}, "decision": {"approve"}}); status != 403 {
		t.Errorf("from another site: %d", status)
	}
	olga.header.Del("Origin")
	if status, page := olga.send("POST", path, url.Values{"digest": {digest}, "decision": {"approve"}}); status != 200 || !strings.Contains(page, "may run once") {
		t.Errorf("olga approves: %d %.500s", status, page)
	}
	if status, page := second.send("POST", path, url.Values{"digest": {digest}, "decision": {"deny"}}); status != 409 || !strings.Contains(page, "answered meanwhile") {
		t.Errorf("the second browser: %d %.500s", status, page)
	}
	if body := <-answered; !strings.Contains(body, "done") {
		t.Errorf("ann's call: %s", body)
	}
	// Rights are their own: olga reads no audit log, and no configuration.
	for _, path := range []string{"/console/audit", "/console/configuration", "/console/audit/export"} {
		if status, _ := olga.get(path); status != 403 {
			t.Errorf("olga reads %s: %d", path, status)
		}
	}
	for _, path := range []string{"/console/configuration/reload", "/console/audit/verify"} {
		if status, _ := olga.send("POST", path, nil); status != 403 {
			t.Errorf("olga does %s: %d", path, status)
		}
	}
}

// TestConsoleRevoked: a session ends with its key, also on a page that stays open.
func TestConsoleRevoked(t *testing.T) {
	s := gated(t)
	b := newBrowser(t, s.url)
	if status := b.signIn(s.ann); status != 200 {
		t.Fatal(status)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/console/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.client.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(err, res)
	}
	events := follow(t, "a page's events", res.Body)
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		return slices.DeleteFunc(all, func(r apikey.Record) bool { return r.Name == "ann" }), nil
	})
	eventually(t, "ann is signed out", func() bool {
		status, _ := b.get("/console/")
		return status == 401
	})
	events.wait(t.Context(), t)
}

// TestConsoleOff: where there is none, there is none.
func TestConsoleOff(t *testing.T) {
	g := build(t, func(f *config.File) { f.Console = config.ConsoleOff })
	b := newBrowser(t, serve(t, g).url)
	for _, path := range []string{"/console/", "/console/sign-in", "/console/assets/console.js", "/console/events"} {
		if status, _ := b.get(path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status := b.signIn(g.secret.Key().Secret); status != 404 {
		t.Errorf("signing in: %d", status)
	}
}

// TestConsoleOutlivesARestart: sessions are rows where there is a store.
func TestConsoleOutlivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	g := build(t, func(f *config.File) { f.Store.Path = path })
	cookie := begin(t, g)
	g.Close()
	g = build(t, func(f *config.File) { f.Store.Path = path })
	if _, err := signin.NewSessions(g.ledger.DB, g.standing).Find(t.Context(), cookie); err != nil {
		t.Error(err)
	}
}

func begin(t *testing.T, g *Gateway) string {
	t.Helper()
	cookie, err := signin.NewSessions(g.ledger.DB, g.standing).Begin(t.Context(), signin.Operator)
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}
