package mcpserve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// withSkills are the two servers, each with a skill under the same URI, and one with
// a second one.
func withSkills() *two {
	inner := newTwo()
	list := *inner.list
	skill := func(label, path, name string) dragoman.Entry {
		uri := "skill://" + path + "/SKILL.md"
		return dragoman.Entry{Kind: dragoman.Skill, Server: label, Original: uri, URI: uri, Name: name, Definition: json.RawMessage(fmt.Sprintf(
			`{"uri":%q,"frontmatter":{"name":%q,"description":"of %s","n":9007199254740993},"resources":[{"uri":%q,"digest":"sha256:x","size":1},{"uri":"skill://%s/a.md","digest":"sha256:y","size":1}]}`,
			uri, name, label, uri, path))}
	}
	list.Entries = append(append([]dragoman.Entry(nil), list.Entries...),
		skill("a", "refunds", "refunds"), skill("b", "refunds", "refunds"), skill("b", "deep/daily", "daily"))
	list.Servers = append([]dragoman.Server(nil), list.Servers...)
	for i := range list.Servers {
		list.Servers[i].Capabilities = json.RawMessage(`{"tools":{},"prompts":{},"resources":{},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}`)
	}
	inner.list = &list
	return inner
}

// Skills are listed with their servers' identity, and what is asked for goes to the
// server that has it: by another gateway's wire in between, in each era.
func TestSkills(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			inner := withSkills()
			url := open(t, inner, nil, "a", "b") + "/mcp"
			transport := &http.Transport{}
			c, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: url, Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{Label: "door", Era: era})
			if err != nil {
				t.Fatal(err)
			}
			defer transport.CloseIdleConnections()
			defer c.Close()
			if got := string(c.Capabilities()); !strings.Contains(got, `"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}`) {
				t.Errorf("declared is %s", got)
			}
			if err := c.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			list, err := c.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range list.Entries {
				if e.Kind == dragoman.Skill {
					got = append(got, e.Name+" "+e.URI)
					if !strings.Contains(string(e.Definition), `"n":9007199254740993`) {
						t.Errorf("a number was changed: %s", e.Definition)
					}
					if own := strings.Contains(e.URI, "x-mcp:b:"); strings.Contains(string(e.Definition), `"uri":"x-mcp:b:skill://refunds/a.md"`) != own {
						t.Errorf("the files of %s are in %s", e.URI, e.Definition)
					}
				}
			}
			if want := "[refunds skill://refunds/SKILL.md refunds x-mcp:b:skill://refunds/SKILL.md daily skill://deep/daily/SKILL.md]"; fmt.Sprint(got) != want {
				t.Errorf("listed are %v, want %s", got, want)
			}
			for _, tc := range []struct{ method, uri, server, original string }{
				{"skills/get", "skill://refunds/SKILL.md", "a", "skill://refunds/SKILL.md"},
				{"skills/get", "x-mcp:b:skill://refunds/SKILL.md", "b", "skill://refunds/SKILL.md"},
				{"skills/get", "skill://deep/daily/SKILL.md", "b", "skill://deep/daily/SKILL.md"},
				{"resources/read", "skill://refunds/a.md", "a", "skill://refunds/a.md"},
				{"resources/read", "x-mcp:b:skill://refunds/a.md", "b", "skill://refunds/a.md"},
				{"resources/read", "skill://deep/daily/a.md", "b", "skill://deep/daily/a.md"},
				{"resources/directory/read", "skill://deep/daily", "b", "skill://deep/daily"},
			} {
				inner.calls = nil
				res, err := c.Call(t.Context(), dragoman.Call{Method: tc.method, Arguments: json.RawMessage(`{"uri":"` + tc.uri + `"}`)})
				if err != nil || res.Problem != nil || len(inner.calls) != 1 {
					t.Errorf("%s %s: %v, %v, %d calls", tc.method, tc.uri, res.Problem, err, len(inner.calls))
					continue
				}
				if call := inner.calls[0]; call.Method != tc.method || call.Entry.Server != tc.server || call.Entry.Original != tc.original {
					t.Errorf("%s %s became %s of %+v", tc.method, tc.uri, call.Method, call.Entry)
				}
			}
			if res, err := c.Call(t.Context(), dragoman.Call{Method: "skills/get", Arguments: json.RawMessage(`{"uri":"x-mcp:c:skill://refunds/SKILL.md"}`)}); err != nil || code(res) != -32602 {
				t.Errorf("a skill of no server: %v %v", res.Problem, err)
			}
		})
	}
}

// A server without skills has none of their methods.
func TestNoSkills(t *testing.T) {
	if _, problem := post(t, open(t, newTwo(), nil, "a", "b")+"/mcp", "skills/list", ""); !strings.Contains(string(problem), "-32601") {
		t.Errorf("skills/list: %s", problem)
	}
}
