package store

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A life of a database lasts until it crashes, or is started again: the ids of its own
// processes, all of which are others then. Every user may see them.
type life []string

const ofLife = "SELECT coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity WHERE datid IS NULL AND usesysid IS NULL"

// live notes in which life of the database the writer's connection is made, which does not
// outlive it.
func (p *postgres) live(ctx context.Context, conn *pgx.Conn) error {
	var pids string
	_ = conn.QueryRow(ctx, ofLife).Scan(&pids) // where that fails, nothing is certain
	now := life(strings.Fields(pids))
	p.life.Store(&now)
	return nil
}

// lives reports whether the database is for certain in the life in which the writer's last
// connection was made. Some of its processes come and go meanwhile.
func (p *postgres) lives(ctx context.Context) bool {
	var pids string
	if err := p.reading.QueryRowContext(ctx, ofLife).Scan(&pids); err != nil {
		return false
	}
	began, same := *p.life.Load(), 0
	for pid := range strings.FieldsSeq(pids) {
		if slices.Contains(began, pid) {
			same++
		}
	}
	return same > 0 && 2*same >= len(began)
}
