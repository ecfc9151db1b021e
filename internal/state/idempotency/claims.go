package idempotency

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/content"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// Claims are the requests with a key of all processes that share a store: which of them
// may have changed something, and their answers. A request is written down with the first
// thing that it does ([Run.Claim]), or else with its answer. Make it with [NewClaims].
type Claims struct {
	db     *store.DB
	vault  *vault.Vault
	config atomic.Pointer[Config]
	rooms  content.Rooms
	wait   time.Duration // for a request that runs elsewhere
	lease  time.Duration
	unseen atomic.Pointer[time.Time] // when the store could not be used last
	here   sync.Map                  // the holdings of this process, by id
}

// How long one that runs elsewhere is waited for, and how long after its last sign of
// life a request is taken to run.
const (
	patience = 30 * time.Second
	lease    = 15 * time.Second
	// leastClaim is how long a request that runs is known at the least.
	leastClaim = time.Hour
)

// topic is raised when a request has ended that others may wait for.
const topic = "claims"

// NewClaims returns the claims in db, under the keys of v. The bytes of a config are those
// of one owner's answers.
func NewClaims(db *store.DB, v *vault.Vault, config Config) *Claims {
	c := &Claims{db: db, vault: v, wait: patience, lease: lease}
	c.config.Store(&config)
	return c
}

// A claim is what is written down of a request.
type claim struct {
	print   string
	held    bool // somebody runs it
	here    bool // this process does
	changed bool
	answer  *answer // nil for none
}

func (k Key) digest() string { return content.Digest(k.Apart + "\x00" + k.Name) }

func (k Key) place() string { return "claim " + k.digest() }

func (k Key) print() string { return hex.EncodeToString(k.Print[:]) }

// missed notes that the store could not be used now, where err says so, and returns err.
func (c *Claims) missed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && !errors.Is(err, vault.ErrOtherKey) {
		now := time.Now()
		c.unseen.Store(&now)
	}
	return err
}

// alive reports whether somebody lives whose lease is that. Where the store could not be used
// a while ago, others may not have been able to say so either: they are given the time of a
// lease.
func (c *Claims) alive(until int64, now time.Time) bool {
	unseen := c.unseen.Load()
	return until > store.Time(now) || unseen != nil && time.Since(*unseen) < c.lease
}

// find returns what is written down of a request; nil for nothing. over is when one ended of which
// nothing need be known; zero for none.
func (c *Claims) find(ctx context.Context, key Key) (found *claim, over int64, err error) {
	err = c.db.Read(ctx, func(tx *store.Tx) error {
		found, over = nil, 0
		now, err := tx.Now()
		if err != nil {
			return err
		}
		var at claim
		var holder string
		var until, changed int64
		var closed []byte
		err = tx.Row("SELECT print, holder, lease, changed, answer FROM claims WHERE owner = $1 AND digest = $2 AND expires > $3",
			[]any{store.Owner(key.Owner), key.digest(), store.Time(now)}, &at.print, &holder, &until, &changed, &closed)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		_, at.here = c.here.Load(holder)
		at.held, at.changed = at.here || holder != "" && c.alive(until, now), changed != 0
		if len(closed) > 0 {
			plain, err := c.vault.Open(tx, store.Owner(key.Owner), key.place(), closed)
			if err == nil {
				at.answer, err = decodeAnswer(plain)
			}
			if err != nil && !errors.Is(err, vault.ErrErased) {
				return err
			}
		}
		if found = &at; at.answer == nil && !at.held && !at.changed {
			found, over = nil, until // or its answer was erased
		}
		return nil
	})
	return found, over, c.missed(ctx, err)
}

// await returns what is written down of a request once nobody else runs it, as find does. It waits
// a while for one that runs elsewhere: then it is [ErrRunning]. One that runs here comes to its end.
func (c *Claims) await(ctx context.Context, key Key) (found *claim, over int64, err error) {
	found, over, err = c.find(ctx, key)
	if err != nil || found == nil || !found.held || found.print != key.print() {
		return found, over, err
	}
	ctx, stop := context.WithCancel(ctx) // of the watch
	defer stop()
	changed, until := c.db.Changed(ctx, topic), time.Now().Add(c.wait)
	for {
		found, over, err := c.find(ctx, key)
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		if err != nil || found == nil || !found.held {
			return found, over, err
		}
		again := c.lease / 3 // its holder may have died
		if left := time.Until(until); !found.here && left <= 0 {
			return nil, 0, ErrRunning
		} else if !found.here {
			again = min(again, left)
		}
		look := time.NewTimer(again)
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			look.Stop()
			return nil, 0, context.Cause(ctx)
		}
		look.Stop()
	}
}

// used lets an answer that was given again be kept as long again.
func (c *Claims) used(key Key) {
	c.db.Append(func(tx *store.Tx) error {
		now, err := tx.Now()
		if err == nil {
			_, err = tx.Exec("UPDATE claims SET expires = $1 WHERE owner = $2 AND digest = $3", store.Time(now.Add(c.config.Load().TTL)), store.Owner(key.Owner), key.digest())
		}
		return err
	}, nil)
}

// A holding is a request that runs here, as it is, or may be, written down.
type holding struct {
	*Claims
	key   Key
	id    string // of this run
	again bool   // it has run before, and changed something
	tried atomic.Bool
	seen  atomic.Pointer[time.Time] // when it last was known to hold the request, by our clock
	over  atomic.Int64              // when the last one ended of which it knows what that did
}

func (c *Claims) begin(key Key, again bool) *holding {
	h := &holding{Claims: c, key: key, id: rand.Text(), again: again}
	h.saw()
	c.here.Store(h.id, h)
	return h
}

// ours is the condition under which a row is this run's to change: it holds the request;
// or it knew that the request had run before and come to no answer, which is still so, and
// nobody holds it; or its time is over; or the one that ended is one of which it knows.
const ours = ` WHERE claims.holder = $8 OR claims.expires <= $9
	OR ($10 = 1 AND claims.print = excluded.print AND claims.changed = 1 AND claims.size = 0 AND (claims.holder = '' OR claims.lease <= $9))
	OR (claims.holder = '' AND claims.changed = 0 AND claims.size = 0 AND claims.lease <= $11)`

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// claim writes down, in the transaction of what may change something, that the request
// runs here, or that it still does. It is [ErrRunning] where another one was quicker, or
// has taken its place.
func (h *holding) claim(tx *store.Tx) error {
	if h.doubtful() {
		n, err := h.renew(tx)
		if err == nil && n == 0 {
			err = ErrRunning
		}
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	n, err := tx.Exec(`INSERT INTO claims (owner, digest, print, holder, lease, changed, answer, size, expires) VALUES ($1, $2, $3, $4, $5, 1, $6, 0, $7)
		ON CONFLICT (owner, digest) DO UPDATE SET holder = excluded.holder, lease = excluded.lease, changed = 1, expires = excluded.expires`+ours,
		store.Owner(h.key.Owner), h.key.digest(), h.key.print(), h.id, store.Time(now.Add(h.lease)), []byte{}, store.Time(now.Add(max(h.config.Load().TTL, leastClaim))),
		h.id, store.Time(now), number(h.again), h.over.Load())
	switch {
	case err != nil:
		return err
	case n == 0:
		return ErrRunning
	}
	h.tried.Store(true)
	h.saw()
	return nil
}

// doubtful reports whether others may have taken it for dead, and be through with the request.
func (h *holding) doubtful() bool { return h.tried.Load() && time.Since(*h.seen.Load()) > h.lease }

// held is [ErrRunning] where another one has taken its place.
func (h *holding) held(ctx context.Context) error {
	if !h.doubtful() {
		return nil
	}
	return h.db.Write(ctx, h.claim)
}

// saw notes that it holds the request now.
func (h *holding) saw() {
	now := time.Now()
	h.seen.Store(&now)
}

// renew says that the request still runs here, and returns 0 where it does not.
func (h *holding) renew(tx *store.Tx) (n int64, err error) {
	now, err := tx.Now()
	if err == nil {
		n, err = tx.Exec("UPDATE claims SET lease = $1 WHERE owner = $2 AND digest = $3 AND holder = $4",
			store.Time(now.Add(h.lease)), store.Owner(h.key.Owner), h.key.digest(), h.id)
	}
	if err == nil && n > 0 {
		h.saw()
	}
	return n, err
}

// live tells others that the request still runs, until ctx ends.
func (h *holding) live(ctx context.Context) {
	ticker := time.NewTicker(h.lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if h.tried.Load() {
			// What fails ends with the lease: others then take it for dead, and the next
			// thing that it does is refused.
			_ = h.missed(ctx, h.db.Write(ctx, func(tx *store.Tx) error {
				_, err := h.renew(tx)
				return err
			}))
		}
	}
}

// end writes down what became of the request: its answer, nil for none, and whether it
// may have changed something.
func (h *holding) end(ctx context.Context, a *answer, changed bool) error {
	if a == nil && !h.tried.Load() {
		return nil // there is nothing to write down
	}
	return h.db.Write(ctx, func(tx *store.Tx) error {
		if h.tried.Load() {
			tx.Raise(topic)
		}
		if a == nil {
			return h.unanswered(tx, changed || h.again)
		}
		return h.answered(tx, a, changed || h.again)
	})
}

// unanswered lets the request go. One that has changed nothing may run again.
func (h *holding) unanswered(tx *store.Tx, changed bool) error {
	statement := "DELETE FROM claims"
	if changed {
		statement = "UPDATE claims SET holder = ''"
	}
	_, err := tx.Exec(statement+" WHERE owner = $1 AND digest = $2 AND holder = $3", store.Owner(h.key.Owner), h.key.digest(), h.id)
	return err
}

// release lets the request go, of which nothing need be known any more, or, with dead, what is
// known of one that died. That it has ended stays written down for those that began before, and do
// not know what it did; others at this process have waited for that.
func (h *holding) release(ctx context.Context, dead bool) error {
	if !h.tried.Load() && (dead || !h.again) {
		return nil // there is nothing to write down
	}
	var over int64
	err := h.db.Write(ctx, func(tx *store.Tx) error {
		tx.Raise(topic)
		if dead {
			return h.unanswered(tx, true)
		}
		now, err := tx.Now()
		if err != nil {
			return err
		}
		over = store.Time(now)
		_, err = tx.Exec(`UPDATE claims SET holder = '', changed = 0, lease = $5, expires = $6
			WHERE owner = $1 AND digest = $2 AND (holder = $3 OR ($4 = 1 AND (holder = '' OR lease <= $5)))`,
			store.Owner(h.key.Owner), h.key.digest(), h.id, number(h.again), over, store.Time(now.Add(leastClaim)))
		return err
	})
	if err != nil || dead {
		return err
	}
	h.here.Range(func(_, other any) bool {
		if o := other.(*holding); o.key == h.key {
			o.over.Store(over)
		}
		return true
	})
	return nil
}

// answered keeps the answer, unless another run of the request was quicker.
func (h *holding) answered(tx *store.Tx, a *answer, changed bool) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	plain := encodeAnswer(a)
	if !h.rooms.Take(store.Owner(h.key.Owner), int64(len(plain))) {
		if err := h.makeRoom(tx, int64(len(plain))); err != nil {
			return err
		}
	}
	closed, err := h.vault.Close(tx, store.Owner(h.key.Owner), h.key.place(), plain)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO claims (owner, digest, print, holder, lease, changed, answer, size, expires) VALUES ($1, $2, $3, '', 0, $4, $5, $6, $7)
		ON CONFLICT (owner, digest) DO UPDATE SET holder = '', changed = excluded.changed, answer = excluded.answer, size = excluded.size, expires = excluded.expires`+ours,
		store.Owner(h.key.Owner), h.key.digest(), h.key.print(), number(changed), closed, len(plain), store.Time(now.Add(h.config.Load().TTL)),
		h.id, store.Time(now), number(h.again), h.over.Load())
	return err
}

// makeRoom removes the oldest answers of an owner who would have more than it may. That
// something was changed stays known.
func (h *holding) makeRoom(tx *store.Tx, size int64) error {
	owner, most := store.Owner(h.key.Owner), h.config.Load().Bytes
	if err := tx.Lock("claims", h.key.Owner); err != nil {
		return err
	}
	held, err := content.Held(tx, "claims", store.OwnerColumn, owner)
	if err != nil {
		return err
	}
	if excess := content.Excess(held, size, most); excess > 0 {
		oldest, args, err := content.Rows{Table: "claims", Whose: store.OwnerColumn, First: "expires", ID: "digest"}.Oldest(tx, owner, excess)
		if err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE claims SET answer = $4, size = 0 WHERE "+oldest, append(args, []byte{})...); err != nil {
			return err
		}
		// What ran to its end, has no answer any more and changed nothing may run again.
		if _, err := tx.Exec("DELETE FROM claims WHERE owner = $1 AND size = 0 AND changed = 0 AND holder = ''", owner); err != nil {
			return err
		}
		held -= excess // at the least
	}
	h.rooms.Counted(owner, held+size, most)
	return nil
}

// A head is an answer but for its body, which follows behind a line break.
type head struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
}

func encodeAnswer(a *answer) []byte {
	line, err := json.Marshal(head{a.status, a.header})
	if err != nil {
		panic(fmt.Sprintf("idempotency: %v", err)) // numbers and texts
	}
	return append(append(line, '\n'), a.body...)
}

func decodeAnswer(plain []byte) (*answer, error) {
	line, body, ok := bytes.Cut(plain, []byte("\n"))
	var h head
	if err := json.Unmarshal(line, &h); err != nil || !ok {
		return nil, errors.New("an answer that was kept is damaged")
	}
	return &answer{status: h.Status, header: h.Header, body: body}, nil
}
