package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// browsers are the names of what can show pages without a screen.
var browsers = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// A browser shows the console of a gateway.
type browser struct {
	*testing.T
	ctx context.Context
	g   *gateway
}

// browse starts a browser, with nobody signed in.
func browse(t *testing.T, g *gateway) *browser {
	t.Helper()
	program := ""
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		missing(t, "no Chromium is there; \"make chromium\" installs one")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("lang", "en"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(patience.Context(t), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t, ctx, g}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s does not start: %v", program, err)
	}
	return b
}

// do runs an action that has to succeed.
func do[T any](b *browser, what string, a chromedp.Action[T]) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, a)
	if err != nil {
		page, _ := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("body")))
		b.Fatalf("%s: %v\n%.3000s", what, err, page)
	}
	return v
}

// address is what "dragoman console" prints: it signs in once.
func (b *browser) address() string {
	b.Helper()
	cmd := exec.Command(binary(b), "console", "--gateway", b.g.Root)
	cmd.Env = b.g.cmd.Env
	address, err := cmd.Output()
	if err != nil {
		b.Fatalf("dragoman console: %v", err)
	}
	return strings.TrimSpace(string(address))
}

// signIn signs in with the address that "dragoman console" prints.
func (b *browser) signIn() {
	b.Helper()
	do(b, "the sign-in page", chromedp.Navigate(b.address()))
	do(b, "being signed in", chromedp.WaitReady(chromedp.CSS(".figures")))
	if at := do(b, "the address", chromedp.Location()); strings.Contains(at, "#") {
		b.Errorf("the secret stays in the address: %s", at)
	}
}

// becomes waits until something is true of a page that has loaded.
func (b *browser) becomes(what, expression string) {
	b.Helper()
	b.g.until(what, func() bool {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && (`+expression+`)`))
		return err == nil && is
	})
}

// open opens a page of the console.
func (b *browser) open(path string) {
	b.Helper()
	do(b, path, chromedp.Navigate(b.g.Root+path))
	b.becomes(path, `document.querySelector("main h1") !== null`)
}

// dress shows pages light or dark.
func (b *browser) dress(scheme string) {
	b.Helper()
	do(b, scheme, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}

// axe reports what a page makes hard for those who see, hear or move otherwise: by all
// rules, or by those that are named.
func (b *browser) axe(where string, rules ...string) {
	b.Helper()
	_, script := node(b.T, filepath.Join("node_modules", "axe-core", "axe.min.js"))
	source, err := os.ReadFile(script)
	if err != nil {
		b.Fatal(err)
	}
	do(b, "axe-core", chromedp.Evaluate[chromedp.Void](string(source)+";0"))
	options := `{resultTypes: ["violations"]}`
	if rules != nil {
		options = `{resultTypes: ["violations"], runOnly: ` + quoted(rules) + `}`
	}
	run := `axe.run(document, ` + options + `).then((r) => JSON.stringify(r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target + " " + n.failureSummary).join("; "))))`
	var violations []string
	if err := json.Unmarshal([]byte(do(b, "axe-core", chromedp.Evaluate[string](run, chromedp.EvalAwaitPromise))), &violations); err != nil {
		b.Fatal(err)
	}
	for _, v := range violations {
		b.Errorf("%s: %s", where, v)
	}
}

// alone reports requests to other hosts, and pages that are wider than the window.
func (b *browser) alone(where string) {
	b.Helper()
	others := do(b, where, chromedp.Evaluate[string](`JSON.stringify(performance.getEntriesByType("resource").map((e) => e.name).filter((n) => new URL(n).origin !== location.origin))`))
	if others != "[]" {
		b.Errorf("%s asks other hosts: %s", where, others)
	}
}

// consolePages are addresses of each page.
func consolePages(server, tool string) []string {
	at := "/console/tool?" + url.Values{"server": {server}, "name": {tool}}.Encode()
	return []string{"/console/", "/console/servers/" + server, "/console/tools", at, "/console/inbox", "/console/live", "/console/playground", "/console/usage", "/console/usage?by=caller", "/console/audit", "/console/configuration"}
}

// TestConsolePages: each page can be used by everybody, light and dark, on a telephone, by
// the keyboard, and asks no other host.
func TestConsolePages(t *testing.T) {
	g := start(t, nil, nil, withoutServers, with("store", map[string]any{"path": filepath.Join(t.TempDir(), "dragoman.db")})).ready()
	b := browse(t, g)
	b.open("/console/")
	b.axe("the sign-in page")
	b.signIn()
	g.chat("CALL get_weather {\"city\":\"Paris\"}\nTHEN\nSAY done") // so that something was used
	for _, scheme := range []string{"light", "dark"} {
		b.dress(scheme)
		for _, page := range consolePages("demo", "get_weather") {
			b.open(page)
			if scheme == "light" {
				b.axe(page)
				b.alone(page)
			} else {
				b.axe(page+", "+scheme, "color-contrast")
			}
		}
	}
	do(b, "a telephone", chromedp.EmulateViewport(380, 700))
	for _, page := range consolePages("demo", "get_weather") {
		b.open(page)
		if wide := do(b, page, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); wide > 380 {
			b.Errorf("%s is %d wide", page, wide)
		}
	}
	b.open("/console/")
	do(b, "g u", chromedp.KeyEvent("gu"))
	b.becomes("usage", `location.pathname === "/console/usage" && document.querySelectorAll(".chart rect").length > 0`)
	do(b, "g c", chromedp.KeyEvent("gc"))
	b.becomes("the catalogue", `location.pathname === "/console/tools"`)
	do(b, "/", chromedp.KeyEvent("/"))
	b.becomes("searching", `document.activeElement.id === "search"`)
	// A key that is sent so arrives as a character, too, which a page cannot prevent.
	do(b, "nothing but the words", chromedp.Evaluate[chromedp.Void](`document.activeElement.value = ""; 0`))
	do(b, "words", chromedp.KeyEvent("weather\r"))
	b.becomes("what was found", `location.search.includes("q=weather")`)
	do(b, "j", chromedp.KeyEvent("j\r"))
	b.becomes("the tool", `document.querySelector("#converted") !== null`)
	before := do(b, "the dialect", chromedp.Value(chromedp.CSS("#dialect")))
	do(b, "]", chromedp.KeyEvent("]"))
	b.becomes("another dialect", fmt.Sprintf("document.querySelector('#dialect')?.value !== %q", before))
	do(b, "?", chromedp.KeyEvent("?"))
	do(b, "the keys", chromedp.WaitVisible(chromedp.CSS("#keys")))
}

// TestConsolePagesThatWereLeft: a page that was left, which the browser may keep, has no
// connection, and listens again when the reader comes back to it. Browsers have six for one
// host.
func TestConsolePagesThatWereLeft(t *testing.T) {
	g := start(t, nil, nil, withoutServers).ready()
	b := browse(t, g)
	b.signIn()
	open := func(want string) {
		t.Helper()
		g.until(want+" streams", func() bool {
			resp, err := http.Get(g.Root + "/metrics")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			metrics, err := io.ReadAll(resp.Body)
			_, after, found := strings.Cut(string(metrics), "\ndragoman_streams_open")
			line, _, _ := strings.Cut(after, "\n")
			return err == nil && found && strings.HasSuffix(line, " "+want) // with the one that asks
		})
	}
	open("2")
	for _, event := range []struct{ name, left string }{{"pagehide", "1"}, {"pageshow", "2"}} {
		do(b, event.name, chromedp.Evaluate[bool](fmt.Sprintf("dispatchEvent(new PageTransitionEvent(%q, {persisted: true}))", event.name)))
		open(event.left)
	}
}

// TestConsoleCallsByHand: the form and the JSON of a call say the same, and the result is
// there as it came and as a model reads it.
func TestConsoleCallsByHand(t *testing.T) {
	g := start(t, nil, nil, withoutServers).ready()
	b := browse(t, g)
	b.signIn()
	b.open("/console/tool?server=demo&name=get_weather")
	do(b, "the form", chromedp.SendKeys(chromedp.CSS(`[data-at="/city"]`), "Beijing"))
	if got := do(b, "the JSON", chromedp.Evaluate[string](`JSON.stringify(JSON.parse(document.querySelector("#arguments").value))`)); got != `{"city":"Beijing"}` {
		t.Errorf("the JSON is %s", got)
	}
	do(b, "the JSON", chromedp.Evaluate[chromedp.Void](`{const a = document.querySelector("#arguments"); a.value = '{"city": "Paris"}'; a.dispatchEvent(new Event("input", {bubbles: true})); 0}`))
	if got := do(b, "the form", chromedp.Value(chromedp.CSS(`[data-at="/city"]`))); got != "Paris" {
		t.Errorf("the form has %q", got)
	}
	do(b, "calling", chromedp.Click(chromedp.CSS(`#call button:not([type="button"])`)))
	// The page puts another element in its place when the answer is here.
	b.becomes("an answer", `document.querySelector("#answer")?.textContent.includes("as a model reads it")`)
	if text := do(b, "the answer", chromedp.Evaluate[string](`document.querySelector("#answer").textContent`)); !strings.Contains(text, "Paris") || !strings.Contains(text, "as a model reads it") {
		t.Errorf("the answer is %s", text)
	}
	b.axe("an answer")
}

// TestConsoleFormHoldsWhatIsWritten: a number is sent with all of its digits or not at all,
// digits in a text are none, and what is wrong in a field can be mended in the JSON.
func TestConsoleFormHoldsWhatIsWritten(t *testing.T) {
	entry, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "find", InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"},"card":{"type":"string"},"tags":{"type":"array"}}}`)}}})
	g := start(t, nil, servers{"db": entry}).ready()
	b := browse(t, g)
	b.signIn()
	b.open("/console/tool?server=db&name=find")
	for _, tt := range []struct{ at, written, json, valid string }{
		{"[data-at='/card']", "4111111111111111", `{"card":"4111111111111111"}`, "true"},
		{"#arguments", `{"card":"4111111111111111"}`, `{"card":"4111111111111111"}`, "true"},
		{"[data-at='/id']", "123456789012345", `{"card":"4111111111111111","id":123456789012345}`, "true"},
		{"[data-at='/id']", "1234567890123456789", `{"card":"4111111111111111","id":123456789012345}`, "false"},
		{"#arguments", `{"id":7,"tags":["a"]}`, `{"id":7,"tags":["a"]}`, "true"},
		{"[data-at='/tags']", `["a"`, `{"id":7,"tags":["a"]}`, "false"},
		{"#arguments", `{"id":8,"tags":["b"]}`, `{"id":8,"tags":["b"]}`, "true"},
	} {
		got := do(b, tt.at, chromedp.Evaluate[string](fmt.Sprintf(`{
			const to = document.querySelector(%q);
			to.value = %q;
			to.dispatchEvent(new Event("input", {bubbles: true}));
			[JSON.stringify(JSON.parse(document.querySelector("#arguments").value)), document.querySelector("#call").checkValidity(), document.querySelector("#call [inert]") !== null].join(" ")
		}`, tt.at, tt.written)))
		if want := tt.json + " " + tt.valid + " false"; got != want {
			t.Errorf("%s with %s: %s, want %s", tt.at, tt.written, got, want)
		}
	}
}

// TestConsoleApproves: a call that waits in an OpenAI client, and one in an MCP client, run
// once somebody says so with a key press; of two browsers one is first.
func TestConsoleApproves(t *testing.T) {
	entry, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "drop"}}})
	g := start(t, nil, servers{"db": entry}, with("store", map[string]any{"path": filepath.Join(t.TempDir(), "dragoman.db")}),
		with("policy", []any{map[string]any{"allow": []string{"*"}}, map[string]any{"name": "drops", "ask": []string{"db__drop"}}})).ready()
	b, second := browse(t, g), browse(t, g)
	b.signIn()
	second.signIn()
	waits := func(b *browser) {
		b.Helper()
		b.g.until("a question in the inbox", func() bool {
			b.open("/console/inbox")
			return do(b, "the inbox", chromedp.Evaluate[bool](`document.querySelector("form.decide") !== null`))
		})
	}
	program, path := node(t, filepath.Join("clients", "openai.mjs"))
	client := exec.CommandContext(patience.Context(t), program, path, "stream", `CALL drop {"message":"people"}`+"\nTHEN\nSAY All done.")
	client.Env = append(cleanEnv(t), "DRAGOMAN_BASE_URL="+g.Base)
	type printed struct {
		out []byte
		err error
	}
	openai := make(chan printed, 1)
	go func() {
		out, err := client.Output()
		openai <- printed{out, err}
	}()
	waits(b)
	waits(second)
	b.axe("a question")
	do(b, "a", chromedp.KeyEvent("a"))
	do(b, "the answer", chromedp.WaitReady(chromedp.CSS(".said")))
	do(second, "d", chromedp.KeyEvent("d"))
	second.becomes("the answer", `document.querySelector(".said") !== null`)
	if said := do(second, "the answer", chromedp.Text(chromedp.CSS(".said"))); !strings.Contains(said, "answered meanwhile") {
		t.Errorf("the second browser is told %q", said)
	}
	if got := <-openai; got.err != nil || !strings.Contains(string(got.out), "All done.") {
		t.Errorf("the OpenAI client got %s, %v", got.out, got.err)
	}
	if calls := ran(t, log); len(calls) != 1 {
		t.Errorf("%d calls ran", len(calls))
	}

	ctx := patience.Context(t)
	model, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &sdk.StreamableClientTransport{Endpoint: g.Root + "/mcp", HTTPClient: &http.Client{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	type answer struct {
		res *sdk.CallToolResult
		err error
	}
	called := make(chan answer, 1)
	go func() {
		res, err := model.CallTool(ctx, &sdk.CallToolParams{Name: "drop", Arguments: map[string]any{"message": "tables"}})
		called <- answer{res, err}
	}()
	waits(b)
	do(b, "why", chromedp.SendKeys(chromedp.CSS(`input[name="why"]`), "not on a Friday"))
	do(b, "deny", chromedp.Click(chromedp.CSS("button.no")))
	do(b, "the answer", chromedp.WaitReady(chromedp.CSS(".said")))
	got := <-called
	text, _ := json.Marshal(got.res)
	if got.err != nil || !got.res.IsError || !strings.Contains(string(text), "not on a Friday") {
		t.Errorf("the MCP client got %s, %v", text, got.err)
	}
}

// hostile is text that wants to be more than text.
const hostile = `</code></pre></textarea></script><script>window.pwned=1</script><img src=x onerror=window.pwned=2><a href="javascript:window.pwned=3">x</a> {{.}} ` + "\u202etxt.exe\u202c \u200bhidden\U000E0041" + ` <style>body{display:none}</style>`

// TestConsoleHostileText: what servers and callers write changes nothing on a page but its
// text.
func TestConsoleHostileText(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{` + quoted(hostile) + `:{"type":"string","title":` + quoted(hostile) + `,"description":` + quoted(hostile) + `,"default":` + quoted(hostile) + `},"one":{"enum":[` + quoted(hostile) + `]},"u":{"anyOf":[{"type":"object","title":` + quoted(hostile) + `,"properties":{"k":{"const":` + quoted(hostile) + `}}},{"type":"string"}]}}}`)
	entry, _ := fake(t, fakemcp.Config{Instructions: hostile, Tools: []fakemcp.Tool{{Name: "echo", Description: hostile, InputSchema: schema}}})
	g := start(t, nil, servers{"evil": entry}, with("store", map[string]any{"path": filepath.Join(t.TempDir(), "dragoman.db")}), with("pins", map[string]any{"mode": "off"}),
		with("policy", []any{map[string]any{"allow": []string{"*"}}, map[string]any{"name": hostile, "ask": []string{"evil__echo"}}})).ready()
	b := browse(t, g)
	b.signIn()
	b.open("/console/live")
	message, _ := json.Marshal(map[string]string{"message": hostile + strings.Repeat("long ", 20_000)})
	answered := make(chan reply, 1)
	go func() { answered <- g.chat("CALL echo " + string(message) + "\nTHEN\nSAY done") }()
	g.until("a question", func() bool {
		b.open("/console/inbox")
		return do(b, "the inbox", chromedp.Evaluate[bool](`document.querySelector("form.decide") !== null`))
	})
	clean := func(page string) {
		b.Helper()
		found := do(b, page, chromedp.Evaluate[string](`JSON.stringify({pwned: window.pwned ?? 0, scripts: document.scripts.length, images: document.images.length, styles: document.querySelectorAll("style").length, links: [...document.links].filter((l) => !l.href.startsWith(location.origin)).length, raw: /[\u202a-\u202e\u200b\u{e0000}-\u{e007f}]/u.test(document.querySelector("main").innerText)})`))
		if found != `{"pwned":0,"scripts":1,"images":0,"styles":0,"links":0,"raw":false}` {
			b.Errorf("%s is another page: %s", page, found)
		}
	}
	clean("the inbox")
	if !strings.Contains(do(b, "the inbox", chromedp.Text(chromedp.CSS("main"))), "U+202E") {
		t.Error("what shows nothing is not spelled out")
	}
	do(b, "approve", chromedp.Click(chromedp.CSS("button.yes")))
	do(b, "the answer", chromedp.WaitReady(chromedp.CSS(".said")))
	<-answered
	pages := consolePages("evil", "echo")
	b.open("/console/live")
	if run := do(b, "the conversation", chromedp.Evaluate[string](`document.querySelector('a.row[href^="/console/live/"]')?.getAttribute("href") ?? ""`)); run != "" {
		pages = append(pages, run)
	} else {
		t.Error("the conversation is not listed")
	}
	for _, page := range append(pages, "/console/tools?q="+url.QueryEscape(hostile), "/console/inbox?done="+url.QueryEscape(hostile)) {
		b.open(page)
		clean(page)
	}
}

// TestConsoleLongNames: a name without a place to break it makes no page wider than a
// telephone.
func TestConsoleLongNames(t *testing.T) {
	long := strings.Repeat("a", 120)
	schema := json.RawMessage(`{"type":"object","properties":{` + quoted(long) + `:{"type":"string"},` + quoted(long+"o") + `:{"type":"object","properties":{` + quoted(long) + `:{"type":"boolean"}}}},"required":[` + quoted(long) + `]}`)
	entry, _ := fake(t, fakemcp.Config{Instructions: long, Tools: []fakemcp.Tool{{Name: "echo", Description: long, InputSchema: schema}}})
	g := start(t, nil, servers{"long": entry}).ready()
	b := browse(t, g)
	b.signIn()
	do(b, "a telephone", chromedp.EmulateViewport(360, 700))
	for _, page := range consolePages("long", "echo") {
		b.open(page)
		if wide := do(b, page, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); wide > 360 {
			t.Errorf("%s is %d wide", page, wide)
		}
	}
}

func quoted(value any) string {
	b, _ := json.Marshal(value)
	return string(b)
}

// withoutServers leaves the demo server to the gateway.
func withoutServers(file map[string]any, _ *exec.Cmd) { delete(file, "mcpServers") }
