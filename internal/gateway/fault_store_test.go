package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// grown makes a store with an audit log in it, of a size at the least, and returns how
// many records that took.
func grown(t *testing.T, file *config.File, size int64) (records int) {
	t.Helper()
	book, err := ledger.Open(t.Context(), ledger.Config{Store: file.Store, Audit: file.Audit, Approvals: file.Approvals}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := book.Close(); err != nil {
			t.Error(err)
		}
	}()
	arguments := json.RawMessage(`{"text":"` + strings.Repeat("x", 1500) + `"}`)
	for held := int64(0); held < size; {
		err := book.DB.Write(t.Context(), func(tx *store.Tx) error {
			for range 2000 {
				records++
				r := audit.Record{Kind: audit.Intent, Call: fmt.Sprintf("call-%d", records), Caller: fmt.Sprintf("key:%d", records%50), Server: "web", Target: "echo", Verdict: "allow", Arguments: arguments}
				if _, err := book.Audit.Tx(r)(tx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file.Store.Path)
		if err != nil {
			t.Fatal(err)
		}
		held = info.Size()
	}
	return records
}

// Fault 27: the store is large. A gateway that starts with it looks at its end alone.
func TestFaultLargeStore(t *testing.T) {
	size := int64(often(20, 1<<10)) << 20
	entry, _ := fakes(t, fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})
	conf := config.Default()
	conf.MCPServers = map[string]servers.Config{"web": entry}
	conf.Listen, conf.Store.Path = "127.0.0.1:0", filepath.Join(t.TempDir(), "store.db")
	conf.Audit.Arguments = audit.Full
	records := grown(t, conf, size)

	began := time.Now()
	g, err := New(conf, Options{Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	ready := time.Since(began)
	s := serve(t, g) // which looks after the store, too
	c := dial(t, s.url+"/mcp", mcp.Modern)
	echo := tool(t, c, "echo")
	res, err := call(within(t), c, echo, 1)
	if err := fine(res, err, 1); err != nil {
		t.Error(err)
	}
	called := time.Since(began)
	verifying := time.Now()
	check, err := g.ledger.Audit.Verify(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Error(err)
	}
	took := time.Since(verifying)
	t.Logf("a store of %d MiB, %d records: ready after %s, the first call that may change something answered after %s; all of it verified in %s, %.0f records a second",
		size>>20, records, ready.Round(time.Millisecond), called.Round(time.Millisecond), took.Round(time.Millisecond), float64(check.Records)/took.Seconds())
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}
