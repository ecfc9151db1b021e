// Package mcpsession lets every process on a store serve the sessions of legacy MCP clients:
// replicas, and a gateway that was started again. What a session is stands in its id, sealed to
// its owner; what a client says later is a row that the replicas read when it changes; and what
// has to reach one of them goes by mail. It is the Fleet of package mcp.
package mcpsession

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"log/slog"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/mail"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// topic is raised when something of a session is written down.
const topic = "mcp sessions"

const (
	// sendLife is how long a message to a replica waits, and askLife one to whichever has
	// what it is about, if any has.
	sendLife, askLife = 30 * time.Second, 5 * time.Second
	// listening is how long it is kept who listens.
	listening = 24 * time.Hour
	// slack is how much later than its own time a change may be seen.
	slack = 15 * time.Second
	// pause is how long nothing is looked for after a look, which reads all that was written
	// within slack: many clients that come or go at once each write something.
	pause = store.LookEvery / 2
)

// Sessions are those of the clients of all replicas on a store. Make it with [New]; it is
// safe for concurrent use.
type Sessions struct {
	db    *store.DB
	vault *vault.Vault
	mail  *mail.Office
	node  string
	now   func(*store.Tx) (time.Time, error)
}

// New returns the sessions of the processes on a store. The office is that of this one.
func New(db *store.DB, keys *vault.Vault, office *mail.Office) *Sessions {
	// One that is alone needs a name, too: clients still speak of what the last one asked.
	return &Sessions{db: db, vault: keys, mail: office, node: cmp.Or(office.Node(), rand.Text()), now: (*store.Tx).Now}
}

// Node names this process to the others.
func (s *Sessions) Node() string { return s.node }

// Seal makes an id of what a session is, for its owner. It is good for [seal.Session].Life.
func (s *Sessions) Seal(owner string, session []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.vault.Ring().Close(seal.Session, seal.Bind([]byte(owner)), session, time.Time{}))
}

// Open returns what Seal made an id of, at whichever replica. An id that is spelled in
// another way is none: what belongs to a session is known by its id.
func (s *Sessions) Open(owner, id string) (session []byte, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || id != base64.RawURLEncoding.EncodeToString(sealed) {
		return nil, false
	}
	session, err = s.vault.Ring().Open(seal.Session, seal.Bind([]byte(owner)), sealed)
	return session, err == nil
}

// Load returns what is written down about a session; nil for nothing.
func (s *Sessions) Load(ctx context.Context, owner, session string) (note []byte, err error) {
	err = s.db.Read(ctx, func(tx *store.Tx) (err error) {
		note, err = s.read(tx, store.Owner(owner), session)
		return err
	})
	return note, err
}

func (s *Sessions) read(tx *store.Tx, owner, session string) (note []byte, err error) {
	var closed []byte
	err = tx.Row("SELECT note FROM mcp_sessions WHERE id = $1 AND owner = $2", []any{session, owner}, &closed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	note, err = s.vault.Open(tx, owner, place(session), closed)
	if errors.Is(err, vault.ErrErased) {
		return nil, nil
	}
	return note, err
}

func place(session string) string { return "mcp session " + session }

// Change writes down what change makes of what is written down about a session, and
// returns it. It may run change more than once. The other replicas read it within two seconds.
// What is not to last is kept for a day.
func (s *Sessions) Change(ctx context.Context, owner, session string, change func(note []byte) (changed []byte, lasts bool)) (note []byte, err error) {
	owner = store.Owner(owner)
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(topic, session); err != nil {
			return err
		}
		now, err := s.now(tx)
		if err != nil {
			return err
		}
		old, err := s.read(tx, owner, session)
		if err != nil {
			return err
		}
		var lasts bool
		note, lasts = change(old)
		life := listening
		if lasts {
			life = seal.Session.Life
		}
		closed, err := s.vault.Close(tx, owner, place(session), note)
		if err != nil {
			return err
		}
		tx.Raise(topic)
		_, err = tx.Exec(`INSERT INTO mcp_sessions (id, owner, note, changed, expires) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO UPDATE SET note = excluded.note, changed = excluded.changed, expires = excluded.expires`,
			session, owner, closed, store.Time(now), store.Time(now.Add(life)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return note, nil
}

// Hold has what is sent to a key handed to take, here, until release is called. It costs no
// statement. take must not block.
func (s *Sessions) Hold(key string, take func(owner string, body []byte)) (release func()) {
	return s.mail.Hold(key, func(m mail.Message) { take(m.Owner, m.Body) })
}

// Send sends something to whoever holds a key: at a replica, or, where node is empty, at the
// first that does, if any does within seconds. alive is false where the replica has ended.
func (s *Sessions) Send(ctx context.Context, node, key, owner string, body []byte) (alive bool, err error) {
	life := sendLife
	if node == "" {
		life = askLife
	}
	err = s.mail.Send(ctx, mail.Message{Node: node, Key: key, Owner: owner, Body: body}, life)
	if errors.Is(err, mail.ErrGone) {
		return false, nil
	}
	return err == nil, err
}

// Watch tells of what is written down, by whichever replica, until ctx ends; now and then
// once more of what was told before. What goes wrong is said to log once, until it goes
// well again: it is tried again.
func (s *Sessions) Watch(ctx context.Context, log *slog.Logger, told func(session string, note []byte)) {
	changed := s.db.Changed(ctx, topic)
	said, since := false, int64(-1)
	for {
		var again <-chan time.Time
		notes, last, err := s.since(ctx, since)
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrClosed):
			return
		case err != nil:
			if !said {
				log.Error("what MCP clients said to other replicas cannot be read", "error", err)
			}
			again = time.After(store.LookEvery)
		default:
			since = last
			for _, n := range notes {
				told(n.session, n.note)
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
		said = err != nil
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// changedNote is one that was written down.
type changedNote struct {
	session, owner string
	note           []byte
}

// since returns what was written down after a time, and the time from which to look next.
// What is written at a time is seen a little later, and so looked at more than once.
func (s *Sessions) since(ctx context.Context, since int64) (notes []changedNote, last int64, err error) {
	err = s.db.Read(ctx, func(tx *store.Tx) error {
		notes = nil
		now, err := s.now(tx)
		if err != nil {
			return err
		}
		if last = store.Time(now.Add(-slack)); since < 0 {
			since = last
		}
		if err := tx.Rows("SELECT id, owner, note FROM mcp_sessions WHERE changed >= $1 ORDER BY changed, id", []any{since}, func(scan func(...any) error) error {
			var n changedNote
			err := scan(&n.session, &n.owner, &n.note)
			notes = append(notes, n)
			return err
		}); err != nil {
			return err
		}
		readable := notes[:0]
		for _, n := range notes {
			n.note, err = s.vault.Open(tx, n.owner, place(n.session), n.note)
			if errors.Is(err, vault.ErrErased) {
				continue
			}
			if err != nil {
				return err
			}
			readable = append(readable, n)
		}
		notes = readable
		return nil
	})
	return notes, last, err
}
