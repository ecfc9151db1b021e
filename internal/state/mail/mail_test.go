package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/node"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestOnPostgres: mail in a PostgreSQL database.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, "^TestMail") }

// TestPolling: mail behind a pooler, where nobody is told anything.
func TestPolling(t *testing.T) {
	url := pgtest.URL(t)
	where := store.Config{URL: secret.New(url), Pooler: store.PoolerTransaction}
	here, there := process(t, where), process(t, where)
	here.watch()
	there.watch()
	crosses(t, here, there)
}

// A replica is a process with its mail.
type replica struct {
	*Office
	*node.Process
}

func process(t *testing.T, where store.Config) *replica {
	t.Helper()
	p := node.Join(t, where)
	return &replica{New(p.DB, p.Keys, p.Node), p}
}

func two(t *testing.T) (here, there *replica) {
	t.Helper()
	var where store.Config
	where.Path, where.URL = pgtest.Place(t, filepath.Join(t.TempDir(), "dragoman.db"))
	return process(t, where), process(t, where)
}

func (r *replica) watch() { r.Run(r.Watch) }

// box is a holder that keeps what it gets.
func (r *replica) box(key string) chan Message {
	got := make(chan Message, 100)
	r.Hold(key, func(m Message) { got <- m })
	return got
}

func send(t *testing.T, from *replica, m Message) {
	t.Helper()
	if err := from.Send(t.Context(), m, time.Minute); err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, got chan Message) Message {
	t.Helper()
	select {
	case m := <-got:
		return m
	case <-t.Context().Done():
	case <-time.After(30 * time.Second):
	}
	t.Fatal("nothing came")
	return Message{}
}

func rows(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *store.Tx) error { return tx.Row("SELECT count(*) FROM mail", nil, &n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// crosses sends both ways, to a node and to whoever holds a key.
func crosses(t *testing.T, here, there *replica) {
	t.Helper()
	answers, cancels := there.box("answer 7"), here.box("cancel s1 9")
	for i := range 3 {
		send(t, here, Message{Node: there.Office.Node(), Key: "answer 7", Owner: "key-1\x00\"ada\"", Body: []byte{byte(i)}})
	}
	send(t, there, Message{Key: "cancel s1 9"})
	for i := range 3 {
		if m := next(t, answers); m.Owner != "key-1\x00\"ada\"" || !bytes.Equal(m.Body, []byte{byte(i)}) || m.Node != there.Office.Node() {
			t.Errorf("message %d: %+v", i, m)
		}
	}
	if m := next(t, cancels); m.Key != "cancel s1 9" || len(m.Body) != 0 {
		t.Errorf("%+v", m)
	}
	if n := rows(t, here.Process.DB); n != 0 {
		t.Errorf("%d messages are still there", n)
	}
}

func TestMailCrosses(t *testing.T) {
	here, there := two(t)
	here.watch()
	there.watch()
	crosses(t, here, there)
}

// TestMailComesFirst: what came before anybody held its key is there for who does then.
func TestMailComesFirst(t *testing.T) {
	here, there := two(t)
	send(t, here, Message{Key: "late", Body: []byte("x")})
	if err := there.deliver(t.Context()); err != nil || rows(t, here.Process.DB) != 1 {
		t.Fatalf("%v, and %d messages", err, rows(t, here.Process.DB))
	}
	there.watch()
	if m := next(t, there.box("late")); string(m.Body) != "x" {
		t.Errorf("%+v", m)
	}
}

// TestMailOnce: of many who hold a key, one gets each message.
func TestMailOnce(t *testing.T) {
	here, there := two(t)
	var mu sync.Mutex
	seen := map[string]int{}
	const many = 3*maxTaken + 5
	for i := range many {
		send(t, here, Message{Key: fmt.Sprint("k", i%7), Body: fmt.Append(nil, i)})
	}
	var both sync.WaitGroup
	for _, r := range []*replica{here, there} {
		for i := range 7 {
			r.Hold(fmt.Sprint("k", i), func(m Message) { mu.Lock(); defer mu.Unlock(); seen[string(m.Body)]++ })
		}
		both.Go(func() {
			if err := r.deliver(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	for i := range many {
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("message %d came %d times", i, seen[fmt.Sprint(i)])
		}
	}
}

// TestMailRefused: what cannot arrive is said.
func TestMailRefused(t *testing.T) {
	here, there := two(t)
	to := there.Office.Node()
	if err := here.Send(t.Context(), Message{Node: "n99", Key: "k"}, time.Minute); !errors.Is(err, ErrGone) {
		t.Errorf("to one that never was: %v", err)
	}
	if err := here.Send(t.Context(), Message{Node: here.Office.Node(), Key: "k"}, time.Minute); !errors.Is(err, ErrGone) {
		t.Errorf("to nobody here: %v", err)
	}
	if err := here.Send(t.Context(), Message{Node: to, Key: "k", Body: make([]byte, MaxBody+1)}, time.Minute); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	for range MaxBytes / MaxBody {
		send(t, here, Message{Node: to, Key: "k", Body: make([]byte, MaxBody)})
	}
	if err := here.Send(t.Context(), Message{Node: to, Key: "k", Body: []byte("x")}, time.Minute); !errors.Is(err, ErrFull) {
		t.Errorf("full: %v", err)
	}
	send(t, there, Message{Node: here.Office.Node(), Key: "k"}) // another one's box is not
	if err := there.Process.Node.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := here.Send(t.Context(), Message{Node: to, Key: "k"}, time.Minute); !errors.Is(err, ErrGone) {
		t.Errorf("to one that left: %v", err)
	}
}

// TestMailExpires: what is too old does not come, and what is kept cannot be read in the
// store.
func TestMailExpires(t *testing.T) {
	here, there := two(t)
	if err := here.Send(t.Context(), Message{Node: there.Office.Node(), Key: "k", Owner: "key-1", Body: []byte("a secret")}, 0); err != nil {
		t.Fatal(err)
	}
	send(t, here, Message{Node: there.Office.Node(), Key: "k", Owner: "key-1", Body: []byte("a secret, later")})
	if err := here.Process.DB.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Rows("SELECT body FROM mail", nil, func(scan func(...any) error) error {
			var body []byte
			err := scan(&body)
			if bytes.Contains(body, []byte("secret")) {
				t.Error("it can be read in the store")
			}
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	got := there.box("k")
	if err := there.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := next(t, got); string(m.Body) != "a secret, later" || len(got) != 0 {
		t.Errorf("%q, and %d more", m.Body, len(got))
	}
}

// TestAlone: a process without others hands over what is for itself, and runs no statement.
func TestAlone(t *testing.T) {
	o := New(nil, nil, nil)
	var got []Message
	release := o.Hold("k", func(m Message) { got = append(got, m) })
	if err := o.Send(t.Context(), Message{Key: "k", Body: []byte("x")}, time.Minute); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", err, got)
	}
	release()
	if err := o.Send(t.Context(), Message{Key: "k"}, time.Minute); !errors.Is(err, ErrGone) {
		t.Errorf("to nobody: %v", err)
	}
	o.Watch(t.Context(), nil) // returns at once
}

// TestLocal: what is held in this process costs no statement.
func TestLocal(t *testing.T) {
	here, _ := two(t)
	before := here.Process.DB.Statements()
	got := here.box("k")
	send(t, here, Message{Key: "k"})
	send(t, here, Message{Node: here.Office.Node(), Key: "k"})
	if len(got) != 2 || here.Process.DB.Statements() != before {
		t.Errorf("%d came, with %d statements", len(got), here.Process.DB.Statements()-before)
	}
}

// TestMailAskedInVain: who waits no longer for an answer is told so, and not that there is
// one, and what was done for it ends.
func TestMailAskedInVain(t *testing.T) {
	here, there := two(t)
	here.watch()
	there.watch()
	begun, ended := make(chan struct{}), make(chan struct{})
	release := there.Answer("k", func(ctx context.Context, _ Message) []byte {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil
	})
	defer release()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() { <-begun; cancel(why) }()
	if body, err := here.Ask(ctx, Message{Node: there.Office.Node(), Key: "k"}); body != nil || !errors.Is(err, why) {
		t.Errorf("%q, %v", body, err)
	}
	<-ended
}
