package toolkit

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// A kind is what JSON a Go type becomes.
type kind int

const (
	kindObject   kind = iota // a struct
	kindDict                 // a map
	kindList                 // a slice or an array
	kindText                 // string
	kindInteger              // int, uint8, …
	kindNumber               // float64, json.Number
	kindBoolean              // bool
	kindAnything             // any, json.RawMessage
	kindTime                 // time.Time
	kindCustom               // a type with a JSONSchema method
)

// A shape is the JSON form of one Go type. Recursive types have cyclic shapes.
type shape struct {
	kind   kind
	goType reflect.Type
	// name is the name in $defs of a type that contains itself; empty for all
	// others, which are written out where they stand.
	name   string
	fields []*field        // kindObject, in the order of the struct; kindDict: what the toolkit adds
	item   *place          // kindList, kindDict
	base64 bool            // kindText that holds bytes
	reads  bool            // kindText that a type's UnmarshalText reads
	low    string          // least integer of the Go type, if JSON has smaller ones
	high   string          // greatest
	exact  int             // length of an array
	custom json.RawMessage // kindCustom
}

// A place is where a shape stands, with what the tags there say about it.
type place struct {
	of       *shape
	rules    rules
	nullable bool
	denied   bool // null, which the Go type may be all the same
}

// A field is one member of an object.
type field struct {
	name     string // in JSON
	goName   string
	at       *place
	required bool
	role     role
}

func (s *shape) field(name string) *field {
	for _, f := range s.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// A survey finds the shapes of Go types and everything that is wrong with them.
type survey struct {
	input    bool // pointers are optional, not null
	shapes   map[reflect.Type]*shape
	names    map[string]reflect.Type // in $defs
	problems []error
}

// shapeOf surveys the type of a tool's arguments (input) or of its result.
func shapeOf(t reflect.Type, input bool) (*shape, error) {
	s := &survey{input: input, shapes: map[reflect.Type]*shape{}, names: map[string]reflect.Type{}}
	found := s.visit(t, typeName(t))
	return found, errors.Join(s.problems...)
}

func (s *survey) fail(path, format string, args ...any) {
	s.problems = append(s.problems, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	durationType  = reflect.TypeFor[time.Duration]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	numberType    = reflect.TypeFor[json.Number]()
	schemerType   = reflect.TypeFor[Schemer]()
	marshalType   = reflect.TypeFor[json.Marshaler]()
	unmarshalType = reflect.TypeFor[json.Unmarshaler]()
	textOutType   = reflect.TypeFor[encoding.TextMarshaler]()
	textInType    = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// visit returns the shape of t; path names the place in messages.
func (s *survey) visit(t reflect.Type, path string) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known := s.shapes[t]; known != nil {
		if known.name == "" && !known.complete() {
			known.name = s.nameFor(t)
		}
		return known
	}
	found := &shape{goType: t, exact: -1}
	if t.Name() != "" { // only types with a name can contain themselves
		s.shapes[t] = found
	}
	before := len(s.problems)
	defer func() {
		if len(s.problems) > before && found.kind == kindAnything {
			delete(s.shapes, t) // so that each place is reported
		}
	}()
	if s.special(found, t, path) {
		return found
	}
	switch t.Kind() {
	case reflect.Struct:
		found.kind, found.exact = kindObject, building
		s.members(found, t, path)
		found.exact = -1
	case reflect.Map:
		found.kind = kindDict
		if t.Key().Kind() != reflect.String {
			s.fail(path, "a map with keys of type %s; JSON has strings as keys only", t.Key())
		}
		found.exact = building
		found.item = s.element(t.Elem(), path+"[]")
		found.exact = -1
	case reflect.Slice, reflect.Array:
		found.kind, found.exact = kindList, building
		found.item = s.element(t.Elem(), path+"[]")
		found.exact = -1
		if t.Kind() == reflect.Array {
			found.exact = t.Len()
		}
	case reflect.String:
		found.kind = kindText
	case reflect.Bool:
		found.kind = kindBoolean
	case reflect.Float32, reflect.Float64:
		found.kind = kindNumber
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		found.kind = kindInteger
		found.low, found.high = bounds(t)
	case reflect.Interface:
		found.kind = kindAnything
		if t.NumMethod() > 0 {
			s.fail(path, "interface %s: its JSON is unknown; use a struct, or a type with a JSONSchema method", t)
		}
	default:
		s.fail(path, "type %s has no form in JSON", t)
		found.kind = kindAnything
	}
	return found
}

// building marks in exact a shape whose parts are being visited.
const building = -2

// complete reports whether s is not being visited. Finding a shape that is
// means that its type contains itself.
func (s *shape) complete() bool { return s.exact != building }

// special knows the types whose JSON does not follow from their kind.
func (s *survey) special(found *shape, t reflect.Type, path string) bool {
	pointer := reflect.PointerTo(t)
	switch {
	case t.Implements(schemerType), pointer.Implements(schemerType):
		found.kind = kindCustom
		s.own(found, t, path)
	case t == timeType:
		found.kind = kindTime
	case t == durationType:
		found.kind = kindAnything
		s.fail(path, "time.Duration is a number of nanoseconds in JSON, which no model expects; use a number of seconds")
	case t == numberType:
		found.kind = kindNumber
	case t == rawType:
		found.kind = kindAnything
	case optionalOf(t) != nil:
		found.kind = kindAnything
		s.fail(path, "Optional is for fields of structs; here absence means nothing")
	case t.Implements(marshalType), s.input && pointer.Implements(unmarshalType), !s.input && pointer.Implements(marshalType):
		found.kind = kindAnything
		s.fail(path, "%s makes its own JSON, so its schema is unknown; give it a method JSONSchema() json.RawMessage", t)
	case !s.input && pointer.Implements(textOutType) && !t.Implements(textOutType):
		found.kind = kindAnything
		s.fail(path, "%s has MarshalText on the pointer, so it is a text in some places and not in others; put the method on the value, or give it a method JSONSchema() json.RawMessage", t)
	case t.Implements(textOutType), s.input && pointer.Implements(textInType):
		found.kind, found.reads = kindText, pointer.Implements(textInType)
	case isBytes(t):
		found.kind, found.base64 = kindText, true
	default:
		return false
	}
	return true
}

// isBytes reports whether encoding/json writes a list as base64: it does where the items
// are bytes that say nothing of their own.
func isBytes(t reflect.Type) bool {
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Uint8 {
		return false
	}
	item := reflect.PointerTo(t.Elem())
	return !item.Implements(marshalType) && !item.Implements(textOutType)
}

// element is the place of the items of a list or map.
func (s *survey) element(t reflect.Type, path string) *place {
	return &place{of: s.visit(t, path), nullable: t.Kind() == reflect.Pointer && !s.input}
}

// members collects the fields of a struct, with those of embedded structs where
// they are embedded.
func (s *survey) members(into *shape, t reflect.Type, path string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		at := path + "." + f.Name
		switch {
		case tag == "-": // "-," is a field of that name
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && reflect.PointerTo(f.Type).Implements(schemerType):
			s.fail(at, "encoding/json writes the fields of what is embedded, which the JSONSchema method of %s does not describe here; make it a field with a name", f.Type)
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && f.Type != timeType:
			s.members(into, f.Type, path)
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Pointer:
			s.fail(at, "embed the struct itself, not a pointer to it")
			continue
		case !f.IsExported() && !(f.Anonymous && f.Type.Kind() == reflect.Struct): // which has a name here, and exported fields
			continue
		case hasOption(options, "string"):
			s.fail(at, `the option "string" of the json tag is not supported`)
		case strings.ContainsFunc(name, unnamable):
			s.fail(at, "encoding/json takes no name such as %q (letters, digits and ASCII punctuation without quotes and backslash), and would read and write %q", name, f.Name)
		}
		if name == "" {
			name = f.Name
		}
		s.member(into, f, name, options, at)
	}
}

func (s *survey) member(into *shape, f reflect.StructField, name, options, at string) {
	if other := into.field(name); other != nil {
		s.fail(at, "a second field named %q in JSON, besides %s", name, other.goName)
		return
	}
	omitted := hasOption(options, "omitempty") || hasOption(options, "omitzero")
	pointer := f.Type.Kind() == reflect.Pointer
	t := f.Type
	optional := optionalOf(t)
	if optional != nil {
		t = optional
	}
	m := &field{name: name, goName: f.Name, at: &place{of: s.visit(t, at)}}
	if err := m.at.rules.read(f.Tag, m.at.of); err != nil {
		s.fail(at, "%v", err)
	}
	m.role = readRole(f.Tag)
	if s.input {
		m.required = !omitted && !pointer && m.at.rules.fallback == nil
		m.at.nullable = f.Tag.Get("nullable") == "true"
	} else {
		m.required = !omitted
		m.at.nullable = pointer && !omitted
		m.at.rules.fallback = nil // a type may serve both ways
	}
	if optional != nil {
		m.required = !s.input && m.required
		m.at.nullable = f.Tag.Get("nullable") != "false"
		m.at.denied = !m.at.nullable
	}
	switch {
	case f.Tag.Get("optional") == "true":
		m.required = false
	case f.Tag.Get("required") == "true":
		m.required = true
	}
	into.fields = append(into.fields, m)
}

// unnamable reports whether a name with c in it means nothing to encoding/json, which then
// goes by the name of the field.
func unnamable(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c)
}

func hasOption(options, want string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == want {
			return true
		}
	}
	return false
}

// nameFor names a recursive type in $defs.
func (s *survey) nameFor(t reflect.Type) string {
	base := typeName(t)
	name := base
	for i := 2; ; i++ {
		if other, taken := s.names[name]; !taken || other == t {
			s.names[name] = t
			return name
		}
		name = fmt.Sprintf("%s%d", base, i)
	}
}

// typeName is the plain name of a type, without package and type arguments.
func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := t.Name()
	if name == "" {
		return t.Kind().String()
	}
	name, _, _ = strings.Cut(name, "[")
	return name
}

// bounds are the least and the greatest integer of a Go type, as far as they are
// narrower than what a JSON number exchanged between programs holds.
func bounds(t reflect.Type) (low, high string) {
	switch t.Kind() {
	case reflect.Int8:
		return "-128", "127"
	case reflect.Int16:
		return "-32768", "32767"
	case reflect.Int32:
		return "-2147483648", "2147483647"
	case reflect.Uint8:
		return "0", "255"
	case reflect.Uint16:
		return "0", "65535"
	case reflect.Uint32:
		return "0", "4294967295"
	case reflect.Uint, reflect.Uint64:
		return "0", ""
	}
	return "", ""
}
