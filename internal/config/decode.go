package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// A field is a key of the configuration, described by the tags of a struct
// field:
//
//	yaml    its name
//	doc     what it is, in a sentence; for the JSON Schema
//	enum    the values that a string can have, separated by commas
//	unit    "bytes" for an int64 that is a size
//	min     the least a number can be; 1 without the tag. A time is more than 0,
//	        unless the tag says that it can be 0
//	max     the most a number can be
//	secret  "filled": values that came from the environment are shown as the
//	        reference to it; those of a [secret.Text] are never shown
//	keys    "label" for a map whose keys are labels of servers
//	need    "true" for a key that has no default
type field struct {
	name, doc, unit, secret, keys string
	need                          bool
	enum                          []string
	min, max                      int64
	index                         []int
}

// fieldsOf returns the keys of a struct type, in order.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		if t.Field(i).Anonymous { // its keys stand among the struct's own
			for _, f := range fieldsOf(t.Field(i).Type) {
				f.index = append([]int{i}, f.index...)
				fields = append(fields, f)
			}
			continue
		}
		tag := t.Field(i).Tag
		f := field{name: tag.Get("yaml"), doc: tag.Get("doc"), unit: tag.Get("unit"), secret: tag.Get("secret"), keys: tag.Get("keys"), need: tag.Get("need") == "true", index: []int{i}}
		if f.name == "" {
			continue
		}
		if enum := tag.Get("enum"); enum != "" {
			f.enum = strings.Split(enum, ",")
		}
		f.min = 1
		if text := tag.Get("min"); text != "" {
			f.min, _ = strconv.ParseInt(text, 10, 64)
		}
		f.max, _ = strconv.ParseInt(tag.Get("max"), 10, 64)
		fields = append(fields, f)
	}
	return fields
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]() // a document of its own
	secretType   = reflect.TypeFor[secret.Text]()
)

// isSection reports whether a type has keys of its own.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && t != secretType }

// A decoder fills a struct from a tree and collects what is wrong.
type decoder struct {
	src    *source
	expand expander
	inputs inputs
	// lenient ignores unknown keys: other clients have keys of their own.
	lenient bool
	ignored ignored

	errs, warnings Errors
	leftOut        []LeftOut
	variables      []string // the files of variables
	refs           map[string]reference
	nodes, text    int
	unsetOK        bool // inside a server that is disabled
	// unfilled counts the values of keys that nobody needs whose variables are not set.
	unfilled int
}

// A reference is a value that was filled in from the environment.
type reference struct{ written, value string }

func (d *decoder) fail(n *node, path, message, hint string) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, d.src.errorAt(n.line, n.column, path, message, hint))
	}
}

func (d *decoder) warn(line, column int, path, message, hint string) {
	if len(d.warnings) < maxErrors {
		d.warnings = append(d.warnings, d.src.errorAt(line, column, path, message, hint))
	}
}

// note warns in one line, without the line of the file.
func (d *decoder) note(e entry, path, message string) {
	if len(d.warnings) < maxErrors {
		d.warnings = append(d.warnings, &Error{File: d.src.name, Line: e.line, Column: e.column, Path: path, Message: message})
	}
}

// affordable counts n, and reports whether the document is still of a size that
// a configuration can have. Aliases make small documents large.
func (d *decoder) affordable(n *node) bool {
	d.nodes++
	d.text += len(n.text)
	if d.nodes <= maxNodes && d.text <= maxText {
		return true
	}
	if d.nodes < 2*maxNodes { // say it once
		d.nodes = 2 * maxNodes
		d.fail(n, "", "the document is too large once its aliases and variables are filled in", "")
	}
	return false
}

// value fills v from n. path names the place; f describes it.
func (d *decoder) value(n *node, v reflect.Value, path string, f field) {
	if !d.affordable(n) {
		return
	}
	switch {
	case v.Type() == durationType:
		d.duration(n, v, path, f)
	case v.Type() == rawType:
		v.SetBytes(n.appendJSON(nil))
	case v.Type() == secretType:
		var text string
		d.str(n, reflect.ValueOf(&text).Elem(), path, f)
		v.Set(reflect.ValueOf(secret.New(text)))
	case isSection(v.Type()):
		d.structure(n, v, path)
	case v.Kind() == reflect.Map:
		d.mapping(n, v, path, f)
	case v.Kind() == reflect.Slice:
		d.list(n, v, path)
	case v.Kind() == reflect.String:
		d.str(n, v, path, f)
	case v.Kind() == reflect.Bool:
		d.boolean(n, v, path)
	case v.CanInt():
		d.number(n, v, path, f)
	default:
		panic("config: no way to read a " + v.Type().String())
	}
}

// wrong reports a value of the wrong kind.
func (d *decoder) wrong(n *node, path, want string) {
	hint := ""
	if n.kind == nullKind {
		hint = "Leave the key out for its default."
	}
	d.fail(n, path, fmt.Sprintf("%s must be %s, not %s", path, want, n.kind), hint)
}

func (d *decoder) structure(n *node, v reflect.Value, path string) {
	before, unfilled := len(d.errs), d.unfilled
	if defaults, ok := v.Addr().Interface().(interface{ SetDefaults() }); ok {
		defaults.SetDefaults()
	}
	switch n.kind {
	case mapKind:
	case nullKind: // a section whose keys are all commented out
	default:
		d.wrong(n, orFile(path), "a mapping")
		return
	}
	fields := fieldsOf(v.Type())
	seen := make(map[string]int)
	for _, e := range n.entries {
		at := join(path, e.name)
		if d.duplicate(e, seen, path) {
			continue
		}
		if f, ok := find(fields, e.name); ok {
			d.value(e.value, v.FieldByIndex(f.index), at, f)
			continue
		}
		if path == "" && strings.HasPrefix(e.name, "x-") {
			continue // a place for YAML anchors
		}
		d.unknown(e, path, fields)
	}
	if complete, ok := v.Addr().Interface().(interface{ Complete() }); ok {
		complete.Complete()
	}
	if valid, ok := v.Addr().Interface().(interface{ Validate() error }); ok && len(d.errs) == before && d.unfilled == unfilled {
		d.invalid(n, path, valid.Validate())
	}
}

// unknown reports a key that is not one of fields.
func (d *decoder) unknown(e entry, path string, fields []field) {
	message := fmt.Sprintf("unknown key %q in %s", e.name, orFile(path))
	if isSecret(likely(e.name, fields)) {
		d.src.misspelt = append(d.src.misspelt, e.name)
	}
	switch hint := meant(e.name, fields); {
	case !d.lenient:
		d.fail(&node{line: e.line, column: e.column}, join(path, e.name), message, suggest(e.name, fields))
	case hint != "":
		d.warn(e.line, e.column, join(path, e.name), message+"; it is ignored", hint)
	default:
		d.ignored.add(e, path)
	}
}

// invalid reports what a struct says about itself.
func (d *decoder) invalid(n *node, path string, err error) {
	if err == nil {
		return
	}
	at, message := n, orFile(path)+": "+err.Error()
	if wrong, ok := err.(*invalid.Error); ok && wrong.Key != "" {
		path = join(path, wrong.Key)
		if value := n.get(wrong.Key); value != nil {
			at = value
		}
		message = path + ": " + wrong.Reason
	}
	d.fail(at, path, message, d.hinted(n))
}

// hinted is what a warning about a key of n has already suggested: what is wrong
// with n may be that it was not understood.
func (d *decoder) hinted(n *node) string {
	for _, w := range d.warnings {
		for _, e := range n.entries {
			if w.Hint != "" && w.Line == e.line && w.Column == e.column {
				return fmt.Sprintf("%q is not a key here. %s", e.name, w.Hint)
			}
		}
	}
	return ""
}

// duplicate reports a key that stands there twice.
func (d *decoder) duplicate(e entry, seen map[string]int, path string) bool {
	first, ok := seen[e.name]
	if !ok {
		seen[e.name] = e.line
		return false
	}
	d.fail(&node{line: e.line, column: e.column}, join(path, e.name),
		fmt.Sprintf("%q stands twice in %s: here and in line %d", e.name, orFile(path), first), "")
	return true
}

func (d *decoder) mapping(n *node, v reflect.Value, path string, f field) {
	if n.kind == nullKind {
		if f.keys == "label" { // said, and all entries commented out: there are none
			v.Set(reflect.MakeMap(v.Type()))
		}
		return
	}
	if n.kind != mapKind {
		d.wrong(n, path, "a mapping")
		return
	}
	if f.keys == "label" {
		n = d.relabel(n)
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.entries))
	seen := make(map[string]int)
	tolerant := f.keys == "label" && d.lenient
	twice := several(n.entries)
	for _, e := range n.entries {
		at := join(path, e.name)
		if !tolerant && d.duplicate(e, seen, path) {
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		switch {
		case tolerant && !d.serverOrNot(e, item, path, twice[e.name]):
			continue
		case tolerant:
		case f.keys == "label":
			d.server(e, item, path)
		default:
			d.value(e.value, item, at, field{unit: "text"})
		}
		out.SetMapIndex(reflect.ValueOf(e.name), item)
	}
	v.Set(out)
}

func (d *decoder) list(n *node, v reflect.Value, path string) {
	if n.kind == nullKind { // said, and all items commented out: there are none
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return
	}
	if n.kind != listKind {
		hint := ""
		if n.kind <= stringKind {
			hint = "Write it as a list: [a, b]."
		}
		d.fail(n, path, fmt.Sprintf("%s must be a list, not %s", path, n.kind), hint)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		d.value(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i), field{unit: "text"})
	}
	v.Set(out)
}

// server fills v from an entry of mcpServers.
func (d *decoder) server(e entry, v reflect.Value, path string) {
	at := join(path, e.name)
	// A server that is switched off needs no variables.
	d.unsetOK = switchedOff(e.value)
	n := d.adapt(e.value, at)
	d.value(n, v, at, field{})
	d.unsetOK = false
	config := v.Interface().(servers.Config)
	if !config.Disabled {
		d.checkCode(n, at, config)
	}
	if !config.Disabled && len(d.errs) == 0 {
		for _, a := range Advise(config) {
			place := n.get(a.Key)
			d.warn(place.line, place.column, join(at, a.Key), join(at, a.Key)+": "+a.Message, a.Hint)
		}
	}
}

func isTrue(n *node) bool { return n != nil && n.kind == boolKind && n.text == "true" }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// orFile names a place for a person.
func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

func find(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// file fills a File from the root of a document.
func (d *decoder) file(root *node) (*File, error) {
	f := &File{Path: d.src.name}
	d.inputs.declared = func() []Input { return f.Inputs }
	root = d.inputsFirst(root)
	d.value(root, reflect.ValueOf(f).Elem(), "", field{})
	if len(d.errs) > 0 {
		slices.SortStableFunc(d.errs, func(a, b *Error) int { return a.Line - b.Line })
		return nil, d.errs
	}
	d.doubtLabels(root, f)
	if note := d.ignored.note(d.src); note != nil {
		d.warnings = append(d.warnings, note)
	}
	f.Warnings, f.LeftOut, f.refs, f.variables = d.warnings, d.leftOut, d.refs, d.variables
	return f, nil
}
