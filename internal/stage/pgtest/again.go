package pgtest

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// again is set where tests run on PostgreSQL that know nothing of it.
const again = "DRAGOMAN_TEST_POSTGRES"

// places are the databases that stand for files.
var places sync.Map

// Place returns where a store that a test wants at a path is: there, or, in a run of
// [Again], in the database that stands for that path, whose tables are kept as long as
// the test runs.
func Place(t testing.TB, path string) (file string, url secret.Text) {
	t.Helper()
	if os.Getenv(again) == "" {
		return path, secret.Text{}
	}
	if path == ":memory:" {
		return "", secret.New(URL(t))
	}
	known, ok := places.Load(path)
	if !ok {
		known = URL(t)
		places.Store(path, known)
	}
	return "", secret.New(known.(string))
}

// Again runs the tests of this package that a pattern chooses in another process, in
// which each [Place] is in PostgreSQL.
func Again(t *testing.T, run string) {
	t.Helper()
	if os.Getenv(again) != "" {
		t.Skip("this is the other run")
	}
	URL(t) // skips where there is no PostgreSQL
	command := exec.Command(os.Args[0], "-test.run", run, "-test.timeout", "5m")
	command.Env = append(os.Environ(), again+"=1")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
