package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestConsolePlaysAnyStream: the playground reads each stream that is an event stream, as one
// is that goes on from a model's API as it is; a refusal is an answer; and what its reader
// stops is no error.
func TestConsolePlaysAnyStream(t *testing.T) {
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		end, blank, colon, delta := "\n", "\n", "data: ", `{"role":"assistant","content":"It is 22 °C."}`
		switch {
		case strings.Contains(string(body), "crlf"):
			end, blank = "\r\n", "\r\n"
		case strings.Contains(string(body), "mixed"): // as what ends its lines with \n, on Windows
			blank = "\r\n"
		case strings.Contains(string(body), "bare"):
			end, blank, colon = "\r", "\r", "data:"
		case strings.Contains(string(body), "refusal"):
			delta = `{"role":"assistant","content":null,"refusal":"I do not say 22 °C."}`
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, `%s{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`+end+blank, colon, delta)
		_ = http.NewResponseController(w).Flush()
		if strings.Contains(string(body), "endless") {
			select {
			case <-r.Context().Done():
			case <-done:
			}
			return
		}
		_, _ = fmt.Fprintf(w, `%s{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+end+blank+`%s[DONE]`+end+blank, colon, colon)
	}))
	t.Cleanup(api.Close)
	g := start(t, nil, nil, withoutServers, with("models", []any{map[string]any{"match": "*", "base_url": api.URL + "/v1", "api_key": "k"}})).ready()
	b := browse(t, g)
	b.signIn()
	for _, model := range []string{"plain", "crlf", "bare", "mixed", "refusal"} {
		b.open("/console/playground?model=" + model)
		do(b, "no tools", chromedp.Click(chromedp.CSS(`[data-server="demo"]`))) // so that it goes on as it is
		do(b, "a message", chromedp.SetValue(chromedp.CSS("#message"), "hello"))
		do(b, "sending", chromedp.Click(chromedp.CSS("#send")))
		b.becomes("an end", `document.querySelectorAll("#said > *").length > 1 && !document.querySelector("#send").disabled`)
		if said := do(b, "the answer", chromedp.Evaluate[string](`document.querySelector("#said").innerText`)); !strings.Contains(said, "22 °C") {
			t.Errorf("%s: the page says %q", model, said)
		}
	}
	b.open("/console/playground?model=endless")
	do(b, "a message", chromedp.SetValue(chromedp.CSS("#message"), "hello"))
	do(b, "sending", chromedp.Click(chromedp.CSS("#send")))
	b.becomes("an answer", `document.querySelector(".turn.model")?.textContent.includes("22 °C")`)
	do(b, "stopping", chromedp.Click(chromedp.CSS("#stop")))
	b.becomes("an end", `!document.querySelector("#send").disabled`)
	if said := do(b, "what it says", chromedp.Evaluate[string](`document.querySelector("#said").lastElementChild.className + ": " + document.querySelector("#said").lastElementChild.textContent`)); said != "about: Stopped: this is not in the conversation." {
		t.Errorf("who stops an answer is told %q", said)
	}
}
