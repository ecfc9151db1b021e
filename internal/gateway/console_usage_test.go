package gateway

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// The page of usage has what a caller used of models and tools, with times, tokens and cost;
// others' are for those who have the right, and budgets are those of whoever looks.
func TestConsoleUsage(t *testing.T) {
	s := gatedBy(t, func(f *config.File) {
		f.Models = []upstream.Model{{BaseURL: upstream.RehearsalURL, Price: usage.Price{Input: "1000", Output: "1000"}}}
		f.Budgets = []budget.Budget{{Name: "pocket money", Cost: "0.000001", Caller: []string{"nobody"}}, {Name: "team", Per: "all", Tokens: 1_000_000}}
	})
	s.talks()
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		for i := range all {
			if all[i].Name == "olga" {
				all[i].Rights = append(all[i].Rights, "ops:usage")
			}
		}
		return all, nil
	})
	ann, bob, olga := newBrowser(t, s.url), newBrowser(t, s.url), newBrowser(t, s.url)
	for b, key := range map[*browser]string{ann: s.ann, bob: s.bob, olga: s.olga} {
		if status := b.signIn(key); status != 200 {
			t.Fatalf("signing in: %d", status)
		}
	}
	page := ann.want("/console/usage", "What you used yourself.", "Messages of models", "Calls of tools", ">create_record</a>", ">delete_file</a>",
		`class="number">3</td>`, "Cost", ">team</td>", `data-go="u" aria-current="page"`)
	if strings.Contains(page, `name="caller"`) || strings.Contains(page, "pocket money") {
		t.Error("ann is offered what others used, or budgets of others")
	}
	if strings.Contains(page, ">–</td>") {
		t.Error("it is not said how long calls took")
	}
	for _, address := range []string{"/console/usage", "/console/usage?by=caller", "/console/usage?caller=ann", "/console/usage?caller=ann&by=caller&since=90d"} {
		if page := bob.want(address, "Nothing was used in that time"); strings.Contains(page, "create_record") || strings.Contains(page, "ann") {
			t.Errorf("bob sees at %s what ann used", address)
		}
	}
	olga.want("/console/usage?by=caller", "What all callers used.", ">ann</a>", "team")
	olga.want("/console/usage?by=server", ">demo</a>")
	if page := olga.want("/console/usage?caller=ann&tool=delete_file&since=24h", ">delete_file</a>"); strings.Contains(page, "create_record") || strings.Contains(page, "Messages of models") {
		t.Error("what was asked for is not all that is shown")
	}
	olga.want("/console/usage?model=*", "Messages of models")
	olga.want("/console/usage?caller=nobody", "Nothing was used in that time")
	if status, _ := olga.get("/console/usage?since=1y"); status != 400 {
		t.Errorf("a time that there is not: %d", status)
	}
	olga.header.Set("Accept-Language", "zh-CN,zh;q=0.9")
	olga.want("/console/usage", "用量", "工具调用", "模型消息", "预算", "充足")
}

// Names in usage are text, whatever they are.
func TestConsoleUsageOfHostileNames(t *testing.T) {
	g := build(t, func(f *config.File) { f.Store.Path = t.TempDir() + "/dragoman.db" })
	const hostile = `</title></svg><script>pwned()</script>"'` + "\u202e\u200b"
	for i := range 2 * 60 {
		g.usage.Add(usage.Key{Caller: hostile, Server: hostile, Tool: fmt.Sprint(hostile, i)}, usage.Used(time.Second))
		g.usage.Add(usage.Key{Caller: hostile, Model: hostile}, usage.Used(time.Second))
	}
	g.usage.Named(hostile, hostile+"called")
	b := newBrowser(t, serve(t, g).url)
	if status := b.signIn(g.secret.Key().Secret); status != 200 {
		t.Fatal(status)
	}
	for _, address := range []string{"", "?by=server", "?by=caller", "?caller=" + url.QueryEscape(hostile+"called"), "?server=" + url.QueryEscape(hostile), "?model=" + url.QueryEscape(hostile)} {
		page := b.want("/console/usage"+address, "pwned", "202E")
		if strings.Contains(page, "<script>pwned") || strings.Contains(page, "</title></svg><") || strings.Contains(page, "\u202e\u200b</") {
			t.Errorf("%s: a name is more than a text", address)
		}
	}
	b.want("/console/usage", "70 more were used less")
}

// Without a store there is no usage, and the page says what it takes.
func TestConsoleWithoutUsage(t *testing.T) {
	g := build(t, nil)
	b := newBrowser(t, serve(t, g).url)
	if status := b.signIn(g.secret.Key().Secret); status != 200 {
		t.Fatal(status)
	}
	b.want("/console/usage", "No usage is kept")
	if live := b.want("/console/live", "that takes a store"); strings.Contains(live, "capture.keep") {
		t.Error("it is said that capture.keep would keep something")
	}
}
