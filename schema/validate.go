package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	// Keyword is the keyword that is not met, such as "type".
	Keyword string
	// Types are the types that would do, where Keyword is "type".
	Types []string
	// Texts are the strings that would do, where Keyword is "enum" or "const".
	Texts []string
	// Union is the place of the outermost union that is not met, by the value
	// and by the schema; empty where there is none. UnionPath is the value's
	// part of it, and Alternative the index of the alternative that the
	// violation is of. Of the alternatives of one union, one has to be met.
	Union       string
	UnionPath   string
	Alternative int
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

// A Validator judges values by one schema. It is safe for concurrent use.
type Validator struct {
	document func() (*Document, *Refusal)
	nullable bool // nullable: true means what OpenAPI 3.0 says

	once     sync.Once
	tree     *Node
	compiler *jsonschema.Compiler
	steps    int  // left in the running validation
	bounded  bool // steps are counted, so one validation runs at a time

	mu        sync.Mutex
	compiled  map[string]*jsonschema.Schema // by JSON pointer; nil: cannot be
	unchecked []string
	unknown   []string // formats in unchecked
}

// NewValidator returns a validator for a schema that [Admit] takes. Nothing is
// read or compiled before the first use, and nothing is ever fetched. A schema
// that cannot be used accepts every value; Unchecked says so.
func NewValidator(raw json.RawMessage) *Validator {
	return &Validator{document: func() (*Document, *Refusal) { return Admit(raw) }}
}

// Validator returns a validator of d. Root must not change any more.
func (d *Document) Validator() *Validator {
	return &Validator{document: func() (*Document, *Refusal) { return d, nil }}
}

// NewOpenAPIValidator is NewValidator for the dialect of JSON Schema in OpenAPI
// 3.0, where nullable: true beside a type, or beside anyOf, allows null.
func NewOpenAPIValidator(raw json.RawMessage) *Validator {
	v := NewValidator(raw)
	v.nullable = true
	return v
}

// Unchecked says in words which part of the schema cannot be checked, such as
// a pattern that RE2 does not know; empty when all of it is.
func (v *Validator) Unchecked() []string {
	v.at("")
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.unchecked)
}

// Compiles reports whether values are judged at all. A schema that cannot be
// compiled as a whole judges nothing, so every value fits it; [Validator.Unchecked]
// says why.
func (v *Validator) Compiles() bool { return v.at("") != nil }

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
func (v *Validator) ValidateNode(value *Node) []Violation { return v.ValidateAt("", value) }

// A value may be judged by maxSteps schemas, and stepsForEach more for each
// part of it. Real calls need some hundreds; a recursive schema can ask for any
// number. What is stepDepth deep costs twice as much, since each failure is told
// with its path, and so on.
const (
	maxSteps     = 100_000
	stepsForEach = 20
	stepDepth    = 16
)

// CostKeyword is the Keyword of the violation that says that judging a value
// takes too long.
const CostKeyword = "$cost"

var errSteps = errors.New("too many steps")

// ValidateAt judges a value by the schema at a JSON pointer of the document's
// Root. Where there is no schema every value fits.
func (v *Validator) ValidateAt(pointer string, value *Node) []Violation {
	found, _ := v.ValidateCounted(pointer, value)
	return found
}

// ValidateCounted is ValidateAt for whoever pays for many of them: it also returns
// what it cost, in schemas that judge a flat value. Where no value can be dear
// that is 0.
func (v *Validator) ValidateCounted(pointer string, value *Node) (found []Violation, cost int) {
	s := v.at(pointer)
	if s == nil {
		return nil, 0
	}
	if v.bounded {
		v.mu.Lock()
		defer v.mu.Unlock()
		size, depth := value.extent()
		each := 1 + depth/stepDepth
		limit := maxSteps/each + stepsForEach*size
		v.steps = limit
		defer func() {
			cost = (limit - max(v.steps, 0)) * each
			if r := recover(); r != nil {
				if r != errSteps {
					panic(r)
				}
				found = []Violation{{Keyword: CostKeyword, Expected: "a smaller value: this one takes too long to judge"}}
			}
		}()
	}
	err := s.Validate(value.plain())
	if err == nil {
		return nil, 0
	}
	failure, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []Violation{{Expected: "a value that fits the schema: " + err.Error()}}, 0
	}
	v.collect(failure, Violation{}, &found)
	slices.SortStableFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Expected, b.Expected))
	})
	return slices.CompactFunc(found, func(a, b Violation) bool { return a.Path == b.Path && a.Expected == b.Expected }), 0
}

// at returns the compiled schema at a pointer; nil when it cannot be compiled.
func (v *Validator) at(pointer string) *jsonschema.Schema {
	v.once.Do(v.prepare)
	v.mu.Lock()
	defer v.mu.Unlock()
	s, known := v.compiled[pointer]
	if known || v.compiler == nil {
		return s
	}
	if v.tree.At(fragment(pointer)[1:]) != nil {
		var err error
		if s, err = v.compiler.Compile(location + fragment(pointer)); err != nil {
			s = nil
			if pointer == "" {
				v.unchecked = append(v.unchecked, fmt.Sprintf("the schema cannot be compiled: %v", err))
			}
		}
	}
	v.compiled[pointer] = s
	return s
}

// refuse is a loader that loads nothing.
type refuse struct{}

func (refuse) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside the schema, and nothing is fetched", url)
}

const location = "https://schema.invalid/"

// prepare reads the schema and makes the compiler ready.
func (v *Validator) prepare() {
	v.compiled = map[string]*jsonschema.Schema{}
	d, refusal := v.document()
	if refusal != nil {
		v.unchecked = []string{"the schema " + refusal.Error()}
		return
	}
	v.tree = d.Root
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuse{})
	budget := maxPatternCost
	known := map[string]jsonschema.Regexp{}
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		if re := known[pattern]; re != nil {
			return re, nil
		}
		re, err := compilePattern(pattern, &budget)
		if err != nil {
			v.unchecked = append(v.unchecked, fmt.Sprintf("the pattern %q is not checked: %v", clip(pattern), err))
			known[pattern] = anything(pattern)
		} else {
			known[pattern] = re
		}
		return known[pattern], nil
	})
	v.bounded = d.costly()
	v.registerFormats(c)
	if err := c.AddResource(location, v.judged(d.Root)); err != nil {
		v.unchecked = []string{fmt.Sprintf("the schema cannot be compiled: %v", err)}
		return
	}
	v.compiler = c
}

// costly reports whether judging a small value can take many steps: where a schema is
// recursive, large, or large once its references are followed, as each doubling of a
// definition by the next one makes it.
func (d *Document) costly() bool {
	const many = 200
	if d.Recursive() || len(d.path) > many {
		return true
	}
	weights := map[*Node]int{}
	var weigh func(*Node) int
	weigh = func(n *Node) int {
		if w, ok := weights[n]; ok {
			return w
		}
		w := 1
		if target := d.Target(n); target != nil {
			w += weigh(target)
		}
		for sub := range n.Subschemas() {
			if sub.Keyword != "$defs" && sub.Keyword != "definitions" { // they judge where they are referred to
				w += weigh(sub.Node)
			}
		}
		weights[n] = min(w, many+1)
		return weights[n]
	}
	return weigh(d.Root) > many
}

// judged is the schema as the validator gets it: with the formats that it
// judges, and the step counter among them where steps are counted.
func (v *Validator) judged(n *Node) any {
	if n.Kind() != Object {
		return n.plain()
	}
	m := make(map[string]any, len(n.members)+1)
	for _, member := range n.members {
		m[member.Name] = member.Value.plain()
	}
	for sub := range n.Subschemas() {
		inner := v.judged(sub.Node)
		switch holder := m[sub.Keyword].(type) {
		case map[string]any:
			if schemaMaps[sub.Keyword] {
				holder[sub.Name] = inner
			} else {
				m[sub.Keyword] = inner
			}
		case []any:
			i, _ := strconv.Atoi(sub.Name)
			holder[i] = inner
		default:
			m[sub.Keyword] = inner
		}
	}
	delete(m, "format")
	if format := v.judgedFormat(n); format != "" {
		m["format"] = format
	}
	if v.nullable && n.Get("nullable").IsBool(true) {
		allowNull(m)
	}
	return m
}

// allowNull makes a schema accept null without moving what is inside it.
func allowNull(m map[string]any) {
	if t, ok := m["type"].(string); ok {
		m["type"] = []any{t, "null"}
	}
	if enum, ok := m["enum"].([]any); ok {
		m["enum"] = append(enum, nil)
	}
	if anyOf, ok := m["anyOf"].([]any); ok {
		m["anyOf"] = append(anyOf, map[string]any{"type": "null"})
	}
}

// anything stands for a pattern that cannot be compiled: it matches all.
type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

// extent is the number of values in n, itself included, and how many of them are
// inside one another.
func (n *Node) extent() (size, depth int) {
	size = 1
	add := func(inner *Node) {
		s, d := inner.extent()
		size, depth = size+s, max(depth, d)
	}
	for _, m := range n.members {
		add(m.Value)
	}
	for _, item := range n.items {
		add(item)
	}
	return size, depth + 1
}

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

// collect writes the leaves of a failure into found, each with the union that in
// is in.
func (v *Validator) collect(e *jsonschema.ValidationError, in Violation, found *[]Violation) {
	path := Pointer(e.InstanceLocation...)
	keyword := ""
	if k := e.ErrorKind.KeywordPath(); len(k) > 0 {
		keyword = k[0]
	}
	add := func(violation Violation) {
		violation.Keyword, violation.Union, violation.UnionPath, violation.Alternative = keyword, in.Union, in.UnionPath, in.Alternative
		*found = append(*found, violation)
	}
	missing := func(name, expected string) {
		add(Violation{Path: path + Pointer(name), Expected: expected, Missing: true})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			missing(name, v.property(e.SchemaURL, name))
		}
		return
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			missing(name, "a value, because "+k.Prop+" is present")
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(Violation{Path: path + Pointer(name), Expected: "no member of this name"})
		}
		return
	}
	if len(e.Causes) > 0 {
		_, any := e.ErrorKind.(*kind.AnyOf)
		_, one := e.ErrorKind.(*kind.OneOf)
		for i, cause := range e.Causes {
			inner := in
			if (any || one) && in.Union == "" {
				inner = Violation{Union: path + " " + e.SchemaURL, UnionPath: path, Alternative: i}
			}
			v.collect(cause, inner, found)
		}
		return
	}
	violation := Violation{Path: path, Expected: expected(e.ErrorKind)}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		violation.Types = k.Want
	case *kind.Enum:
		violation.Texts = texts(k.Want...)
	case *kind.Const:
		violation.Texts = texts(k.Want)
	}
	add(violation)
}

func texts(values ...any) []string {
	var found []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

// property says in words what the member of that name is to be, by the object
// schema at url.
func (v *Validator) property(url, name string) string {
	_, pointer, _ := strings.Cut(url, "#")
	return v.tree.At(pointer).Get("properties").Get(name).Words()
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
		return formatWords(formatName(k.Want))
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
