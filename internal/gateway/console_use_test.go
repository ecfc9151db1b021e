package gateway

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

// TestConsoleServerUse: the page of a server has how long its tools take and which calls
// failed last, of one's own calls; of all callers' for those who have the rights.
func TestConsoleServerUse(t *testing.T) {
	s := gated(t)
	s.talks() // of which delete_file fails
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		for i := range all {
			if all[i].Name == "olga" {
				all[i].Rights = append(all[i].Rights, "tool:*", "ops:usage", "audit:read")
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
	const link, code = `<a href="/console/usage?server=demo&amp;since=7d&amp;tool=delete_file">`, `<span class="bad">tool_error</span>`
	var page string
	eventually(t, "the outcome", func() bool {
		_, page = ann.get("/console/servers/demo")
		return strings.Contains(page, code)
	})
	for _, want := range []string{link, "How long its tools take", "Your own calls in the last seven days.", "What failed last"} {
		if !strings.Contains(page, want) {
			t.Errorf("ann's page has no %q", want)
		}
	}
	if strings.Contains(page, "/console/audit?call=") || strings.Count(page, code) != 1 || strings.Contains(page, `class="number">–`) {
		t.Errorf("ann's page: %s", page)
	}
	if page := bob.want("/console/servers/demo", "You did not call it", "None of your calls failed"); strings.Contains(page, "delete_file") || strings.Contains(page, "ann") {
		t.Error("bob sees what ann called")
	}
	olga.want("/console/servers/demo", link, code, "Calls of all callers in the last seven days.", "/console/audit?call=", "ann")
	// What is not there leaves the person where the other pages are.
	if status, page := ann.get("/console/servers/nothing"); status != 404 || !strings.Contains(page, `data-go="c"`) {
		t.Errorf("a server that there is not: %d %s", status, page)
	}
}
