// Package mail carries what has to reach one process among those that share a store: the
// answer to a call that waits in another one, or that it is cancelled. A message is a row
// until its reader has taken it, once; a hint brings the reader sooner (LISTEN), and
// looking each second is enough.
//
// Somebody who waits for messages holds their key ([Office.Hold]), and costs nobody
// anything: no statement is run for it. What is sent to a key that is held in the same
// process is handed over at once, without the store, which is all there is to it where a
// gateway is alone.
package mail

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// Bounds of mail.
const (
	// MaxBody is the largest body, in bytes.
	MaxBody = 8 << 20
	// MaxWaiting is how many messages wait for one node at most, and MaxBytes how large
	// they are together. What waits for whoever holds its key is counted as one node's.
	MaxWaiting, MaxBytes = 1024, 64 << 20
	// MaxLife is how long a message waits at most.
	MaxLife = 10 * time.Minute

	maxTaken = 64 // messages that are taken at a time
)

// topic is raised when there is mail.
const topic = "mail"

// Errors of sending.
var (
	// ErrGone: the node that a message is for is not alive, or there is nobody else.
	ErrGone = errors.New("the replica that this is for has ended")
	// ErrFull: too much waits for the node.
	ErrFull = errors.New("too much waits for the replica that this is for")
	// ErrTooLarge: the body is larger than [MaxBody].
	ErrTooLarge = errors.New("this is too large to be handed to another replica")
)

// A Message is something that one process says to another.
type Message struct {
	// Node is whom it is for ([nodes.Node.ID]); empty is for whoever holds the key.
	Node string
	// Key is what it is about. Whoever holds the key gets it.
	Key string
	// Owner is whose Body is, as the tables name owners; it may be empty. When the owner is
	// erased, so is the message.
	Owner string
	Body  []byte
}

// An Office sends and delivers the mail of a process. Make it with [New]; it is safe for
// concurrent use.
type Office struct {
	db    *store.DB    // nil where the process is alone
	vault *vault.Vault // nil with it
	node  *nodes.Node

	mu      sync.Mutex
	holds   map[string]*hold
	waiting map[string]bool // keys of messages for anybody that nobody here held when we last looked
	again   chan struct{}   // somebody holds such a key now
}

// hold is somebody who waits.
type hold struct{ take func(Message) }

// New returns the mail of a node. Where the node is nil the process is alone, and neither a
// store nor keys are needed.
func New(db *store.DB, keys *vault.Vault, node *nodes.Node) *Office {
	o := &Office{node: node, holds: map[string]*hold{}, again: make(chan struct{}, 1)}
	if node != nil {
		o.db, o.vault = db, keys
	}
	return o
}

// Node is the id of the node whose mail this is: messages to it reach this process. It is
// empty where the process is alone.
func (o *Office) Node() string { return o.node.ID() }

// Hold has what is sent to a key handed to take, in this process, until release is called.
// take must not block. A key has one holder in a process: another one takes its place. It
// costs no statement.
func (o *Office) Hold(key string, take func(Message)) (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := &hold{take}
	o.holds[key] = h
	if o.waiting[key] {
		delete(o.waiting, key)
		select {
		case o.again <- struct{}{}:
		default:
		}
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.holds[key] == h {
			delete(o.holds, key)
		}
	}
}

// holder returns who holds a key here; nil for nobody.
func (o *Office) holder(key string) *hold {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds[key]
}

// Send sends a message, which waits for its reader as long as life, and [MaxLife] at most.
// It is handed over at once where its key is held here; else nil says that it is written,
// not that it was read: whoever has to know has the reader answer. It is delivered at most
// once. [ErrGone] says that it will not be: the node is dead, or there is no other one.
func (o *Office) Send(ctx context.Context, m Message, life time.Duration) error {
	if m.Node == "" || m.Node == o.Node() {
		if h := o.holder(m.Key); h != nil {
			h.take(m)
			return nil
		}
		if m.Node != "" {
			return ErrGone // whoever held it here does not wait any more
		}
	}
	switch {
	case o.db == nil:
		return ErrGone
	case len(m.Body) > MaxBody:
		return fmt.Errorf("%w: %d bytes of %d", ErrTooLarge, len(m.Body), MaxBody)
	}
	id, life := rand.Text(), min(life, MaxLife)
	return o.db.Write(ctx, func(tx *store.Tx) error {
		if m.Node != "" {
			if alive, err := o.node.Alive(tx, m.Node); err != nil || !alive {
				return errors.Join(err, gone(alive))
			}
		}
		now, err := tx.Now()
		if err != nil {
			return err
		}
		var n, size int64
		if err := tx.Row("SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM mail WHERE node = $1 AND expires > $2", []any{m.Node, store.Time(now)}, &n, &size); err != nil {
			return err
		}
		if n >= MaxWaiting || size+int64(len(m.Body)) > MaxBytes {
			return ErrFull
		}
		owner := store.Owner(m.Owner)
		closed, err := o.vault.Close(tx, owner, place(id), m.Body)
		if err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO mail (id, node, key, owner, body, size, made, expires) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
			id, m.Node, m.Key, owner, closed, len(m.Body), store.Time(now), store.Time(now.Add(life))); err != nil {
			return err
		}
		tx.Raise(topic)
		return nil
	})
}

func gone(alive bool) error {
	if alive {
		return nil
	}
	return ErrGone
}

func place(id string) string { return "mail " + id }

// Waiting returns how many messages nobody has read yet, of all nodes.
func (o *Office) Waiting(ctx context.Context) (n int64, err error) {
	if o.db == nil {
		return 0, nil
	}
	err = o.db.Read(ctx, func(tx *store.Tx) error {
		return tx.Row("SELECT count(*) FROM mail", nil, &n)
	})
	return n, err
}

// Watch delivers what comes until ctx ends. What goes wrong is said to log once, until it
// goes well again: it is tried again.
func (o *Office) Watch(ctx context.Context, log *slog.Logger) {
	if o.db == nil {
		return
	}
	changed := o.db.Changed(ctx, topic)
	said := false
	for {
		var again <-chan time.Time
		err := o.deliver(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrClosed):
			return
		case err != nil:
			if !said {
				log.Error("mail of other replicas cannot be read", "error", err)
			}
			again = time.After(store.LookEvery)
		}
		said = err != nil
		select {
		case <-changed:
		case <-o.again:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// deliver takes what there is for keys that are held here, and hands it to their holders,
// in the order in which it was sent.
func (o *Office) deliver(ctx context.Context) error {
	for {
		ids, err := o.look(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		taken, err := o.take(ctx, ids)
		for _, m := range taken {
			if h := o.holder(m.Key); h != nil {
				h.take(m)
			}
		}
		if err != nil || len(ids) < maxTaken {
			return err
		}
	}
}

// look returns the messages that are for holders here, the oldest first.
func (o *Office) look(ctx context.Context) (ids []string, err error) {
	waiting := map[string]bool{}
	o.mu.Lock()
	o.waiting = waiting // before we look, so that who holds a key meanwhile is seen either way
	o.mu.Unlock()
	type row struct{ id, node, key string }
	var rows []row
	if err := o.db.Read(ctx, func(tx *store.Tx) error {
		rows = nil
		now, err := tx.Now()
		if err != nil {
			return err
		}
		return tx.Rows("SELECT id, node, key FROM mail WHERE node IN ($1, '') AND expires > $2 ORDER BY made, id", []any{o.Node(), store.Time(now)}, func(scan func(...any) error) error {
			var r row
			err := scan(&r.id, &r.node, &r.key)
			rows = append(rows, r)
			return err
		})
	}); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range rows {
		switch {
		case o.holds[r.key] == nil:
			waiting[r.key] = true
		case len(ids) < maxTaken:
			ids = append(ids, r.id)
		}
	}
	return ids, nil
}

// take takes messages, so that nobody else does, and returns those that nobody had taken.
func (o *Office) take(ctx context.Context, ids []string) (taken []Message, err error) {
	marks, args := make([]string, len(ids)), make([]any, len(ids))
	for i, id := range ids {
		marks[i], args[i] = fmt.Sprintf("$%d", i+1), id
	}
	these := " FROM mail WHERE id IN (" + strings.Join(marks, ", ") + ")"
	err = o.db.Write(ctx, func(tx *store.Tx) error {
		taken = nil
		if err := tx.Lock(topic, "take"); err != nil {
			return err
		}
		var read []Message
		var found []string
		if err := tx.Rows("SELECT id, node, key, owner, body"+these+" ORDER BY made, id", args, func(scan func(...any) error) error {
			var m Message
			var id string
			err := scan(&id, &m.Node, &m.Key, &m.Owner, &m.Body)
			read, found = append(read, m), append(found, id)
			return err
		}); err != nil || len(read) == 0 {
			return err
		}
		for i, m := range read {
			body, err := o.vault.Open(tx, m.Owner, place(found[i]), m.Body)
			if errors.Is(err, vault.ErrErased) {
				continue
			}
			if err != nil {
				return err
			}
			m.Owner, m.Body = strings.Join(store.OwnerParts(m.Owner), "\x00"), body
			taken = append(taken, m)
		}
		_, err := tx.Exec("DELETE"+these, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}
