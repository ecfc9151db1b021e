package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dragoman-mcp/dragoman/internal/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/servers"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestMain(m *testing.M) {
	servers.Guard()
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	testscript.Main(m, map[string]func(){
		"dragoman": func() { os.Exit(run(os.Args[1:])) },
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
			return nil
		},
	})
}
