package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// pgTries is how often a transaction is run that others, or a lost connection, undo.
const pgTries = 4

// beginWrite begins a transaction in one exchange and says what is to be known of it
// where its end is not: its number, the line of history that it is part of, which is
// another one once a standby has taken over, and its time. Settings are its own, since
// a pooler gives each transaction another connection. A process that is stopped within
// one (SIGSTOP, a virtual machine that is moved) keeps its locks for two seconds, fewer
// than others wait for them; it says its statements one behind another, and runs again
// what was undone.
const beginWrite = "BEGIN; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '2s'; %s" +
	"SELECT pg_current_xact_id()::text, " + timeline + ", " + databaseTime

// timeline is the number of the line of history that the database writes.
const timeline = "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"

// notSynced lets the commit return before the disk has it.
const notSynced = "SET LOCAL synchronous_commit = off; "

// group runs jobs in one transaction. PostgreSQL does nothing more in one in which a
// statement has failed, and a savepoint for each job would cost two exchanges: where a
// job fails, each is run alone.
func (p *postgres) group(jobs []*job) error {
	err := p.try(jobs)
	if err == nil || len(jobs) == 1 || errors.Is(err, ErrUnknown) || isAway(err) || onlyReads(err) {
		return err
	}
	for _, j := range jobs {
		if err := p.try([]*job{j}); err != nil && j.err == nil {
			j.err = explained(err)
		}
	}
	return nil
}

// try runs jobs in one transaction, again where that may help.
func (p *postgres) try(jobs []*job) error {
	for n := 1; ; n++ {
		err := p.once(jobs)
		if err == nil || n == pgTries || !mayHelp(err) {
			return err
		}
		for _, j := range jobs {
			j.err, j.panicked = nil, nil
		}
		time.Sleep(time.Duration(n)*5*time.Millisecond + rand.N(20*time.Millisecond))
	}
}

// errUndone: the database undid the transaction, and nobody knows why.
var errUndone = errors.New("the database undid the transaction")

// once runs jobs in one transaction. An error means that nothing of them was kept, or,
// where it is ErrUnknown, that nobody knows.
func (p *postgres) once(jobs []*job) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), pgTime)
	defer cancel()
	conn, err := p.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer func() {
		if onlyReads(err) {
			p.reconnect(conn)
		}
	}()
	b, err := start(ctx, conn, jobs)
	if err != nil {
		return err
	}
	tx := &Tx{ctx: ctx, on: plainTexts{conn}, clock: "SELECT " + databaseTime, schema: postgresSchema, count: &p.count, now: b.now}
	tx.locks = func(key int64) error { return lockOn(ctx, conn, key, len(tx.held) > 0 && len(jobs) > 1) }
	if err := each(tx, jobs); err != nil {
		discard(conn)
		return err
	}
	err = onWire(conn, func(c *pgconn.PgConn) error {
		results, err := c.Exec(ctx, "COMMIT").ReadAll()
		if err == nil && results[0].CommandTag.String() != "COMMIT" {
			err = errUndone
		}
		return err
	})
	if err == nil || errors.Is(err, errUndone) {
		return err
	}
	if _, said := errors.AsType[*pgconn.PgError](err); said {
		return err // and undid it
	}
	return p.settle(b, err)
}

// each runs the jobs one after another. One that failed before it changed anything
// undoes nothing of the others.
func each(tx *Tx, jobs []*job) error {
	var raised []string
	for _, j := range jobs {
		j.err = j.call(tx)
		switch {
		case tx.broken != nil:
			return tx.broken
		case j.err != nil && tx.wrote:
			return j.err
		case j.err == nil:
			raised = append(raised, j.raised...)
		}
	}
	return tx.finish(raised)
}

// errLocked: a group would wait for a lock while it has others, which somebody may
// wait for who has that one.
var errLocked = errors.New("somebody else has the lock")

func lockOn(ctx context.Context, conn *sql.Conn, key int64, impatient bool) error {
	if !impatient {
		_, err := conn.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", key)
		return err
	}
	var got bool
	err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", key).Scan(&got)
	if err == nil && !got {
		err = errLocked
	}
	return err
}

// A begun transaction is known by its number and its line of history.
type begun struct {
	number, line string
	now          time.Time
	synced       bool // its commit waits for the disk, and for standbys that follow synchronously
}

// start begins a transaction.
func start(ctx context.Context, conn *sql.Conn, jobs []*job) (b begun, err error) {
	setting := notSynced
	for _, j := range jobs {
		if j.sync {
			setting = ""
		}
	}
	err = onWire(conn, func(c *pgconn.PgConn) error {
		results, err := c.Exec(ctx, fmt.Sprintf(beginWrite, setting)).ReadAll()
		if err != nil {
			return err
		}
		row := results[len(results)-1].Rows[0]
		var now int64
		_, err = fmt.Sscan(string(row[2]), &now)
		b = begun{string(row[0]), string(row[1]), FromTime(now), setting == ""}
		return err
	})
	if err != nil {
		discard(conn)
	}
	return b, err
}

// commitNothing changes nothing, and is committed as what does.
const commitNothing = "SELECT pg_logical_emit_message(true, 'dragoman', '')"

// settle finds out what became of a transaction whose commit was not answered: the
// database knows it by its number, for as long as its line of history goes on, and as it has
// not crashed: then the number of one that was lost is given to another. Where nobody knows,
// why the answer was lost is told in words alone: as an error it would have the transaction
// run again.
//
// A commit that waits for a standby is committed, and may be lost there, once nobody waits for it
// any more: it counts once one that came later was answered.
func (p *postgres) settle(b begun, lost error) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.patient)
	defer cancel()
	for confirmed := !b.synced; ; {
		var status sql.NullString
		var line string
		err := p.reading.QueryRowContext(ctx, "SELECT pg_xact_status($1::text::xid8), "+timeline, b.number).Scan(&status, &line)
		switch {
		case ctx.Err() != nil || err == nil && line != b.line:
			return fmt.Errorf("%w: %v", ErrUnknown, lost)
		case err != nil:
		case status.String == "committed" && !p.lives(ctx):
			return fmt.Errorf("%w, and has crashed since: %v", ErrUnknown, lost)
		case status.String == "committed" && !confirmed:
			if _, err := p.reading.ExecContext(ctx, commitNothing); err == nil {
				confirmed = true
				continue
			}
		case status.String == "committed":
			return nil
		case status.String == "aborted":
			return fmt.Errorf("%w: %w", errUndone, lost)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// onWire runs fn on the connection below database/sql.
func onWire(conn *sql.Conn, fn func(*pgconn.PgConn) error) error {
	return conn.Raw(func(c any) error { return fn(c.(*stdlib.Conn).Conn().PgConn()) })
}

// discard ends a transaction that is not wanted. A connection on which that fails is
// not used again.
func discard(conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Raw(func(c any) error {
		wire := c.(*stdlib.Conn).Conn().PgConn()
		if _, err := wire.Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
			_ = wire.Close(ctx)
			return driver.ErrBadConn
		}
		return nil
	})
}

// onlyReads reports whether the database refuses to write, or this connection to it: one to a
// standby stays one while another host is the primary again, and one that began while writing
// was forbidden (default_transaction_read_only) keeps that.
func onlyReads(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "25006"
}

// reconnect drops the writer's connection, and those that read and that nobody uses at this
// moment, which were made to the same host: who comes next looks for the primary anew.
func (p *postgres) reconnect(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	p.reading.SetMaxIdleConns(0)
	p.reading.SetMaxIdleConns(pgReaders)
}

// mayHelp reports whether the same transaction may succeed if it is run again: others
// were in its way, or the connection was lost before its end.
func mayHelp(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		// serialization_failure, deadlock_detected, cannot_connect_now
		return slices.Contains([]string{"40001", "40P01", "57P03"}, e.Code) || ended(e)
	}
	return errors.Is(err, errUndone) || isAway(err)
}

// ended reports whether the database says that it ends the connection: it is stopped or has
// crashed, somebody ends it, or nobody has used it for too long.
func ended(e *pgconn.PgError) bool {
	return slices.Contains([]string{"57P01", "57P02", "57P05", "08006", "08003", "25P03"}, e.Code)
}

// isAway reports whether the database could not be reached, or was lost. A connection that
// ends where the answer to a BEGIN is read is "closed" to pgx, which keeps why to itself.
func isAway(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}
