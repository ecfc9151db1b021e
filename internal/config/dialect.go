package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

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

// Validate judges the form of the spec alone; what it means is judged with its base.
func (d *Dialect) Validate() error {
	if err := d.fill(new(dialect.Spec)); err != nil {
		return invalid.Key("spec", err.Error())
	}
	return nil
}

// fill overwrites what the entry says of a spec.
func (d *Dialect) fill(spec any) error {
	if len(d.Spec) == 0 || string(d.Spec) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(d.Spec))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(spec)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, number, _ := strings.Cut(wrong.Value, " ")
		return fmt.Errorf("%s must be %s, not %s", cmp.Or(wrong.Field, "it"), inWords(wrong.Type), cmp.Or(number, given[kind]))
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// inWords says what a value of a type is in a file.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	}
	return "a mapping"
}

// given are the kinds of values of a file, by what encoding/json calls them.
var given = map[string]string{"bool": "true or false", "string": "text", "number": "a number", "array": "a list", "object": "a mapping"}
