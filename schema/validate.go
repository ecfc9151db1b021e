package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
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
	*rulebook
	budget *Budget // nil: each judging has its own
}

// A rulebook is a schema that is read where that is needed.
type rulebook struct {
	document func() (*Document, *Refusal)
	nullable bool // nullable: true means what OpenAPI 3.0 says

	once    sync.Once
	tree    *Node
	refused []string // why there is no tree

	mu      sync.Mutex
	reading *reading
	rules   map[string]*rule // by JSON pointer; nil: there is no schema
}

// NewValidator returns a validator for a schema that [Admit] takes. Nothing is
// read before the first use, and nothing is ever fetched. A schema that cannot be
// used accepts every value; Unchecked says so.
func NewValidator(raw json.RawMessage) *Validator {
	return &Validator{rulebook: &rulebook{document: func() (*Document, *Refusal) { return Admit(raw) }}}
}

// Validator returns a validator of d. Root must not change any more.
func (d *Document) Validator() *Validator {
	return &Validator{rulebook: &rulebook{document: func() (*Document, *Refusal) { return d, nil }}}
}

// Within returns a validator by the same schema that pays for every judging out of b,
// which others may share. Once b is spent, each value has one violation, with
// [CostKeyword]. Like b, it is for one goroutine.
func (v *Validator) Within(b *Budget) *Validator { return &Validator{rulebook: v.rulebook, budget: b} }

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
	if v.at("") == nil {
		return slices.Clone(v.refused)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.reading.unchecked)
}

// Compiles reports whether values are judged at all. A schema that is not admitted
// judges nothing, so every value fits it; [Validator.Unchecked] says why.
func (v *Validator) Compiles() bool { return v.at("") != nil }

// Validate returns how value does not fit, in the order of paths; empty when it
// fits. A value that is not JSON is one violation of the whole.
func (v *Validator) Validate(value json.RawMessage) []Violation {
	n, err := Parse(value)
	if err != nil {
		if e, ok := err.(*SyntaxError); ok && e.Crowded {
			return []Violation{tooDear}
		}
		return []Violation{{Expected: "valid JSON: " + err.Error()}}
	}
	return v.ValidateNode(n)
}

// ValidateNode is Validate for a value that was parsed already.
func (v *Validator) ValidateNode(value *Node) []Violation { return v.ValidateAt("", value) }

// CostKeyword is the Keyword of the violation that says that judging a value
// takes too long.
const CostKeyword = "$cost"

var tooDear = Violation{Keyword: CostKeyword, Expected: "a smaller value: this one takes too long to judge"}

// ValidateAt judges a value by the schema at a JSON pointer of the document's
// Root. Where there is no schema every value fits.
func (v *Validator) ValidateAt(pointer string, value *Node) []Violation {
	found, _ := v.validateCounted(pointer, value)
	return found
}

// validateCounted is ValidateAt for whoever wants to know what it cost, in the steps of
// a [Budget].
func (v *Validator) validateCounted(pointer string, value *Node) (found []Violation, cost int) {
	r := v.at(pointer)
	if r == nil {
		return nil, 0
	}
	b := v.budget
	if b == nil {
		b = NewBudget(value, 1)
	}
	had := max(b.left, 0)
	found = v.judge(r, value, b)
	return found, had - max(b.left, 0)
}

func (v *rulebook) judge(r *rule, value *Node, b *Budget) (found []Violation) {
	defer func() {
		if cause := recover(); cause != nil {
			if cause != errSteps {
				panic(cause)
			}
			b.left = min(b.left, -1)
			found = []Violation{tooDear}
		}
	}()
	j := judging{budget: b, unevaluated: v.reading.unevaluated, members: lookup{}}
	if o := j.judge(r, value); o.wrong != nil {
		return tell(o.wrong, b)
	}
	return nil
}

// at returns the rule at a pointer; nil where there is none.
func (v *rulebook) at(pointer string) *rule {
	v.once.Do(v.prepare)
	if v.reading == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	r, known := v.rules[pointer]
	if !known {
		if n := v.tree.At(fragment(pointer)[1:]); n.Kind() == Object || n.Kind() == Bool {
			r = v.reading.rule(n)
		}
		v.rules[pointer] = r
	}
	return r
}

const location = "https://schema.invalid/"

// prepare reads the schema.
func (v *rulebook) prepare() {
	d, refusal := v.document()
	if refusal != nil {
		v.refused = []string{"the schema " + refusal.Error()}
		return
	}
	v.tree, v.reading, v.rules = d.Root, newReading(d, v.nullable), map[string]*rule{}
}
