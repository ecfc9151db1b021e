package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
)

// readers is how many connections read a file at most.
const readers = 4

// A readingPool is the connections that read a file. Each is made when it is needed, and
// keeps the statements that it has prepared: a query that finds one row by an index takes
// less than it takes to prepare it.
type readingPool struct {
	pool *sql.DB
	room chan struct{} // has one for each connection that is in use

	mu     sync.Mutex
	free   []*sqliteConn
	closed bool
}

func openReaders(path string) (*readingPool, error) {
	pool, err := sql.Open("sqlite", dsn(path, "query_only(1)", "trusted_schema(0)"))
	if err != nil {
		return nil, err
	}
	return &readingPool{pool: pool, room: make(chan struct{}, readers)}, nil
}

// read runs fn in a transaction, which sees one moment.
func (p *readingPool) read(ctx context.Context, fn func(*sqliteConn) error) error {
	c, err := p.take(ctx)
	if err != nil {
		return explained(err)
	}
	good := false
	defer func() { p.giveBack(c, good) }()
	if err := c.exec("BEGIN"); err != nil {
		return explained(err)
	}
	defer func() { good = c.exec("ROLLBACK") == nil }() // a reader has nothing to commit
	return fn(c)
}

// take returns a connection that nobody uses, and waits for one where all are in use.
func (p *readingPool) take(ctx context.Context) (*sqliteConn, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	select {
	case p.room <- struct{}{}:
	default:
		select {
		case p.room <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	conn, err := p.pool.Conn(ctx)
	if err != nil {
		<-p.room
		return nil, err
	}
	return newSQLiteConn(conn), nil
}

// giveBack lets others have a connection, unless it is of no use any more.
func (p *readingPool) giveBack(c *sqliteConn, good bool) {
	p.mu.Lock()
	if good = good && !p.closed; good {
		p.free = append(p.free, c)
	}
	p.mu.Unlock()
	if !good {
		c.forget()
		_ = c.conn.Raw(func(any) error { return driver.ErrBadConn }) // nobody gets it again
		_ = c.conn.Close()
	}
	<-p.room
}

// close closes the connections; those in use when they are given back.
func (p *readingPool) close() (err error) {
	p.mu.Lock()
	free := p.free
	p.free, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range free {
		err = errors.Join(err, c.close())
	}
	return errors.Join(err, p.pool.Close())
}

// A sqliteConn is a connection to a file, with the statements that it has prepared. One goroutine
// uses it at a time.
type sqliteConn struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

func newSQLiteConn(conn *sql.Conn) *sqliteConn {
	return &sqliteConn{conn, map[string]*sql.Stmt{}}
}

func (c *sqliteConn) close() error {
	c.forget()
	return c.conn.Close()
}

// forget gives up what was prepared, which is nothing for a connection that was closed.
func (c *sqliteConn) forget() {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}
	clear(c.prepared)
}

func (c *sqliteConn) prepare(query string) (*sql.Stmt, error) {
	if stmt, ok := c.prepared[query]; ok {
		return stmt, nil
	}
	stmt, err := c.conn.PrepareContext(context.Background(), query)
	if err == nil {
		c.prepared[query] = stmt
	}
	return stmt, err
}

func (c *sqliteConn) exec(query string) error {
	stmt, err := c.prepare(query)
	if err != nil {
		return err
	}
	_, err = stmt.ExecContext(context.Background())
	return err
}
