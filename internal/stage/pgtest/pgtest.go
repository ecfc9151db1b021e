// Package pgtest runs PostgreSQL for tests: one server for each test program, in a
// folder of its own, and a database of its own for each test.
//
// The server is Debian's package postgresql, or one whose programs are in the PATH.
// Where there is none, tests that need it skip and say so; where CI is set they fail.
package pgtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A server is PostgreSQL in a folder, reached by a socket in it.
type server struct {
	dir string
	err error
	// held keeps the server: it stops, and its folder goes, when this pipe closes,
	// which it does when this process ends, however it does.
	held io.Closer
}

var (
	fast    = sync.OnceValue(func() *server { return start("-F") })
	durable = sync.OnceValue(func() *server { return start() })
)

// URL returns the address of a new, empty database, which is dropped after the test.
// For a benchmark its commits wait for the disk, as they do elsewhere.
func URL(t testing.TB) string {
	t.Helper()
	s := fast
	if _, ok := t.(*testing.B); ok {
		s = durable
	}
	on := s()
	switch {
	case errors.Is(on.err, exec.ErrNotFound) && os.Getenv("CI") == "":
		t.Skip("SKIPPED, NOT TESTED: PostgreSQL is not on this machine; \"make postgres\" installs it")
	case on.err != nil:
		t.Fatalf("PostgreSQL: %v", on.err)
	}
	name := "t" + strings.ToLower(rand.Text()[:12])
	on.sql(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { on.sql(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	return fmt.Sprintf("postgres://dragoman@/%s?host=%s", name, on.dir)
}

// Socket returns the path of the socket that a server at an address of [URL] listens
// on, for tests that stand between.
func Socket(t testing.TB, url string) string {
	t.Helper()
	_, dir, ok := strings.Cut(url, "?host=")
	if !ok {
		t.Fatalf("%s is no address of ours", url)
	}
	return filepath.Join(dir, ".s.PGSQL.5432")
}

// SQL runs a statement in the database at an address, with psql.
func SQL(t testing.TB, url, statement string) string {
	t.Helper()
	out, err := Try(url, statement)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try is [SQL] in a database that may be in trouble.
func Try(url, statement string) (string, error) {
	psql, err := program("psql")
	if err != nil {
		return "", err
	}
	out, err := exec.Command(psql, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", statement, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (s *server) sql(t testing.TB, statement string) {
	t.Helper()
	SQL(t, "postgres://dragoman@/postgres?host="+s.dir, statement)
}

// program finds a program of PostgreSQL: the newest of Debian's, else in the PATH.
func program(name string) (string, error) {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1], nil
	}
	return exec.LookPath(name)
}

// start makes a cluster and starts its server.
func start(flags ...string) *server {
	initdb, err := program("initdb")
	if err != nil {
		return &server{err: err}
	}
	dir, err := os.MkdirTemp("", "pg") // short, since the name of a socket has to be
	if err != nil {
		return &server{err: err}
	}
	s := &server{dir: dir}
	if s.err = s.run(initdb, flags); s.err != nil {
		os.RemoveAll(dir)
	}
	return s
}

func (s *server) run(initdb string, flags []string) error {
	user, err := otherUser(s.dir)
	if err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	made := exec.Command(initdb, "-D", data, "-U", "dragoman", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C")
	made.Dir, made.SysProcAttr = s.dir, user
	if out, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// The shell stops the server, and removes the folder, when its standard input ends.
	const keep = `"$@" >"$0/log" 2>&1 & server=$!; cat >/dev/null; kill -QUIT $server; wait $server; rm -rf "$0"`
	arguments := append([]string{"-c", keep, s.dir, filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=200"}, flags...)
	running := exec.Command("/bin/sh", arguments...)
	running.Dir, running.SysProcAttr = s.dir, user
	if s.held, err = running.StdinPipe(); err != nil {
		return err
	}
	if err := running.Start(); err != nil {
		return err
	}
	return s.listens()
}

// listens waits until the server takes connections.
func (s *server) listens() error {
	for range 300 {
		if conn, err := net.Dial("unix", filepath.Join(s.dir, ".s.PGSQL.5432")); err == nil {
			conn.Close()
			if ready, err := program("pg_isready"); err != nil || exec.Command(ready, "-q", "-h", s.dir).Run() == nil {
				return nil
			}
		}
		<-time.After(100 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return fmt.Errorf("it does not listen: %s", log)
}
