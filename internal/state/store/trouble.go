package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"
)

// MaxBehind is how far the writer may be behind before requests are told to come back.
const MaxBehind = 2 * time.Second

// ErrBusy: what came before has waited for longer than [MaxBehind].
var ErrBusy = errors.New("the store is more than 2 seconds behind with what it has to write")

// Codes of what programs are told of a store in trouble. They are stable.
const (
	// CodeBusy: it is slow, and may be written to in a moment.
	CodeBusy = "store_busy"
	// CodeUnavailable: it cannot be written to until somebody has mended it, or it comes
	// back by itself.
	CodeUnavailable = "store_unavailable"
)

// Refusal is what programs are told of an error of the store, and when to try again. Of
// any other error the code is empty.
func Refusal(err error) (code string, after time.Duration) {
	const soon, later = 2 * time.Second, 10 * time.Second
	switch {
	case err == nil:
		return "", 0
	case errors.Is(err, ErrBusy), errors.Is(err, ErrBehind):
		return CodeBusy, soon
	case errors.Is(err, ErrGone), errors.Is(err, ErrClosed), errors.Is(err, ErrUnknown):
		return CodeUnavailable, later
	}
	if code, ok := resultCode(err); ok {
		if code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED {
			return CodeBusy, soon
		}
		if explanations[code] != "" {
			return CodeUnavailable, later
		}
		return "", 0
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case slices.Contains([]string{"55P03", "57014", "53300"}, e.Code):
			return CodeBusy, soon
		case pgWords[e.Code] != "" || len(e.Code) == 5 && slices.Contains([]string{"08", "53", "57", "58"}, e.Code[:2]):
			return CodeUnavailable, later
		}
		return "", 0
	}
	if isAway(err) || errors.Is(err, errUndone) {
		return CodeUnavailable, later
	}
	return "", 0
}

// remembered is how long a trouble is told of, where nobody has tried since.
const remembered = time.Minute

// health is what the last attempts came to.
type health struct {
	mu    sync.Mutex
	err   error
	since time.Time
}

// came notes what an attempt came to. An error that is not the store's own says that the
// store works.
func (h *health) came(err error) {
	code, _ := Refusal(err)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err, h.since = nil, time.Now(); code != "" {
		h.err = err
	}
}

// read notes what an attempt to read came to: that the database is away, or back.
func (h *health) read(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil && isAway(err):
		h.err, h.since = err, time.Now()
	case err == nil && h.err != nil && isAway(h.err):
		h.err = nil
	}
}

func (h *health) now() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil && time.Since(h.since) < remembered {
		return h.err
	}
	return nil
}

// Behind returns [ErrBusy] where what came before has waited for longer than [MaxBehind]:
// whoever can be told to come back need not wait, too.
func (db *DB) Behind() error {
	if behind := db.queue.behind(); behind > MaxBehind {
		return fmt.Errorf("%w (%s)", ErrBusy, behind.Round(time.Second))
	}
	return nil
}

// Trouble returns why the store cannot be written to, or read, as it is now and as the
// last attempts have shown; nil where it can.
func (db *DB) Trouble() error {
	if err := db.Behind(); err != nil {
		return err
	}
	if f, ok := db.on.(*sqliteFile); ok {
		if err := f.place.check(); err != nil {
			return err
		}
	}
	return db.health.now()
}
