package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Limits of what a call's arguments may hold. They stand before the schema,
// because checking a number such as 1e999999999 against a minimum would first
// write it out.
const (
	maxNumberLength = 1000 // characters of one number
	maxExponent     = 1000 // magnitude
	maxDepth        = 64   // nested objects and arrays
)

// A contract is an input schema that arguments are held to.
type contract struct{ schema *jsonschema.Schema }

// noReferences is the loader of a schema that refers to nothing outside itself.
type noReferences struct{}

func (noReferences) Load(url string) (any, error) {
	return nil, fmt.Errorf("demo: schema refers to %s", url)
}

func newContract(schema string) (*contract, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noReferences{})
	if err := c.AddResource("demo:schema", doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	s, err := c.Compile("demo:schema")
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return &contract{s}, nil
}

// accept says what is wrong with raw, in words for a model, or nil.
func (c *contract) accept(raw jsontext.Value) error {
	if err := wellFormed(raw); err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	err = c.schema.Validate(v)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New(strings.Join(complaints(invalid, nil), "; "))
	}
	return err
}

// wellFormed reads raw strictly: one JSON value, no duplicate names, valid
// UTF-8, and nothing beyond the limits above.
func wellFormed(raw jsontext.Value) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if dec.StackDepth() > maxDepth {
			return fmt.Errorf("nested deeper than %d levels", maxDepth)
		}
		if tok.Kind() != '0' {
			continue
		}
		if err := modest(tok.String()); err != nil {
			return fmt.Errorf("%s: %w", place(string(dec.StackPointer())), err)
		}
	}
}

// modest tells whether a JSON number can be written out at a reasonable length.
func modest(number string) error {
	if len(number) > maxNumberLength {
		return fmt.Errorf("number of %d characters, at most %d are accepted", len(number), maxNumberLength)
	}
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		exp, err := strconv.Atoi(number[i+1:])
		if err != nil || exp > maxExponent || exp < -maxExponent {
			return fmt.Errorf("exponent of %s is out of range, at most ±%d is accepted", number, maxExponent)
		}
	}
	return nil
}

var english = message.NewPrinter(language.English)

// complaints flattens a validation error to one short sentence per leaf.
func complaints(e *jsonschema.ValidationError, list []string) []string {
	if len(e.Causes) == 0 {
		at := "/" + strings.Join(e.InstanceLocation, "/")
		if len(e.InstanceLocation) == 0 {
			at = ""
		}
		return append(list, place(at)+": "+e.ErrorKind.LocalizedString(english))
	}
	for _, cause := range e.Causes {
		list = complaints(cause, list)
	}
	return list
}

func place(pointer string) string {
	if pointer == "" {
		return "arguments"
	}
	return pointer
}
