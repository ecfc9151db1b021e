package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// chainName names the chain in audit_head. There is one for each store.
const chainName = "audit"

// A Head is the last record of a log, or of what is known of it.
type Head struct {
	Seq  uint64
	Hash Hash
}

// String returns SEQ:HASH, as [ParseHead] reads it.
func (h Head) String() string { return strconv.FormatUint(h.Seq, 10) + ":" + h.Hash.String() }

// ParseHead reads what [Head.String] wrote.
func ParseHead(text string) (h Head, err error) {
	seq, hash, ok := strings.Cut(text, ":")
	if h.Seq, err = strconv.ParseUint(seq, 10, 63); err != nil || !ok {
		return Head{}, errors.New("a head is a number, a colon and 64 hexadecimal digits")
	}
	return h, h.Hash.UnmarshalText([]byte(hash))
}

// head returns the end of the chain; the zero Head for an empty one.
func head(tx *store.Tx) (h Head, err error) {
	if known, ok := tx.Known(headNote).(Head); ok {
		return known, nil
	}
	var hash []byte
	err = tx.Row("SELECT seq, hash FROM audit_head WHERE log = $1", []any{chainName}, &h.Seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return Head{}, nil
	}
	if err == nil && copy(h.Hash[:], hash) != len(h.Hash) {
		err = errors.New("the head of the audit log is damaged; dragoman audit verify says more")
	}
	return h, err
}

// insert adds r to the chain. Nobody else adds in between, in whichever process.
func insert(tx *store.Tx, r Record) error {
	if err := tx.Lock("audit", chainName); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	last, err := head(tx)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	r.Seq, r.Prev = last.Seq+1, last.Hash
	body, err := r.body()
	if err != nil {
		return err
	}
	hash := sha256.Sum256(body)
	if _, err := tx.Exec(`INSERT INTO audit (seq, time, kind, call, caller, server, target, verdict, hash, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		int64(r.Seq), store.Time(r.Time), string(r.Kind), r.Call, r.Caller, r.Server, r.Target, r.Verdict, hash[:], string(body)); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	tx.Note(headNote, Head{r.Seq, hash}, writeHead)
	return nil
}

// headNote is what records of one transaction know the one before them by.
const headNote = "audit head"

// writeHead writes down the last record of a transaction.
func writeHead(tx *store.Tx) error {
	last, err := head(tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`INSERT INTO audit_head (log, seq, hash) VALUES ($1, $2, $3)
		ON CONFLICT (log) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`, chainName, int64(last.Seq), last.Hash[:]); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

func sum(b []byte) Hash { return sha256.Sum256(b) }

// quoted makes a JSON string of what is no JSON.
func quoted(text []byte) json.RawMessage {
	b, _ := json.Marshal(string(bytes.ToValidUTF8(text, []byte("\uFFFD"))))
	return b
}

// Head returns the last record of the log. Whoever keeps it elsewhere can tell
// later that nothing before it was changed or removed.
func (l *Log) Head(ctx context.Context) (h Head, err error) {
	err = l.db.Read(ctx, func(tx *store.Tx) error {
		h, err = head(tx)
		return err
	})
	return h, err
}

// Heads returns the last record of each log in the store, by the log's name.
func Heads(ctx context.Context, db *store.DB) (map[string]Head, error) {
	heads := map[string]Head{}
	err := db.Read(ctx, func(tx *store.Tx) error {
		return tx.Rows("SELECT log, seq, hash FROM audit_head", nil, func(scan func(...any) error) error {
			var name string
			var h Head
			var hash []byte
			err := scan(&name, &h.Seq, &hash)
			copy(h.Hash[:], hash)
			heads[name] = h
			return err
		})
	})
	return heads, err
}
