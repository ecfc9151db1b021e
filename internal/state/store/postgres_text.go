package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// plainTexts hands PostgreSQL texts that it takes: UTF-8 without NUL. Clients and servers
// write others, in ids and in names of models, and one of them would fail the statement and
// what is written with it, which may be everybody's. What PostgreSQL cannot keep is U+FFFD
// there, with a digest behind it, so that two texts stay two.
type plainTexts struct{ querier }

func (p plainTexts) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return p.querier.ExecContext(ctx, query, plain(args)...)
}

func (p plainTexts) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.querier.QueryContext(ctx, query, plain(args)...)
}

func (p plainTexts) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return p.querier.QueryRowContext(ctx, query, plain(args)...)
}

// plain returns args with texts that PostgreSQL takes. args stay as they are: a transaction
// may be tried again.
func plain(args []any) []any {
	own := false
	for i, arg := range args {
		text, ok := arg.(string)
		if !ok || utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
			continue
		}
		if !own {
			args, own = slices.Clone(args), true
		}
		sum := sha256.Sum256([]byte(text))
		args[i] = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD") + " " + hex.EncodeToString(sum[:8])
	}
	return args
}
