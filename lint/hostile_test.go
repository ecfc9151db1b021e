package lint

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// A hostile server has faults, and is found by a rule.
type hostile struct {
	faults []fakemcp.Fault
	want   string // among what fires; empty for nothing in particular
}

var hostilePipes = map[string]hostile{
	"hangs":                 {[]fakemcp.Fault{{Kind: fakemcp.Hang}}, "P001"},
	"hangs when listing":    {[]fakemcp.Fault{{Kind: fakemcp.Hang, Method: "tools/list"}}, "P019"},
	"talks nonsense":        {[]fakemcp.Fault{{Kind: fakemcp.Garbage}}, "P015"},
	"floods":                {[]fakemcp.Fault{{Kind: fakemcp.HugeLine, Size: 20 << 20}}, "P023"},
	"repeats a cursor":      {[]fakemcp.Fault{{Kind: fakemcp.RepeatCursor}}, "O007"},
	"lists without end":     {[]fakemcp.Fault{{Kind: fakemcp.EndlessCursors}}, "O007"},
	"lists nonsense":        {[]fakemcp.Fault{{Kind: fakemcp.InvalidEntries}}, "S021"},
	"lists a name twice":    {[]fakemcp.Fault{{Kind: fakemcp.EqualNames}}, "N006"},
	"dies when called":      {[]fakemcp.Fault{{Kind: fakemcp.DieOnCall}}, "E006"},
	"answers twice":         {[]fakemcp.Fault{{Kind: fakemcp.Twice}}, "P022"},
	"answers somebody else": {[]fakemcp.Fault{{Kind: fakemcp.WrongID}}, "P022"},
	"answers deep":          {[]fakemcp.Fault{{Kind: fakemcp.Deep}}, ""},
	"answers bad UTF-8":     {[]fakemcp.Fault{{Kind: fakemcp.BadUTF8}}, ""},
	"changes its tools":     {[]fakemcp.Fault{{Kind: fakemcp.ListChanged}}, ""},
}

var hostileHTTP = map[string]hostile{
	"a web page":     {[]fakemcp.Fault{{Kind: fakemcp.HTML}}, "P001"},
	"a bomb":         {[]fakemcp.Fault{{Kind: fakemcp.Bomb, Size: 64 << 20}}, "P001"},
	"a slow loris":   {[]fakemcp.Fault{{Kind: fakemcp.SlowLoris, Method: "tools/list"}}, "P019"},
	"always busy":    {[]fakemcp.Fault{{Kind: fakemcp.Status, Status: 503}}, "P001"},
	"unauthorized":   {[]fakemcp.Fault{{Kind: fakemcp.Status, Status: 401}}, "X010"},
	"broken streams": {[]fakemcp.Fault{{Kind: fakemcp.BrokenStream}}, ""},
}

// TestHostileServers: whatever a server does is a finding with an id, and never
// the end of the linter. What hangs over a pipe hangs on a clock of its own.
func TestHostileServers(t *testing.T) {
	for name, h := range hostilePipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakemcp.New(h.config())
				h.try(t, Target{Label: "notes", Pipe: func(ctx context.Context) (io.ReadCloser, io.WriteCloser, error) {
					r, w := server.Pipe(ctx)
					return r, w, nil
				}}, Budget{})
			})
		})
	}
	for name, h := range hostileHTTP {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(fakemcp.New(h.config()))
			t.Cleanup(server.Close)
			t.Cleanup(server.CloseClientConnections)
			// A slow machine makes more of the answers late, and none of them good.
			h.try(t, Target{Label: "notes", URL: server.URL}, Budget{Answer: time.Second, Time: time.Minute})
		})
	}
	t.Run("does not start", func(t *testing.T) {
		t.Parallel()
		h := hostile{[]fakemcp.Fault{{Kind: fakemcp.DieAtStart, Code: 3}}, "P001"}
		path, args, env := fakemcp.Command(h.config())
		h.try(t, Target{Label: "notes", Command: func() *exec.Cmd {
			cmd := exec.Command(path, args...)
			cmd.Env = append(os.Environ(), env...)
			return cmd
		}}, Budget{})
	})
}

func (h hostile) config() fakemcp.Config {
	tools := []fakemcp.Tool{{Name: "notes_get_note", Definition: json.RawMessage(base)}}
	return fakemcp.Config{Name: "notes-mcp-server", Era: fakemcp.LegacyOnly, Tools: tools, Faults: h.faults}
}

func (h hostile) try(t *testing.T, target Target, budget Budget) {
	t.Helper()
	r, err := Run(t.Context(), []Target{target}, Options{Budget: budget, long: 10_000})
	must(t, err)
	if got := rulesOf(r); h.want != "" && !slices.Contains(got, h.want) || slices.Contains(got, ruleBroken) {
		t.Errorf("fires %v, not %s", got, h.want)
		for _, f := range r.Findings {
			t.Logf("%s: %s", f.Rule, f.Message)
		}
	}
}

// TestNotALists: what is no list of tools is an error, and no entry of a list is.
func TestNotALists(t *testing.T) {
	for _, text := range []string{``, `{`, `null`, `{}`, `{"tools":{}}`, `{"tools":null}`, `"tools"`, `{"result":{}}`, "\xff"} {
		if r, err := Run(t.Context(), []Target{{List: json.RawMessage(text)}}, Options{}); err == nil {
			t.Errorf("%q was read as %d tools", text, len(r.Servers[0].Server.Tools))
		}
	}
	for _, text := range []string{`[]`, `{"tools":[]}`, `{"result":{"tools":[]}}`, `{"tools":[null,1,"x",[],{},{"name":null},{"name":"a","inputSchema":5},{"name":"b","inputSchema":{"type":"object","properties":5,"required":5}}]}`,
		`[{"name":"a","inputSchema":` + strings.Repeat(`{"not":`, 600) + `{}` + strings.Repeat(`}`, 600) + `}]`} {
		r, err := Run(t.Context(), []Target{{List: json.RawMessage(text)}}, Options{})
		must(t, err)
		if slices.Contains(rulesOf(r), ruleBroken) {
			t.Errorf("%.60s: a rule failed: %+v", text, r.Findings)
		}
	}
}

// FuzzRun: no list makes a rule fail, or a report that cannot be written.
func FuzzRun(f *testing.F) {
	f.Add(`{"tools":[` + base + `]}`)
	f.Add(`[{"name":"a\u200b","inputSchema":{"$ref":"#/x","x":{"allOf":[{"$ref":"#"}]}},"icons":[{"src":"%"}]}]`)
	f.Add(`{"tools":[{"name":"list_a","inputSchema":{"type":"object","properties":{"limit":{"type":"integer","default":1e99,"pattern":"("}},"required":[1]},"outputSchema":{"properties":{"a":true}}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Run(t.Context(), []Target{{Label: "a", List: json.RawMessage(text), File: "a.json"}}, Options{Dialects: []string{"openai"}})
		if err != nil {
			return
		}
		if slices.Contains(rulesOf(r), ruleBroken) {
			t.Fatalf("a rule failed: %+v", r.Findings)
		}
		var b strings.Builder
		if err := r.WriteSARIF(&b, ""); err != nil || !json.Valid([]byte(b.String())) {
			t.Fatalf("the report cannot be written: %v", err)
		}
		r.Patch()
	})
}
