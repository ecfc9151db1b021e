package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A Violation is one way in which a value does not fit its schema, in words for
// a model or a person.
type Violation struct {
	// Path is a JSON pointer (RFC 6901) into the value; empty for the whole.
	Path string
	// Expected says what would be right: "integer", "one of 'a', 'b'".
	Expected string
	// Missing reports that a required member is absent; Path then ends with its
	// name.
	Missing bool
}

func (v Violation) String() string {
	path := v.Path
	if path == "" {
		path = "the value"
	}
	if v.Missing {
		return fmt.Sprintf("%s is missing: expected %s", path, v.Expected)
	}
	return fmt.Sprintf("%s: expected %s", path, v.Expected)
}

// A Validator judges values by one schema. The zero value is of no use; see
// [NewValidator]. It is safe for concurrent use.
type Validator struct {
	compile func() *compiled
}

type compiled struct {
	schema *jsonschema.Schema
	tree   *Node
	// unchecked says what of the schema can not be checked.
	unchecked []string
}

// NewValidator returns a validator for a schema of JSON Schema draft 4 to
// 2020-12; without $schema it is read as 2020-12. Nothing is compiled until the
// first use, and nothing is ever fetched: a reference that leaves the document
// makes the schema uncheckable.
func NewValidator(raw json.RawMessage) *Validator {
	return &Validator{compile: sync.OnceValue(func() *compiled { return compile(raw) })}
}

// Unchecked says in words which part of the schema can not be checked, such as
// a pattern that RE2 does not know; empty when all of it is. A schema that can
// not be compiled at all accepts every value.
func (v *Validator) Unchecked() []string { return v.compile().unchecked }

// Validate returns how value does not fit, in the order of paths; empty when it
// fits. A value that is not JSON is one violation of the whole.
func (v *Validator) Validate(value json.RawMessage) []Violation {
	n, err := Parse(value)
	if err != nil {
		return []Violation{{Expected: "valid JSON: " + err.Error()}}
	}
	return v.ValidateNode(n)
}

// ValidateNode is Validate for a value that was parsed already.
func (v *Validator) ValidateNode(value *Node) []Violation {
	c := v.compile()
	if c.schema == nil {
		return nil
	}
	err := c.schema.Validate(value.plain())
	if err == nil {
		return nil
	}
	failure, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []Violation{{Expected: "a value that fits the schema: " + err.Error()}}
	}
	var found []Violation
	c.collect(failure, &found)
	slices.SortStableFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Expected, b.Expected))
	})
	return slices.Compact(found)
}

// refuse is a loader that loads nothing.
type refuse struct{}

func (refuse) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside the schema, and nothing is fetched", url)
}

const location = "schema:/"

func compile(raw []byte) *compiled {
	c := &compiled{}
	n, err := Parse(raw)
	if err != nil {
		c.unchecked = append(c.unchecked, "the schema: "+err.Error())
		return c
	}
	c.tree = n
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(refuse{})
	compiler.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		re, err := regexp.Compile(pattern)
		if err != nil {
			note := fmt.Sprintf("the pattern %.100q is not checked: %v", pattern, err)
			if !slices.Contains(c.unchecked, note) {
				c.unchecked = append(c.unchecked, note)
			}
			return anything(pattern), nil
		}
		return re, nil
	})
	if err := compiler.AddResource(location, n.plain()); err == nil {
		c.schema, err = compiler.Compile(location)
		if err == nil {
			return c
		}
	}
	c.schema = nil
	c.unchecked = append(c.unchecked, fmt.Sprintf("the schema can not be compiled: %v", err))
	return c
}

// anything stands for a pattern that can not be compiled: it matches all.
type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

// plain returns n as encoding/json would decode it, with json.Number.
func (n *Node) plain() any {
	switch n.kind {
	case Object:
		m := make(map[string]any, len(n.members))
		for _, member := range n.members {
			m[member.Name] = member.Value.plain()
		}
		return m
	case Array:
		a := make([]any, len(n.items))
		for i, item := range n.items {
			a[i] = item.plain()
		}
		return a
	case String:
		return n.text
	case Number:
		return json.Number(n.text)
	case Bool:
		return n.text == "true"
	}
	return nil
}

// collect writes the leaves of a failure into found. A union that no branch of
// fits is one violation, unless the branches agree on where the trouble is.
func (c *compiled) collect(e *jsonschema.ValidationError, found *[]Violation) {
	path := Pointer(e.InstanceLocation...)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			*found = append(*found, Violation{Path: path + Pointer(name), Expected: c.property(e.SchemaURL, name), Missing: true})
		}
		return
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			*found = append(*found, Violation{Path: path + Pointer(name), Expected: "a value, because " + k.Prop + " is present", Missing: true})
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			*found = append(*found, Violation{Path: path + Pointer(name), Expected: "no member of this name"})
		}
		return
	}
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			c.collect(cause, found)
		}
		return
	}
	*found = append(*found, Violation{Path: path, Expected: expected(e.ErrorKind)})
}

// property says in words what the member of that name is to be, by the object
// schema at url.
func (c *compiled) property(url, name string) string {
	_, pointer, _ := strings.Cut(url, "#")
	return c.tree.At(pointer).Get("properties").Get(name).Words()
}

// expected says in words what a keyword asks for.
func expected(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return types(k.Want)
	case *kind.Enum:
		return "one of " + list(k.Want)
	case *kind.Const:
		return list([]any{k.Want})
	case *kind.Pattern:
		return "a string that matches " + k.Want
	case *kind.Format:
		return "a string in the format " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("at most %d items", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("at least %d members", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("at most %d members", k.Want)
	case *kind.UniqueItems:
		return "items that differ from each other"
	case *kind.Minimum:
		return "a number of at least " + decimal(k.Want)
	case *kind.Maximum:
		return "a number of at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "a number greater than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "a number less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "a multiple of " + decimal(k.Want)
	case *kind.FalseSchema:
		return "nothing here"
	case *kind.Not:
		return "a value that the schema does not exclude"
	case *kind.OneOf:
		return "a value that fits exactly one of the alternatives"
	}
	return "a value that fits the schema"
}
