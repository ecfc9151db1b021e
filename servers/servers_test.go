package servers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

func TestMain(m *testing.M) {
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	os.Exit(m.Run())
}

// here is a server in this process.
func here(fake fakemcp.Config) func(context.Context) mcp.Transport {
	server := fakemcp.New(fake)
	return func(ctx context.Context) mcp.Transport {
		r, w := server.Pipe(ctx)
		return &mcp.Pipe{Reader: r, Writer: w}
	}
}

func tools(names ...string) (tools []fakemcp.Tool) {
	for _, name := range names {
		tools = append(tools, fakemcp.Tool{Name: name})
	}
	return tools
}

// start starts servers and waits for them.
func start(t *testing.T, all map[string]Server, o *Options) (*Set, *dragoman.List) {
	t.Helper()
	set, err := Start(all, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	if err := set.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := set.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return set, list
}

func names(list *dragoman.List) (names []string) {
	for _, tool := range list.Tools.All() {
		names = append(names, tool.Name)
	}
	return names
}

// Servers of every kind are one toolset, and one that is down harms no other.
func TestServersOfEveryKind(t *testing.T) {
	path, args, env := fakemcp.Command(fakemcp.Config{Tools: tools("read", "write", "remove")})
	variables := map[string]string{}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	web := httptest.NewServer(fakemcp.New(fakemcp.Config{Tools: tools("fetch"), Token: "open"}))
	t.Cleanup(web.Close) // when the set is closed
	set, list := start(t, map[string]Server{
		"files": {
			Command: append([]string{path}, args...), Env: variables,
			Exclude: []string{"rem*"}, ReadOnly: []string{"read"},
		},
		"web":    {URL: web.URL, Headers: map[string]string{"Authorization": "Bearer open"}},
		"memory": {Connect: here(fakemcp.Config{Tools: tools("recall", "forget")}), Include: []string{"recall"}},
		"gone":   {Command: []string{"/no/such/program"}},
	}, nil)

	want := []string{"files__read", "files__write", "memory__recall", "web__fetch"}
	if diff := cmp.Diff(want, names(list)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if effect := list.Tools.Exact("files__read").Effect(); effect != dragoman.ReadOnly {
		t.Errorf("files__read is %v", effect)
	}
	for _, name := range want {
		res, err := set.Call(t.Context(), dragoman.Call{Tool: list.Tools.Exact(name), Arguments: json.RawMessage(`{"n":12345678901234567890}`)})
		if err != nil || res.Problem != nil || !strings.Contains(string(res.Content), "12345678901234567890") {
			t.Errorf("%s: %s, %v, %v", name, res.Content, res.Problem, err)
		}
	}
	i := slices.IndexFunc(list.Servers, func(s dragoman.Server) bool { return s.Label == "gone" })
	if i < 0 || list.Servers[i].State != dragoman.Failed || !strings.Contains(list.Servers[i].Problem.Message, "/no/such/program") {
		t.Errorf("servers: %+v", list.Servers)
	}
}

// TestWaitSaysWhenAllFailed: as long as one server can be used there is no error; where
// none can, it names each with its reason. What was not waited for does not count.
func TestWaitSaysWhenAllFailed(t *testing.T) {
	gone, nowhere := Server{Command: []string{"/no/such/program"}}, Server{URL: "http://127.0.0.1:1/mcp"}
	fine := Server{Connect: here(fakemcp.Config{Tools: tools("read")})}
	for name, tt := range map[string]struct {
		all    map[string]Server
		labels []string
		want   []string // words of the error; none for no error
	}{
		"none there":        {all: nil},
		"one of two":        {all: map[string]Server{"gone": gone, "fine": fine}},
		"all":               {all: map[string]Server{"gone": gone, "nowhere": nowhere}, want: []string{"gone: ", "/no/such/program", "nowhere: ", "connection refused"}},
		"no transport":      {all: map[string]Server{"lost": {Connect: func(context.Context) mcp.Transport { return nil }}}, want: []string{"lost: ", "no Transport"}},
		"the one by label":  {all: map[string]Server{"gone": gone, "fine": fine}, labels: []string{"gone"}, want: []string{"gone: ", "/no/such/program"}},
		"the fine by label": {all: map[string]Server{"gone": gone, "fine": fine}, labels: []string{"fine"}},
	} {
		set, err := Start(tt.all, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = set.Wait(t.Context(), tt.labels...)
		if errors.Is(err, ErrNone) != (tt.want != nil) || err != nil && tt.want == nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, word := range tt.want {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v does not say %s", name, err, word)
			}
		}
		if problem, ok := errors.AsType[*dragoman.Problem](err); ok != (tt.want != nil) || ok && problem.Code == "" {
			t.Errorf("%s: no problem in %v", name, err)
		}
		set.Close()
	}
}

// TestServerWantsToken: what to do about a server that lets nobody in is something that a
// program can do, which has no logins.
func TestServerWantsToken(t *testing.T) {
	web := httptest.NewServer(fakemcp.New(fakemcp.Config{Tools: tools("fetch"), Token: "open"}))
	defer web.Close()
	set, err := Start(map[string]Server{"web": {URL: web.URL}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	err = set.Wait(t.Context())
	if p := dragoman.AsProblem(err); p == nil || p.Code != dragoman.CodeNeedsAuthorization ||
		!strings.Contains(p.Message, "Authorization header") || strings.Contains(p.Message, "dragoman login") {
		t.Errorf("got %v", err)
	}
}

// TestErrorsOfServers: a program finds the error behind a server that cannot be used, such as
// the challenge of one that wants a token, which says where to get it.
func TestErrorsOfServers(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer scope="read"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer web.Close()
	set, err := Start(map[string]Server{
		"closed": {URL: web.URL}, "wrong": {URL: web.URL, Headers: map[string]string{"Authorization": "Bearer a secret of ours"}},
		"busy": {URL: web.URL + "/busy"}, "gone": {Command: []string{"no-such-program"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for _, label := range []string{"closed", "wrong"} {
		err := set.Wait(t.Context(), label)
		if e, ok := errors.AsType[*mcp.AuthorizationError](err); !ok || !slices.Equal(e.Challenges, []string{`Bearer scope="read"`}) {
			t.Errorf("%s: %v", label, err)
		}
	}
	if e, ok := errors.AsType[*mcp.StatusError](set.Wait(t.Context(), "busy")); !ok || e.Status != http.StatusServiceUnavailable {
		t.Errorf("busy: %v", e)
	}
	if err := set.Wait(t.Context(), "gone"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("gone: %v", err)
	}
}

func TestWaitForNobody(t *testing.T) {
	set, _ := start(t, map[string]Server{"fine": {Connect: here(fakemcp.Config{Tools: tools("read")})}}, nil)
	if err := set.Wait(t.Context(), "fine", "fien"); err == nil || err.Error() != `there is no server "fien"` || errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}

func TestNoPrefix(t *testing.T) {
	_, list := start(t, map[string]Server{
		"a": {Connect: here(fakemcp.Config{Tools: tools("read", "same")})},
		"b": {Connect: here(fakemcp.Config{Tools: tools("write", "same")})},
	}, &Options{NoPrefix: true})
	got := names(list)
	if len(got) != 4 || got[0] != "read" || got[2] == got[1] && got[1] == "same" || !slices.Contains(got, "write") {
		t.Errorf("%q", got)
	}
	if list.Tools.Find("same") != nil {
		t.Error("a name that two tools have finds one of them")
	}
}

// A tool that is for the views of its server alone is nothing for a model.
func TestToolsForViews(t *testing.T) {
	_, list := start(t, map[string]Server{"a": {Connect: here(fakemcp.Config{Tools: []fakemcp.Tool{
		{Name: "read"}, {Definition: json.RawMessage(`{"name":"redraw","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}`)},
	}})}}, nil)
	if got := names(list); len(got) != 1 || got[0] != "a__read" {
		t.Errorf("%q", got)
	}
}

// What cannot be is an error of Start, and nothing was started.
func TestStartRefuses(t *testing.T) {
	connect := here(fakemcp.Config{})
	for label, tt := range map[string]struct {
		server Server
		want   string
	}{
		"two__words": {Server{URL: "http://127.0.0.1/"}, "two underscores"},
		"nothing":    {Server{}, "needs a command or a url"},
		"both":       {Server{URL: "http://127.0.0.1/", Command: []string{"x"}}, "not both"},
		"three":      {Server{URL: "http://127.0.0.1/", Connect: connect}, "not several"},
		"scheme":     {Server{URL: "ftp://127.0.0.1/"}, "http"},
		"fewer":      {Server{Connect: connect, InFlight: -1}, "less than zero"},
		"unheard":    {Server{Connect: connect, Headers: map[string]string{"X-Team": "a"}}, "none of Env, Dir and Headers"},
		"unset":      {Server{Connect: connect, Env: map[string]string{"A": "b"}}, "none of Env, Dir and Headers"},
		"sooner":     {Server{Connect: connect, Timeout: -1}, "less than zero"},
	} {
		set, err := Start(map[string]Server{label: tt.server, "fine": {Connect: connect}}, nil)
		if err == nil {
			set.Close()
			t.Errorf("%s was started", label)
		} else if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), label) {
			t.Errorf("%s: %v", label, err)
		}
	}
}

// TestToolset: a set of one server that serves a toolset is as good as the toolset.
func TestToolset(t *testing.T) {
	toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
		set, _ := start(t, map[string]Server{toolsettest.Server: {Connect: func(ctx context.Context) mcp.Transport {
			r, w := fakemcp.PipeToolset(ctx, inner, fakemcp.ModernOnly)
			return mcp.Pipe{Reader: r, Writer: w}
		}}}, &Options{Can: dragoman.AskForm})
		return set
	})
}

// TestSetThatWasNotStarted: what Start returns beside an error can be closed, and says what it is.
func TestSetThatWasNotStarted(t *testing.T) {
	none, err := Start(map[string]Server{"nothing": {}}, nil)
	if err == nil {
		t.Fatal("started nothing")
	}
	for _, set := range []*Set{none, {}} {
		_, err := set.List(t.Context())
		res, callErr := set.Call(t.Context(), dragoman.Call{})
		if err != errNotStarted || callErr != errNotStarted || set.Wait(t.Context()) != errNotStarted || res.Ran != dragoman.RanNot {
			t.Errorf("%v, %v, ran: %v", err, callErr, res.Ran)
		}
		set.Close()
	}
}
