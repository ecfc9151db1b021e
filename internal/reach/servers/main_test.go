package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/leaktest"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// What this program is to be instead of a test, by environment variables.
const (
	envPrintEnvironment = "DRAGOMAN_TEST_ENVIRONMENT" // print the environment to standard error, in hexadecimal
	envOpen             = "DRAGOMAN_TEST_OPEN"        // open the servers of this JSON and wait
)

func TestMain(m *testing.M) {
	if os.Getenv(envPrintEnvironment) != "" {
		for _, variable := range os.Environ() {
			fmt.Fprintf(os.Stderr, "%x\n", variable)
		}
		os.Exit(0)
	}
	beDetaching()
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	if configs := os.Getenv(envOpen); configs != "" {
		beOpened(configs)
	}
	os.Exit(leaktest.Run(m))
}

// A toldConfig is what another process is told of a Config, whose variables would not
// show.
type toldConfig struct {
	Command string
	Args    []string
	Env     map[string]string
}

// beOpened opens a Set, says on standard output when it is connected, and waits
// for its death.
func beOpened(configs string) {
	var told map[string]toldConfig
	if err := json.Unmarshal([]byte(configs), &told); err != nil {
		panic(err)
	}
	c := map[string]Config{}
	for label, one := range told {
		c[label] = Config{Command: one.Command, Args: one.Args, Env: secret.Map(one.Env)}
	}
	s := New(c, Options{})
	if err := s.Settle(context.Background()); err != nil {
		panic(err)
	}
	list, _ := s.List(context.Background())
	for _, state := range list.Servers {
		fmt.Println(state.Label, state.State)
	}
	fmt.Println("open")
	time.Sleep(5 * time.Minute)
	os.Exit(1)
}

// child returns the configuration of a fake server in a process of its own, and
// the file that its log goes to.
func child(t *testing.T, fake fakemcp.Config) (config Config, log string) {
	t.Helper()
	fake.LogFile = filepath.Join(t.TempDir(), "log")
	path, args, env := fakemcp.Command(fake)
	config = Config{Command: path, Args: args, Env: map[string]secret.Text{}}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		config.Env[name] = secret.New(value)
	}
	return config, fake.LogFile
}

// entries reads the log of a child.
func entries(t *testing.T, log string, method string) []fakemcp.Entry {
	t.Helper()
	all, err := fakemcp.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	if method == "" {
		return all
	}
	return slices.DeleteFunc(all, func(e fakemcp.Entry) bool { return e.Method != method })
}

// piped is a server in this process: each session is with the next of the fakes,
// the last of them for ever.
func piped(fakes ...*fakemcp.Server) func(context.Context) mcp.Transport {
	var mu sync.Mutex
	return func(ctx context.Context) mcp.Transport {
		mu.Lock()
		defer mu.Unlock()
		fake := fakes[0]
		if len(fakes) > 1 {
			fakes = fakes[1:]
		}
		r, w := fake.Pipe(ctx)
		return &mcp.Pipe{Reader: r, Writer: w}
	}
}

// web serves a fake over HTTP until the test, and what it opens later, has ended.
func web(t *testing.T, fake http.Handler) (url string) {
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	return server.URL
}

// builtin is options for one server with the label "it".
func builtin(transport func(context.Context) mcp.Transport) Options {
	return Options{Builtin: map[string]func(context.Context) mcp.Transport{"it": transport}}
}

func open(t *testing.T, configs map[string]Config, o Options) *Set {
	t.Helper()
	s := New(configs, o)
	t.Cleanup(s.Close)
	return s
}

// openOne opens one server with the label "it" and waits until it has settled.
func openOne(t *testing.T, config Config, o Options) *Set {
	t.Helper()
	s := open(t, map[string]Config{"it": config}, o)
	settle(t, s)
	return s
}

func settle(t *testing.T, s *Set) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Settle(ctx); err != nil {
		t.Fatal("the servers did not settle")
	}
}

// state returns the state of the server "it".
func state(s *Set) dragoman.Server { return s.own("it").state() }

// eventually waits for something that nobody tells us about.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !happened(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// list returns the set's tools by their original names.
func list(t *testing.T, s *Set) map[string]*dragoman.Tool {
	t.Helper()
	tools := listed(t, s).Tools.All()
	byName := map[string]*dragoman.Tool{}
	for i := range tools {
		byName[tools[i].Original] = &tools[i]
	}
	return byName
}

func listed(t *testing.T, s *Set) *dragoman.List {
	t.Helper()
	l, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func servers(t *testing.T, s *Set) []dragoman.Server { return listed(t, s).Servers }

// try calls a tool of the server "it"; the outcome is a problem's code or "ok".
func try(t *testing.T, s *Set, tool string) (outcome string, res dragoman.Result) {
	t.Helper()
	called := list(t, s)[tool]
	if called == nil {
		t.Fatalf("no tool %q is listed", tool)
	}
	res, err := s.Call(t.Context(), dragoman.Call{Tool: called, Arguments: json.RawMessage(`{"message":"hello"}`)})
	if err != nil {
		t.Fatalf("calling %s: %v", tool, err)
	}
	if res.Problem != nil {
		return res.Problem.Code, res
	}
	return "ok", res
}

// records are log records as lines of JSON.
type records struct {
	mu    sync.Mutex
	lines []string
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(line))
	return len(line), nil
}

func (r *records) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(r, nil)) }

// with returns the records that have all the parts.
func (r *records) with(parts ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.lines), func(line string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	})
}
