package mcpsession

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/node"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/mail"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/mcp"
)

var _ mcp.Fleet = (*Sessions)(nil)

// TestOnPostgres: sessions in a PostgreSQL database.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, "^TestSession") }

// replica is one process on a store, with its node.
func replica(t *testing.T, where store.Config) (*Sessions, *nodes.Node) {
	t.Helper()
	p := node.Join(t, where)
	office := mail.New(p.DB, p.Keys, p.Node)
	p.Run(office.Watch)
	return New(p.DB, p.Keys, office), p.Node
}

func two(t *testing.T) (here, there *Sessions, node *nodes.Node) {
	t.Helper()
	var where store.Config
	where.Path, where.URL = pgtest.Place(t, filepath.Join(t.TempDir(), "dragoman.db"))
	here, _ = replica(t, where)
	there, node = replica(t, where)
	return here, there, node
}

// TestSessionIDs: an id is good at every replica, for its owner.
func TestSessionIDs(t *testing.T) {
	here, there, _ := two(t)
	id := here.Seal("ann", []byte("session"))
	if got, ok := there.Open("ann", id); !ok || string(got) != "session" {
		t.Errorf("at the other replica: %q, %t", got, ok)
	}
	for _, c := range []struct{ owner, id string }{{"bob", id}, {"ann", id[:len(id)-2] + "AA"}, {"ann", ""}, {"ann", "ä"}} {
		if _, ok := there.Open(c.owner, c.id); ok {
			t.Errorf("%s opens %q", c.owner, c.id)
		}
	}
}

// TestSessionIDsAreSpelledOnce: decoders of base64 overlook line breaks, and bits that are too
// many at the end; by another spelling a session would have the connections of another one.
func TestSessionIDsAreSpelledOnce(t *testing.T) {
	here, there, _ := two(t)
	for _, session := range []string{"session", "session1", "session12"} { // with 0, 2 and 4 such bits, in some order
		id := here.Seal("ann", []byte(session))
		others := []string{id[:7] + "\n" + id[7:], id + "\r\n"}
		for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			if other := id[:len(id)-1] + string(last); other != id {
				others = append(others, other)
			}
		}
		for _, other := range others {
			if _, ok := there.Open("ann", other); ok {
				t.Errorf("%q is also %q", id, other)
			}
		}
	}
}

// TestSessionNotes: what is written down at one replica is read and told at the other, is
// its owner's, and grows by what both write.
func TestSessionNotes(t *testing.T) {
	here, there, _ := two(t)
	if note, err := there.Load(t.Context(), "ann", "one"); note != nil || err != nil {
		t.Errorf("nothing: %q, %v", note, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan string, 100)
	var all sync.WaitGroup
	all.Go(func() {
		there.Watch(ctx, slog.New(slog.DiscardHandler), func(session string, note []byte) { told <- session + " " + string(note) })
	})
	defer all.Wait()
	defer cancel()
	add := func(s *Sessions, what string) {
		t.Helper()
		if _, err := s.Change(t.Context(), "ann", "one", func(note []byte) ([]byte, bool) { return append(bytes.Clone(note), what...), true }); err != nil {
			t.Fatal(err)
		}
	}
	add(here, "a")
	add(there, "b")
	add(here, "c")
	for timeout := time.After(time.Minute); ; {
		select {
		case got := <-told:
			if got == "one abc" {
				note, err := there.Load(t.Context(), "ann", "one")
				if string(note) != "abc" || err != nil {
					t.Errorf("read: %q, %v", note, err)
				}
				if note, _ := there.Load(t.Context(), "bob", "one"); note != nil {
					t.Errorf("somebody else reads %q", note)
				}
				return
			}
		case <-timeout:
			t.Fatal("the other replica is not told")
		}
	}
}

// TestSessionNotesOfMany: clients that come or go at once are not each looked for among all
// the others.
func TestSessionNotesOfMany(t *testing.T) {
	s, _, _ := two(t)
	const many = 300
	last := strconv.Itoa(many - 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, told, watched := time.Now(), 0, make(chan struct{})
	go func() {
		defer close(watched)
		s.Watch(ctx, slog.New(slog.DiscardHandler), func(session string, _ []byte) {
			if told++; session == last {
				cancel()
			}
		})
	}()
	for i := range many {
		if _, err := s.Change(t.Context(), "ann", strconv.Itoa(i), func([]byte) ([]byte, bool) { return []byte("x"), false }); err != nil {
			t.Fatal(err)
		}
	}
	<-watched
	if looks := 2 + int(time.Since(began)/pause); told > many*looks {
		t.Errorf("%d were told of %d times, in %s", many, told, time.Since(began))
	}
}

// TestSessionNotesLast: what is to last is kept for as long as a session may last, and the
// rest, which every client that listens leaves behind, for a day.
func TestSessionNotesLast(t *testing.T) {
	s, _, _ := two(t)
	now := time.UnixMilli(1_000_000_000_000)
	s.now = func(*store.Tx) (time.Time, error) { return now, nil }
	for _, c := range []struct {
		lasts bool
		life  time.Duration
	}{{false, 24 * time.Hour}, {true, seal.Session.Life}, {false, 24 * time.Hour}} {
		if _, err := s.Change(t.Context(), "ann", "one", func([]byte) ([]byte, bool) { return []byte("x"), c.lasts }); err != nil {
			t.Fatal(err)
		}
		var expires int64
		if err := s.db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Row("SELECT expires FROM mcp_sessions WHERE id = $1", []any{"one"}, &expires)
		}); err != nil || expires != store.Time(now.Add(c.life)) {
			t.Errorf("lasts: %t: until %s, %v", c.lasts, store.FromTime(expires), err)
		}
	}
}

// TestSessionSends: what is sent reaches the replica that it is for, or whoever has what it
// is about, and one that has ended is known to have.
func TestSessionSends(t *testing.T) {
	here, there, node := two(t)
	got := make(chan string, 10)
	defer there.Hold("k", func(owner string, body []byte) { got <- owner + " " + string(body) })()
	for _, to := range []string{there.Node(), ""} {
		if alive, err := here.Send(t.Context(), to, "k", "ann", []byte("to "+to)); !alive || err != nil {
			t.Fatalf("to %q: %t, %v", to, alive, err)
		}
		select {
		case said := <-got:
			if said != "ann to "+to {
				t.Errorf("got %q", said)
			}
		case <-time.After(time.Minute):
			t.Fatalf("to %q: nothing came", to)
		}
	}
	if err := node.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive, err := here.Send(t.Context(), there.Node(), "k", "ann", nil); alive || err != nil {
		t.Errorf("one that has ended: %t, %v", alive, err)
	}
}
