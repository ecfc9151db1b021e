package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/mail"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// replica returns a gateway on a PostgreSQL database.
func replica(t *testing.T, url string, change func(*config.File)) *Gateway {
	t.Helper()
	file := config.Default()
	file.Store.URL = secret.New(url)
	file.Store.Key = storetest.Key
	if change != nil {
		change(file)
	}
	g, err := New(file, Options{Replica: true, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func standings(t *testing.T, db *store.DB) (all []nodes.Standing) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *store.Tx) (err error) { all, err = nodes.List(tx); return err }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReplicaClocks: what one replica has sealed for a time ends by the database's clock, and not
// by that of the machine that opens it.
func TestReplicaClocks(t *testing.T) {
	url := pgtest.URL(t)
	pgtest.SQL(t, url, "CREATE SCHEMA late; CREATE FUNCTION late.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() - interval '10 min' $$")
	right, ahead := replica(t, url, nil), replica(t, url+"&search_path=public,late,pg_catalog", nil)
	sealed := right.seals().Close(seal.Continuation, nil, []byte("x"), time.Now().Add(-5*time.Minute))
	if _, err := right.seals().Open(seal.Continuation, nil, sealed); !errors.Is(err, seal.ErrExpired) {
		t.Errorf("by the right clock: %v", err)
	}
	if _, err := ahead.seals().Open(seal.Continuation, nil, sealed); err != nil {
		t.Errorf("by one of 10 minutes before, which is told so: %v", err)
	}
}

// TestReplicas: gateways on one database know of each other and reach each other, and one
// that ends is gone.
func TestReplicas(t *testing.T) {
	url := pgtest.URL(t)
	a, b := replica(t, url, nil), replica(t, url, nil)
	all := standings(t, a.ledger.DB)
	if len(all) != 2 || all[0].ID != a.node.ID() || all[1].ID != b.node.ID() || all[0].Setup == "" || all[0].Setup != all[1].Setup {
		t.Fatalf("%+v", all)
	}
	got := make(chan mail.Message, 1)
	b.mail.Hold("k", func(m mail.Message) { got <- m })
	if err := a.mail.Send(t.Context(), mail.Message{Node: b.node.ID(), Key: "k", Body: []byte("x")}, time.Minute); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	select {
	case m := <-got:
		if string(m.Body) != "x" {
			t.Errorf("%+v", m)
		}
	case <-ctx.Done():
		t.Fatal("no mail came")
	}
	b.Close()
	if all := standings(t, a.ledger.DB); len(all) != 1 {
		t.Errorf("one that ended is there: %+v", all)
	}
}

// TestNoReplica: a gateway on a file joins nobody, and writes nothing down for it.
func TestNoReplica(t *testing.T) {
	file := config.Default()
	file.Store.Path = store.Memory
	g, err := New(file, Options{Replica: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if g.node != nil || len(standings(t, g.ledger.DB)) != 0 {
		t.Errorf("it is %s", g.node.ID())
	}
}

// TestSessionsOutlive: a legacy MCP client that goes on where the gateway was started again is
// served, since many begin no other session. What it has ended stays ended, and an answer to
// what the last process asked is nobody's.
func TestSessionsOutlive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	start := func() (url string, stop func()) {
		file := config.Default()
		file.Store.Path = path
		g, err := New(file, Options{Replica: true})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(g.Handler())
		stop = sync.OnceFunc(func() { server.Close(); g.Close() })
		t.Cleanup(stop)
		return server.URL + "/mcp", stop
	}
	url, stop := start()
	begin := func() *stranger {
		s, err := newStranger(t.Context(), url, mcp.Legacy, http.DefaultClient)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	says := func(s *stranger, body string, want int) {
		t.Helper()
		s.url = url
		res, err := s.post(t.Context(), body, "", "")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s", body, res.Status)
		}
	}
	const list, level = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"error"}}`
	stays, ends := begin(), begin()
	says(stays, level, http.StatusOK)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	req.Header.Set("Mcp-Session-Id", ends.session)
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusNoContent {
		t.Fatalf("%v, %v", res, err)
	}
	res.Body.Close()
	says(ends, list, http.StatusNotFound)
	stop()
	url, _ = start()
	says(stays, list, http.StatusOK)
	says(stays, `{"jsonrpc":"2.0","id":"LAST.1","result":{}}`, http.StatusNotFound)
	says(ends, list, http.StatusNotFound)
}

// TestNotice: a replica that is to stop says so while it still takes what comes.
func TestNotice(t *testing.T) {
	g := replica(t, pgtest.URL(t), func(f *config.File) { f.Listen, f.Replicas.Notice = "127.0.0.1:0", 2*time.Second })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := serve(t, g)
	get := func(path string) (int, string) {
		res, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if status, _ := get("/readyz"); status != http.StatusOK {
		t.Fatalf("it is not ready: %d", status)
	}
	s.stop()
	<-g.stopping
	if status, body := get("/readyz"); status != http.StatusServiceUnavailable || !strings.HasPrefix(body, "draining") {
		t.Errorf("/readyz says %d %s", status, body)
	}
	if status, _ := get("/v1/models"); status != http.StatusOK {
		t.Errorf("a request meanwhile: %d", status)
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve = %v", err)
	}
	if _, err := http.Get(s.url + "/readyz"); err == nil {
		t.Error("it still listens")
	}
}
