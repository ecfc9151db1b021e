package e2e

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// corpusServers are servers with the tools of the lists in the folder that DRAGOMAN_CORPUS
// names, and how many tools that are.
func corpusServers(t *testing.T) (all servers, tools int) {
	t.Helper()
	dir := os.Getenv("DRAGOMAN_CORPUS")
	if dir == "" {
		missing(t, "DRAGOMAN_CORPUS does not name the folder with the tool lists of public servers")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 2 {
		t.Fatalf("no tool lists in %s: %v", dir, err)
	}
	all = servers{}
	for _, file := range files {
		if filepath.Base(file) == "MANIFEST.json" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		config := fakemcp.Config{}
		for _, definition := range list.Tools {
			var named struct{ Name string }
			if err := json.Unmarshal(definition, &named); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			config.Tools = append(config.Tools, fakemcp.Tool{Name: named.Name, Definition: definition})
		}
		at := httptest.NewServer(fakemcp.New(config))
		t.Cleanup(at.Close)
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = server{"url": at.URL + "/mcp"}
		tools += len(list.Tools)
	}
	return all, tools
}

// TestConsoleOfCorpus: with the tools of real servers each page can be used by everybody,
// light and dark, on a telephone, and asks no other host; a page stays small, whatever the
// servers have. How long the server takes for a page is told, and judged by nobody here.
func TestConsoleOfCorpus(t *testing.T) {
	all, tools := corpusServers(t)
	g := start(t, nil, all, with("store", map[string]any{"path": filepath.Join(t.TempDir(), "dragoman.db")}), with("pins", map[string]any{"mode": "off"})).ready()
	b := browse(t, g)
	b.signIn()
	b.open("/console/tools")
	link := do(b, "a tool", chromedp.Evaluate[string](`document.querySelector("a.row").getAttribute("href")`))
	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	pages := consolePages(at.Query().Get("server"), at.Query().Get("name"))
	for _, scheme := range []string{"light", "dark"} {
		b.dress(scheme)
		for _, page := range pages {
			b.open(page)
			if scheme == "dark" {
				b.axe(page+", dark", "color-contrast")
				continue
			}
			b.axe(page)
			b.alone(page)
			if n := do(b, page, chromedp.Evaluate[int](`document.querySelectorAll("*").length`)); n > 12_000 {
				t.Errorf("%s has %d elements", page, n)
			}
		}
	}
	// What the browser measures: from the request to the first byte of the answer.
	const took = `Math.round(100 * (({requestStart, responseStart}) => responseStart - requestStart)(performance.getEntriesByType("navigation")[0])) / 100`
	for _, page := range pages {
		var each []float64
		for range 5 {
			b.open(page)
			each = append(each, do(b, page, chromedp.Evaluate[float64](took)))
		}
		t.Logf("%s with %d tools: first byte after %.1f ms (of five times the shortest; %v)", page, tools, slices.Min(each), each)
	}
	do(b, "a telephone", chromedp.EmulateViewport(380, 700))
	for _, page := range pages {
		b.open(page)
		if wide := do(b, page, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); wide > 380 {
			t.Errorf("%s is %d wide", page, wide)
		}
	}
}

// TestConsolePlays: a message in the playground is answered; what happens in it stands
// beside it; the text for a shell is the request, and does what the page does.
func TestConsolePlays(t *testing.T) {
	g := start(t, nil, nil, withoutServers).ready()
	b := browse(t, g)
	b.signIn()
	b.open("/console/playground")
	text := func(selector string) string {
		return do(b, selector, chromedp.Evaluate[string](`document.querySelector(`+string(quoted(selector))+`).textContent`))
	}
	b.becomes("the request for a shell", `document.querySelector("#curl").textContent !== ""`)
	if curl := text("#curl"); !strings.Contains(curl, g.Base+"/chat/completions") || !strings.Contains(curl, "What is the weather in Beijing?") || strings.Contains(curl, "tools") {
		t.Errorf("for a shell: %s", curl)
	}
	b.says("What is the weather in Beijing?")
	if said := text(".turn.model"); !strings.Contains(said, "22 °C") {
		t.Errorf("the answer is %q", said)
	}
	b.becomes("the trace", `document.querySelectorAll("#steps-live details.step").length === 3`)
	trace := text("#steps-live")
	for _, want := range []string{"decide", "execute", "summarise", "get_weather", "as the model wrote them", "as a model reads it"} {
		if !strings.Contains(trace, want) {
			t.Errorf("beside it there is no %q", want)
		}
	}
	do(b, "another message", chromedp.SetValue(chromedp.CSS("#message"), "SAY it's \"quoted\""))
	do(b, "typing", chromedp.Evaluate[chromedp.Void](`document.querySelector("#message").dispatchEvent(new Event("input", {bubbles: true})); 0`))
	curl := text("#curl")
	if !strings.Contains(curl, "What is the weather in Beijing?") || !strings.Contains(curl, `"assistant"`) || !strings.HasPrefix(text("#cli"), "dragoman chat --model ") {
		t.Errorf("for a shell: %s\n%s", curl, text("#cli"))
	}
	if _, err := exec.LookPath("curl"); err != nil {
		missing(t, "curl is not there, so that nobody runs what the page says")
	}
	out, err := exec.CommandContext(patience.Context(t), "sh", "-c", curl).Output()
	if err != nil || !strings.Contains(string(out), "data: [DONE]") || !strings.Contains(string(out), "quoted") {
		t.Errorf("in a shell: %v\n%s", err, out)
	}
	do(b, "a message like a flag", chromedp.SetValue(chromedp.CSS("#message"), "--help me"))
	do(b, "typing", chromedp.Evaluate[chromedp.Void](`document.querySelector("#message").dispatchEvent(new Event("input", {bubbles: true})); 0`))
	if cli := text("#cli"); cli != "printf %s '--help me' | dragoman chat --model 'rehearsal' -" {
		t.Errorf("for a shell: %s", cli)
	}
	do(b, "no tools", chromedp.Click(chromedp.CSS(`[data-server="demo"]`)))
	b.becomes("the request for a shell", `document.querySelector("#curl").textContent !== ""`)
	if curl := text("#curl"); !strings.Contains(curl, `"tool_choice": "none"`) {
		t.Errorf("without tools: %s", curl)
	}
	b.axe("the playground, with an answer")
}
