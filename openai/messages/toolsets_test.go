package messages

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Each member of a family is a function whose schema is one, and has what it requires.
func TestFamilies(t *testing.T) {
	for _, f := range families {
		for i := range f.members {
			m := &f.members[i]
			raw := m.parameters()
			var schema struct {
				Properties map[string]any
				Required   []string
			}
			if err := json.Unmarshal(raw, &schema); err != nil || rawjson.Check(raw) != nil {
				t.Errorf("%s %s: %s", f.name, m.name, raw)
			}
			for _, name := range schema.Required {
				if schema.Properties[name] == nil {
					t.Errorf("%s %s requires %q, which it does not have", f.name, m.name, name)
				}
			}
			if len(schema.Properties) != len(m.properties) {
				t.Errorf("%s %s has a property twice", f.name, m.name)
			}
		}
	}
}

// What configs says of a family's members counts, and what it says wrongly is refused.
func TestFamilyConfigs(t *testing.T) {
	for configs, want := range map[string]string{
		``: "27 functions, browser_navigate",
		`,"configs":{"navigate":{"enabled":false},"read_console":{"enabled":true},"find":null}`: "27 functions, browser_read_console",
		`,"configs":{"fly":{"enabled":true}}`:                                                   "tools.0.configs.fly",
		`,"configs":{"navigate":{"enabled":"no"}}`:                                              "tools.0.configs.navigate.enabled",
		`,"configs":[]`: "tools.0.configs",
	} {
		r, err := Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"browser_toolset_20260801"` + configs + `}]}`))
		if e, refused := errors.AsType[*model.Error](err); refused {
			if e.Param != want {
				t.Errorf("%s: %v", configs, err)
			}
			continue
		}
		_, name, _ := strings.Cut(want, ", ")
		if len(r.tools) != 27 || !r.names[name] || r.names["browser_javascript_exec"] {
			t.Errorf("%s: %d functions, want %s", configs, len(r.tools), want)
		}
	}
	both := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"browser_find","input_schema":{}},{"type":"browser_toolset_20260801"}]}`
	if _, err := Parse([]byte(both)); err == nil {
		t.Error("two tools of one name were taken")
	}
	gone, err := Parse(changing(`{"type":"computer_toolset_20260801"},`+toolA, removal(named("computer"))))
	if err != nil || len(gone.tools) != 1 {
		t.Errorf("%v", err)
	}
}
