package gateway

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// TestDatabaseAway: while PostgreSQL is away, what may change something does not run, what
// reads goes on, /readyz says so and stays ready; all of it comes back by itself, and the
// audit log is whole.
func TestDatabaseAway(t *testing.T) {
	cable, url := pgtest.Lay(t, pgtest.URL(t))
	entry, _ := fakes(t, fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "write"}, {Name: "read"}}})
	file := config.Default()
	entry.Effects.ReadOnly = []string{"read"}
	file.MCPServers = map[string]servers.Config{"web": entry}
	file.Listen, file.Store.URL, file.Store.Key = "127.0.0.1:0", secret.New(url), storetest.Key
	file.Policy = []policy.Rule{{Allow: []string{"*"}}}
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	s := serve(t, g)
	if err := g.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	c := dial(t, s.url+"/mcp", mcp.Modern)
	try := func(name string, n int) error {
		res, err := call(within(t), c, tool(t, c, name), n)
		return fine(res, err, n)
	}
	ready := func() (int, string) {
		answer, err := http.Get(s.url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	if err := try("write", 1); err != nil {
		t.Fatal(err)
	}
	cable.Pull(true)
	if err := try("write", 2); err == nil || !strings.Contains(err.Error(), "did not run") {
		t.Errorf("what changes something, while the database is away: %v", err)
	}
	if err := try("read", 3); err != nil {
		t.Errorf("what reads, while the database is away: %v", err)
	}
	if status, text := ready(); status != http.StatusOK || !strings.Contains(text, "but for what has to be written") || !strings.Contains(text, "cannot be reached") {
		t.Errorf("readyz: %d %s", status, text)
	}
	cable.Pull(false)
	if err := try("write", 4); err != nil {
		t.Errorf("back again: %v", err)
	}
	if status, text := ready(); status != http.StatusOK || strings.Contains(text, "trouble") {
		t.Errorf("readyz: %d %s", status, text)
	}
	if _, err := g.ledger.Audit.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNoWritablePlace: where nothing can be written and nothing has to be, the gateway
// starts, says once what is off, and remembers in memory.
func TestNoWritablePlace(t *testing.T) {
	file := config.Default()
	t.Setenv("XDG_STATE_HOME", "/dev/null/nowhere")
	file.Auth.APIKeys = []secret.Text{secret.New("a-key-that-is-long-enough-1234567890")}
	var said bytes.Buffer
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if strings.Count(said.String(), "level=WARN") != 1 || !strings.Contains(said.String(), "nothing is kept") {
		t.Errorf("it says: %s", said.String())
	}
	if g.ledger != nil || g.remembered == nil || g.trouble() != nil {
		t.Errorf("ledger %v, memory %v, trouble %v", g.ledger, g.remembered, g.trouble())
	}
}
