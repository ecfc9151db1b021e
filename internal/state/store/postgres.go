package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Limits of a PostgreSQL database.
const (
	pgReaders = 8                // connections of a process that read
	pgGroup   = 64               // functions in one transaction
	pgConnect = 5 * time.Second  // for one connection
	pgTime    = 10 * time.Second // for one transaction, or one query that reads
	pgBrief   = time.Second      // for one that reads to begin, while the database answers nobody
)

// databaseTime is the database's clock as it is stored.
const databaseTime = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

// postgres is a store in a PostgreSQL database.
type postgres struct {
	config  *pgx.ConnConfig
	listen  *pgx.ConnConfig // for the connection that hears; nil where none can
	writer  *sql.DB         // one connection
	reading *sql.DB
	count   atomic.Int64
	patient time.Duration        // how long a commit that was not answered is asked for
	life    atomic.Pointer[life] // that of the database in which the writer's connection was made
	whole   time.Duration        // how long one that reads may take
	silent  atomic.Bool          // the last that read had no answer in all of its time
	tried   atomic.Bool          // somebody takes all of it to find out whether there is one again
}

func openPostgres(ctx context.Context, config Config) (database, error) {
	p := &postgres{patient: pgTime + 5*time.Second, whole: pgTime}
	var err error
	if p.config, err = connection(config.URL.Reveal()); err != nil {
		return nil, fmt.Errorf("store.url: %w", err)
	}
	switch {
	case !config.ListenURL.IsZero():
		if p.listen, err = connection(config.ListenURL.Reveal()); err != nil {
			return nil, fmt.Errorf("store.listen_url: %w", err)
		}
	case config.Pooler != PoolerTransaction:
		p.listen = p.config
	}
	if config.Pooler == PoolerTransaction {
		// The next statement may go to another connection, which has not prepared it.
		p.config = p.config.Copy()
		p.config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	p.writer = pool(p.config, 1, stdlib.OptionAfterConnect(p.live))
	p.reading = pool(p.config, pgReaders)
	if err := p.migrate(ctx); err != nil {
		p.close()
		return nil, fmt.Errorf("store %s: %w", p.name(), explained(err))
	}
	return p, nil
}

// connection reads an address. What pgx says of one that it cannot read may show the
// password, so that it is not told.
func connection(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("this is no address of a PostgreSQL database, such as postgres://user@host/name")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = pgConnect
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "dragoman"
	}
	if config.ValidateConnect == nil && slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != config.Host || f.Port != config.Port
	}) {
		// All but one of several hosts are standbys, which are behind and cannot be written to.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	return config, nil
}

func pool(config *pgx.ConnConfig, most int, options ...stdlib.OptionOpenDB) *sql.DB {
	pool := stdlib.OpenDB(*config, options...)
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	pool.SetConnMaxLifetime(time.Hour)
	return pool
}

func (p *postgres) name() string {
	return fmt.Sprintf("postgres://%s:%d/%s", p.config.Host, p.config.Port, p.config.Database)
}

func (p *postgres) statements() int64 { return p.count.Load() }

func (p *postgres) most() int { return pgGroup }

func (p *postgres) close() error { return errors.Join(p.reading.Close(), p.writer.Close()) }

// read runs fn in a transaction that sees one moment. While the database does not answer, one
// at a time waits for it as long as it may take; the others, who would each learn the same
// that late, wait briefly for it to begin.
func (p *postgres) read(ctx context.Context, fn func(*Tx) error) error {
	reading, cancel := context.WithTimeout(ctx, p.whole)
	defer cancel()
	tx, err := p.beginSoon(reading, cancel)
	if err == nil {
		defer tx.Rollback() // a reader has nothing to commit
		p.silent.Store(false)
		err = fn(&Tx{ctx: reading, on: plainTexts{tx}, clock: "SELECT " + databaseTime, schema: postgresSchema, count: &p.count, found: map[any]any{}})
	} else {
		err = explained(err)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errBrief) && (reading.Err() == context.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)) {
		p.silent.Store(true)
	}
	return err
}

// errBrief is why one that reads waited no longer. It is no news of the database.
var errBrief = fmt.Errorf("it has not answered for some time: %w", context.DeadlineExceeded)

// beginSoon begins a transaction, for which there is less time while the database answers
// nobody and somebody else waits for it already.
func (p *postgres) beginSoon(ctx context.Context, cancel func()) (*sql.Tx, error) {
	if !p.silent.Load() {
		return p.beginRead(ctx)
	}
	if p.tried.CompareAndSwap(false, true) {
		defer p.tried.Store(false)
		return p.beginRead(ctx)
	}
	brief := time.AfterFunc(pgBrief, cancel)
	tx, err := p.beginRead(ctx)
	if brief.Stop() {
		return tx, err
	}
	if err == nil {
		_ = tx.Rollback() // ctx ends, if it has not yet
	}
	return nil, errBrief
}

// beginRead begins a transaction. Connections that were lost while nobody used them are
// found out by using them, and replaced.
func (p *postgres) beginRead(ctx context.Context) (tx *sql.Tx, err error) {
	for range pgReaders + 1 {
		tx, err = p.reading.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
		_, connecting := errors.AsType[*pgconn.ConnectError](err)
		said, ok := errors.AsType[*pgconn.PgError](err)
		if err == nil || connecting || ctx.Err() != nil || !isAway(err) && !(ok && ended(said)) {
			break
		}
	}
	return tx, err
}

// mark is what is said about our table of versions, so that no other program's is
// taken for it.
const mark = "Dragoman store"

// migrate brings the tables up to date. Processes that start at the same time take
// turns. Where the tables are as they should be, nothing is written: they can be looked at
// in a database that can only be read.
func (p *postgres) migrate(ctx context.Context) error {
	all, err := steps(migrations)
	if err != nil {
		return err
	}
	return p.migrateTo(ctx, all)
}

func (p *postgres) migrateTo(ctx context.Context, all []step) error {
	tx, err := p.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // where it was not committed
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", lockNumber("schema", "")); err != nil {
		return err
	}
	var version int
	var there, ours, counted bool
	if err := tx.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, to_regclass('migrations') IS NOT NULL,
		coalesce(obj_description(to_regclass('migrations'), 'pg_class') = $1, false), to_regclass('schema_steps') IS NOT NULL`, mark).Scan(&version, &there, &ours, &counted); err != nil {
		return err
	}
	switch {
	case version < 140000:
		return fmt.Errorf("it is PostgreSQL %d, and 14 is the first that we know", version/10000)
	case there && !ours:
		return fmt.Errorf("%w: another program has a table migrations there; name another database in store.url", ErrForeign)
	}
	tables := schema{tx, func(text string) string { return text }}
	if ours && counted {
		if have, needs, err := tables.version(ctx); err != nil || have >= len(all) && needs <= len(all) {
			return err
		}
	}
	if err := tables.migrate(ctx, all); err != nil {
		return err
	}
	if !ours {
		if _, err := tx.ExecContext(ctx, "COMMENT ON TABLE migrations IS '"+mark+"'"); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// pgWords say what a person can do about errors of PostgreSQL, by their codes.
var pgWords = map[string]string{
	"53100": "the disk of the database is full",
	"53200": "the database has no memory left",
	"53300": "the database takes no more connections: raise its max_connections, or put a pooler in front of it",
	"25006": "the database can only be read: it may be a standby",
	"42501": "the database user lacks the right to do this",
	"26000": behindPooler,
	"42P05": behindPooler,
	"28P01": "the database does not accept this password",
	"28000": "the database does not accept this user",
	"3D000": "there is no such database",
	"42P07": "a table of this name is there already, and not ours: name another database in store.url",
	"55P03": "another process has been writing to the database for too long",
	"57014": "the database took too long",
	"57P01": "the database is being stopped",
	"57P03": "the database is starting",
}

// behindPooler is about statements that are prepared on another connection than they run on.
const behindPooler = "something gives each transaction another connection, as PgBouncer does in the mode transaction: set store.pooler to transaction"

// postgresWords explains an error of PostgreSQL; empty for what needs no explanation.
func postgresWords(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgWords[e.Code]
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return "the database cannot be reached"
	}
	if isAway(err) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, io.EOF) {
		return "the connection to the database was lost"
	}
	return ""
}
