package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// pictures is where "make picture" wants the pictures of the console.
var pictures = flag.String("pictures", "", "write pictures of the console's pages into this folder")

// shoot takes a picture of what the window shows.
func (b *browser) shoot(path string) {
	b.Helper()
	quality := int64(88)
	var taken page.CaptureScreenshotResult
	do(b, path, chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
		taken, err = cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: "webp", Quality: &quality})
		return err
	}))
	if err := os.WriteFile(path, taken.Data, 0o644); err != nil {
		b.Fatal(err)
	}
}

// pictured is a gateway with something on each page: a server whose tools have to be
// changed for models, and a call that waits for somebody.
func pictured(t *testing.T) *browser {
	t.Helper()
	tickets, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{
		{
			Name: "search_tickets", Description: "Finds tickets by words, labels and who has them.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"words":{"type":"string","minLength":2},"labels":{"type":"array","description":"All of them have to be there."},"owner":{"anyOf":[{"type":"string","format":"email"},{"type":"null"}]},"since":{"type":"string","format":"date","pattern":"^\\d{4}-\\d{2}-\\d{2}$"},"most":{"type":"integer","minimum":1,"maximum":100,"default":20}},"required":["words"]}`),
		},
		{
			Name: "close_ticket", Description: "Closes a ticket for good.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"},"reason":{"type":"string"},"tell":{"type":"array","items":{"type":"string"}}},"required":["id"]}`),
		},
	}})
	g := start(t, nil, servers{"tickets": tickets, "demo": {"command": binary(t), "args": []string{"demo-server"}}}, with("store", map[string]any{"path": filepath.Join(t.TempDir(), "dragoman.db")}),
		with("policy", []any{map[string]any{"allow": []string{"*"}}, map[string]any{"name": "closing", "ask": []string{"tickets__close_ticket"}}})).ready()
	b := browse(t, g)
	do(b, "a window", chromedp.EmulateViewport(1280, 860))
	b.signIn()
	return b
}

// closes makes a call that waits, until the test is over.
func (b *browser) closes() {
	body, err := json.Marshal(map[string]any{"model": "rehearsal", "messages": []any{map[string]any{"role": "user", "content": `CALL tickets__close_ticket {"id":4711,"reason":"Cannot be reproduced in 2.4 any more.","tell":["olga@example.com","team\u200b-web@example.com"]}` + "\nTHEN\nSAY It is closed."}}})
	if err != nil {
		b.Fatal(err)
	}
	go func() { // it is answered, or ends with the gateway
		if res, err := http.Post(b.g.Base+"/chat/completions", "application/json", bytes.NewReader(body)); err == nil {
			res.Body.Close()
		}
	}()
	b.g.until("a question", func() bool {
		b.open("/console/inbox")
		return do(b, "the inbox", chromedp.Evaluate[bool](`document.querySelector("form.decide") !== null`))
	})
}

// says asks in the playground, and waits until the conversation is over.
func (b *browser) says(text string) {
	b.Helper()
	do(b, "a message", chromedp.SetValue(chromedp.CSS("#message"), text))
	do(b, "sending", chromedp.Click(chromedp.CSS("#send")))
	b.becomes("an answer", `document.querySelector(".turn.model:not([aria-busy])")?.textContent.length > 0 && !document.querySelector("#send").disabled`)
}

// TestConsolePictures takes the pictures of the documentation, where it is told to.
func TestConsolePictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("\"make picture\" takes them")
	}
	b := pictured(t)
	if err := os.MkdirAll(*pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		shoot := func(name string) { b.shoot(filepath.Join(*pictures, "console-"+name+"-"+scheme+".webp")) }
		b.dress(scheme)
		b.open("/console/tool?server=tickets&name=search_tickets&dialect=openai")
		shoot("tool")
		b.open("/console/playground")
		b.says("What is the weather in Beijing?")
		do(b, "a step", chromedp.Evaluate[chromedp.Void](`for (const d of [...document.querySelectorAll("#steps-live details")].slice(1, 2)) d.open = true; scrollTo(0, 0); 0`))
		shoot("playground")
		b.open("/console/live")
		run := do(b, "the conversation", chromedp.Evaluate[string](`document.querySelector('a.row[href^="/console/live/"]').getAttribute("href")`))
		b.open(run)
		do(b, "a step", chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details.step")[1].open = true; 0`))
		shoot("live")
	}
	b.closes()
	for _, scheme := range []string{"light", "dark"} {
		b.dress(scheme)
		b.open("/console/inbox")
		b.shoot(filepath.Join(*pictures, "console-inbox-"+scheme+".webp"))
	}
	if form := do(b, "the question", chromedp.Evaluate[bool](`document.querySelector("form.decide") !== null`)); form {
		do(b, "deny", chromedp.Click(chromedp.CSS("button.no")))
	}
}
