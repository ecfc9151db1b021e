package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/freeport"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestMain(m *testing.M) {
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	testscript.Main(m, map[string]func(){
		"dragoman": func() { os.Exit(run(os.Args[1:])) },
		"ledger":   writeLedger,
		"await":    await,
		"begin":    begin,
	})
}

// await asks an address until its answer has a text in it, and gives up after a minute.
func await() {
	address, text := os.Args[1], os.Args[2]
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	said := ""
	for range 1200 {
		if res, err := http.Get(address); err != nil {
			said = err.Error() // which names the address, and so perhaps the text
		} else {
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if said = string(body); strings.Contains(said, text) {
				return
			}
		}
		<-tick.C
	}
	fmt.Fprintf(os.Stderr, "%s says %s\n", address, said)
	os.Exit(1)
}

// begin posts a file as JSON to an address, and prints the answer.
func begin() {
	body, err := os.Open(os.Args[2])
	if err == nil {
		var res *http.Response
		if res, err = http.Post(os.Args[1], "application/json", body); err == nil {
			_, err = io.Copy(os.Stdout, res.Body)
			res.Body.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "begin:", err)
		os.Exit(1)
	}
}

// behindToken lets only those through who know the token "open".
func behindToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer open" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// TestScripts runs what users type and compares what they see.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/.config")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/.local/state")
			guarded := httptest.NewServer(behindToken(fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}})))
			env.Defer(guarded.Close)
			upstream := httptest.NewServer(&rehearsal.Model{})
			env.Defer(upstream.Close)
			env.Setenv("UPSTREAM_URL", upstream.URL)
			nothing := httptest.NewServer(http.NotFoundHandler())
			env.Defer(nothing.Close)
			env.Setenv("NOTHING_URL", nothing.URL)
			refusing := httptest.NewServer(behindToken(&rehearsal.Model{}))
			env.Defer(refusing.Close)
			env.Setenv("REFUSING_URL", refusing.URL)
			env.Setenv("GUARDED_URL", guarded.URL)
			free, err := freeport.Address() // for a gateway of the script
			if err != nil {
				return err
			}
			env.Setenv("FREE_ADDRESS", free)
			env.Setenv("GUARDED_ADDRESS", guarded.Listener.Addr().String())
			return errors.Join(writeGuide(env.WorkDir, "guide", "policy.md"), writeGuide(env.WorkDir, "operations", "operations.md"), writeGuide(env.WorkDir, "store", "store.md"))
		},
	})
}

// TestStoreOnPostgres runs what docs/store.md says of PostgreSQL.
func TestStoreOnPostgres(t *testing.T) {
	database, restored := pgtest.URL(t), pgtest.URL(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "postgres"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/.local/state")
			env.Setenv("DATABASE_URL", database)
			env.Setenv("RESTORED_URL", restored)
			return writeGuide(env.WorkDir, "store", "store.md")
		},
	})
}

// writeGuide writes the commands of a page of docs, a block each, as name1.sh and so on.
func writeGuide(folder, name, page string) error {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		return err
	}
	for i, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s%d.sh", name, i+1)), block[1], 0o600); err != nil {
			return err
		}
	}
	return nil
}
