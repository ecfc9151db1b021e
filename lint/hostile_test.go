package lint

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/fakemcp"
)

// TestHostileServers: whatever a server does is a finding with an id, and never
// the end of the linter. Budgets are small, so that it does not take long.
func TestHostileServers(t *testing.T) {
	tools := []fakemcp.Tool{{Name: "notes_get_note", Definition: json.RawMessage(base)}}
	for name, c := range map[string]struct {
		faults []fakemcp.Fault
		http   bool
		want   string // among what fires
	}{
		"does not start":        {faults: []fakemcp.Fault{{Kind: fakemcp.DieAtStart, Code: 3}}, want: "P001"},
		"hangs":                 {faults: []fakemcp.Fault{{Kind: fakemcp.Hang}}, want: "P001"},
		"hangs when listing":    {faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "tools/list"}}, want: "P019"},
		"talks nonsense":        {faults: []fakemcp.Fault{{Kind: fakemcp.Garbage}}, want: "P015"},
		"floods":                {faults: []fakemcp.Fault{{Kind: fakemcp.HugeLine, Size: 20 << 20}}, want: "P023"},
		"repeats a cursor":      {faults: []fakemcp.Fault{{Kind: fakemcp.RepeatCursor}}, want: "O007"},
		"lists without end":     {faults: []fakemcp.Fault{{Kind: fakemcp.EndlessCursors}}, want: "O007"},
		"lists nonsense":        {faults: []fakemcp.Fault{{Kind: fakemcp.InvalidEntries}}, want: "S021"},
		"lists a name twice":    {faults: []fakemcp.Fault{{Kind: fakemcp.EqualNames}}, want: "N006"},
		"dies when called":      {faults: []fakemcp.Fault{{Kind: fakemcp.DieOnCall}}, want: "E006"},
		"answers twice":         {faults: []fakemcp.Fault{{Kind: fakemcp.Twice}}, want: "P022"},
		"answers somebody else": {faults: []fakemcp.Fault{{Kind: fakemcp.WrongID}}, want: "P022"},
		"answers deep":          {faults: []fakemcp.Fault{{Kind: fakemcp.Deep}}},
		"answers bad UTF-8":     {faults: []fakemcp.Fault{{Kind: fakemcp.BadUTF8}}},
		"changes its tools":     {faults: []fakemcp.Fault{{Kind: fakemcp.ListChanged}}},
		"a web page":            {http: true, faults: []fakemcp.Fault{{Kind: fakemcp.HTML}}, want: "P001"},
		"a bomb":                {http: true, faults: []fakemcp.Fault{{Kind: fakemcp.Bomb, Size: 64 << 20}}, want: "P001"},
		"a slow loris":          {http: true, faults: []fakemcp.Fault{{Kind: fakemcp.SlowLoris, Method: "tools/list"}}, want: "P019"},
		"always busy":           {http: true, faults: []fakemcp.Fault{{Kind: fakemcp.Status, Status: 503}}, want: "P001"},
		"unauthorized":          {http: true, faults: []fakemcp.Fault{{Kind: fakemcp.Status, Status: 401}}, want: "X010"},
		"broken streams":        {http: true, faults: []fakemcp.Fault{{Kind: fakemcp.BrokenStream}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := fakemcp.Config{Name: "notes-mcp-server", Era: fakemcp.LegacyOnly, Tools: tools, Faults: c.faults}
			target := Target{Label: "notes"}
			if c.http {
				server := httptest.NewServer(fakemcp.New(config))
				t.Cleanup(server.Close)
				t.Cleanup(server.CloseClientConnections)
				target.URL = server.URL
			} else {
				path, args, env := fakemcp.Command(config)
				target.Command = func() *exec.Cmd {
					cmd := exec.Command(path, args...)
					cmd.Env = append(os.Environ(), env...)
					return cmd
				}
			}
			r, err := Run(t.Context(), []Target{target}, Options{Budget: Budget{Start: 2 * time.Second, Answer: 400 * time.Millisecond, Time: 20 * time.Second}})
			must(t, err)
			if got := rulesOf(r); c.want != "" && !slices.Contains(got, c.want) || slices.Contains(got, ruleBroken) {
				t.Errorf("fires %v, not %s", got, c.want)
				for _, f := range r.Findings {
					t.Logf("%s: %s", f.Rule, f.Message)
				}
			}
		})
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
