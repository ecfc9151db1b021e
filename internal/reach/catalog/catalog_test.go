package catalog

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

func tool(server, original string) dragoman.Tool {
	return dragoman.Tool{Server: server, Original: original, Definition: []byte(`{"name":"` + original + `"}`)}
}

func names(tools []dragoman.Tool) (out []string) {
	for _, t := range tools {
		n := t.Name
		if t.Quarantined != nil {
			n = "(" + n + ")"
		}
		out = append(out, n)
	}
	return out
}

func TestName(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tc := range []struct {
		name   string
		config Config
		tools  []dragoman.Tool
		want   []string
	}{
		{"label, sorted", Config{}, []dragoman.Tool{tool("b", "y"), tool("a", "z"), tool("a", "x")},
			[]string{"a__x", "a__z", "b__y"}},
		{"illegal characters", Config{}, []dragoman.Tool{tool("a.b", "admin/users list"), tool("a.b", "größe")},
			[]string{"a_b__admin_users_list", "a_b__gr__e"}},
		{"the legal one keeps the name", Config{}, []dragoman.Tool{tool("a", "x.y"), tool("a", "x_y"), tool("a", "x/y")},
			[]string{"a__x_y_7ace4eaa", "a__x_y_f723596c", "a__x_y"}},
		{"equal names on one server", Config{}, []dragoman.Tool{tool("a", "x"), tool("a", "x")},
			[]string{"a__x", "(a__x_d4b2af79)"}},
		{"long", Config{}, []dragoman.Tool{tool("a", long), tool("a", long+"y")},
			[]string{"a__" + long[:52] + "_087b1220", "a__" + long[:52] + "_1fd500b5"}},
		{"not a letter first", Config{Strategy: None}, []dragoman.Tool{tool("a", "2fa"), tool("a", "-"), tool("a", "日本")},
			[]string{"t-", "t2fa", "t__"}},
		{"reserved", Config{Strategy: None}, []dragoman.Tool{tool("a", "read_more")}, []string{"read_more_80d869f9"}},
		{"random", Config{Strategy: Random, Identity: func(string) string { return "https://example.com/mcp" }},
			[]dragoman.Tool{tool("a", "x")}, []string{"ypmaut__x"}},
		{"host", Config{Strategy: Host, Identity: func(l string) string {
			return map[string]string{"a": "https://web1.example.com/mcp", "b": "npx foo"}[l]
		}}, []dragoman.Tool{tool("a", "x"), tool("b", "x")}, []string{"web1_example_com__x", "b__x"}},
		{"two servers of one host", Config{Strategy: Host, Identity: func(l string) string { return "https://h/" + l }},
			[]dragoman.Tool{tool("a", "x"), tool("b", "x")}, []string{"h__x_8b86bced", "h__x_e1707ddf"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := names(Name(tc.tools, tc.config))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A name must follow from the tool alone: prompt caches, histories and rules
// depend on it.
func TestNamesAreStable(t *testing.T) {
	all := []dragoman.Tool{tool("a", "x"), tool("a", "y.z"), tool("b", "x"), tool("c", strings.Repeat("n", 80))}
	want := map[string]string{}
	for _, n := range Name(all, Config{}) {
		want[qualified.Name(n.Server, n.Original)] = n.Name
	}
	for mask := range 1 << len(all) {
		var some []dragoman.Tool
		for i := range all {
			if mask&(1<<i) != 0 {
				some = append(some, all[i])
			}
		}
		for _, n := range Name(some, Config{}) {
			if want[qualified.Name(n.Server, n.Original)] != n.Name {
				t.Errorf("%s is %s in one list and %s in another", qualified.Name(n.Server, n.Original), want[qualified.Name(n.Server, n.Original)], n.Name)
			}
		}
	}
}

type fixed struct{ list *dragoman.List }

func (f *fixed) List(context.Context) (*dragoman.List, error) { return f.list, nil }
func (f *fixed) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	return dragoman.Result{Content: []byte(fmt.Sprintf("%q", c.Tool.Original))}, nil
}

func TestCatalogKeepsItsList(t *testing.T) {
	inner := &fixed{&dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{tool("a", "x"), tool("a", "y")})}}
	c := New(inner, Config{})
	first, _ := c.List(t.Context())
	if again, _ := c.List(t.Context()); first != again {
		t.Error("an unchanged list was named anew")
	}
	inner.list = &dragoman.List{Tools: inner.list.Tools, Servers: []dragoman.Server{{Label: "a"}}}
	if again, _ := c.List(t.Context()); first == again || first.Tools != again.Tools || len(again.Servers) != 1 {
		t.Error("a list with other servers is not another one with the same tools")
	}
	res, _ := c.Call(t.Context(), dragoman.Call{Tool: first.Tools.Find("y")})
	if string(res.Content) != `"y"` {
		t.Errorf("called %s", res.Content)
	}
}

var valid = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)

func FuzzName(f *testing.F) {
	f.Add("a", "x", "y")
	f.Add("srv.1", "a.b", "a_b")
	f.Add("x", "", "\xff")
	f.Add("x_", "_y", "y")
	f.Fuzz(func(t *testing.T, label, one, two string) {
		for _, strategy := range []Strategy{Label, Random, Host, None} {
			seen := map[string]bool{}
			for _, n := range Name([]dragoman.Tool{tool(label, one), tool(label, two), tool(label, one+two)}, Config{Strategy: strategy}) {
				if !valid.MatchString(n.Name) {
					t.Errorf("%q is not a valid name", n.Name)
				}
				if seen[n.Name] {
					t.Errorf("two tools are named %q", n.Name)
				}
				seen[n.Name] = true
			}
		}
	})
}
