package store

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A life of a database lasts until it crashes, or is started again. After a crash the ids of
// its own processes are others. Started again it may have the same ones, as in a container,
// where they are counted from 1, but at another time. Every user may see both.
type life struct {
	started string
	pids    []string
}

const ofLife = "SELECT pg_postmaster_start_time()::text, coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity WHERE datid IS NULL AND usesysid IS NULL"

// lifeOf reads a row of ofLife.
func lifeOf(row interface{ Scan(...any) error }) (l life, err error) {
	var pids string
	err = row.Scan(&l.started, &pids)
	l.pids = strings.Fields(pids)
	return l, err
}

// live notes in which life of the database the writer's connection is made, which does not
// outlive it.
func (p *postgres) live(ctx context.Context, conn *pgx.Conn) error {
	now, _ := lifeOf(conn.QueryRow(ctx, ofLife)) // where that fails, nothing is certain
	p.life.Store(&now)
	return nil
}

// lives reports whether the database is for certain in the life in which the writer's last
// connection was made. Some of its processes come and go meanwhile.
func (p *postgres) lives(ctx context.Context) bool {
	now, err := lifeOf(p.reading.QueryRowContext(ctx, ofLife))
	if err != nil {
		return false
	}
	began, same := p.life.Load(), 0
	for _, pid := range now.pids {
		if slices.Contains(began.pids, pid) {
			same++
		}
	}
	return now.started == began.started && same > 0 && 2*same >= len(began.pids)
}
