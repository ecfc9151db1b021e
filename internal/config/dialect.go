package config

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
)

// Dialect adds a dialect to those that are built in, or changes one.
type Dialect struct {
	Name string          `yaml:"name" need:"true" doc:"Name of the dialect, for models and on the command line. That of a built-in one changes it."`
	Base string          `yaml:"base" doc:"Dialect to begin with. Default: the one of the same name, else conservative."`
	Spec json.RawMessage `yaml:"spec" doc:"What is different: title, hosts, rules, strict and wire, as docs/dialects.md describes them."`
}

// Table returns the built-in dialects with those of the configuration over them.
// The error says which entry is wrong.
func (f *File) Table() (*dialect.Table, error) {
	table := dialect.Builtin()
	for i, d := range f.Dialects {
		derived, err := table.Derive(d.Name, d.Base, d.fill)
		if err != nil {
			return nil, invalid.Key("dialects", fmt.Sprintf("entry %d (%s): %v", i+1, d.Name, err))
		}
		table = derived
	}
	return table, nil
}

// fill overwrites what the entry says of a spec.
func (d *Dialect) fill(spec any) error {
	if len(d.Spec) == 0 || string(d.Spec) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(d.Spec))
	decoder.DisallowUnknownFields()
	return decoder.Decode(spec)
}
