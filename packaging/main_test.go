package packaging

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
)

// missing skips a test for want of something that the machine does not have, and
// fails it in CI, where everything has to be there.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf("SKIPPED, NOT TESTED: "+format, args...)
}

// need returns the path of a program.
func need(t *testing.T, program, install string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing(t, "%s is not there; install the package %s", program, install)
	}
	return path
}

// snapshot skips a test that "make snapshot" alone runs.
func snapshot(t *testing.T) {
	t.Helper()
	if os.Getenv("DRAGOMAN_SNAPSHOT") == "" {
		t.Skip("part of make snapshot")
	}
}

// output runs a program and returns what it wrote to standard output.
func output(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// build builds the command as a release does, from the tree in dir.
func build(dir, to string, env ...string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", to, "./cmd/dragoman")
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// scratch holds what is built for all tests, and goes when they are over.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "dragoman-packaging-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "dragoman")
	return path, build("..", path)
})

// binary returns the path of the command of this tree, which is built once.
func binary(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConfig reads the configuration that packages bring.
func TestConfig(t *testing.T) {
	text, err := os.ReadFile("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	none := func(string) (string, bool) { return "", false }
	if _, err := config.Parse("config.yaml", text, none); err != nil {
		t.Error(err)
	}
	// What it suggests works, too.
	// What is suggested stands behind a bare #, explanations behind "# ".
	suggested := regexp.MustCompile(`(?m)^#(\w|  )`).ReplaceAllString(string(text), "$1")
	f, err := config.Parse("config.yaml", []byte(suggested), func(string) (string, bool) { return "value", true })
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Models) != 1 || len(f.MCPServers) != 1 {
		t.Errorf("it suggests %d models and %d servers", len(f.Models), len(f.MCPServers))
	}
}

// The command that the configuration says to check it with finds the service's variables.
func TestConfigurationIsCheckedAsItSays(t *testing.T) {
	text, err := os.ReadFile("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "# (")
	command, _, found := strings.Cut(rest, "\n")
	if !found {
		t.Fatal("config.yaml says no command")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"environment": "# a comment\n#UNSET=\nSEARCH_TOKEN=sesame\n",
		"config.yaml": "mcpServers: {}\nmodels: [{match: x, base_url: 'http://127.0.0.1:1/v1', api_key: '${SEARCH_TOKEN}'}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sh := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll("("+command, "/etc/dragoman", dir))
	sh.Env = []string{"HOME=" + dir, "PATH=" + filepath.Dir(binary(t)) + string(os.PathListSeparator) + os.Getenv("PATH")}
	out, _ := sh.CombinedOutput() // no model is there, so it fails
	if !strings.Contains(string(out), "configuration  "+dir) || strings.Contains(string(out), "not set") {
		t.Errorf("%s\nsaid %s", command, out)
	}
}
