package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Plan is one tool converted into one dialect. It is immutable and safe for
// concurrent use.
type Plan struct {
	tool      string // the tool's name before it was made legal
	name      string
	function  json.RawMessage
	responses json.RawMessage
	sent      *schema.Node // the parameters as sent
	meant     *schema.Node // what they mean in JSON Schema
	strict    bool
	wide      bool
	optionals int // of a strict tool, for the budgets of a request
	unions    int
	report    []Change
	admitted  *schema.Document
	judge     *schema.Validator // by the server's schema
	record    *record           // nil where arguments need no mapping
	loose     func() *Plan      // the same tool, not strict; nil where it is not
	budget    *schema.Budget    // of one decoding; nil otherwise
	size      int               // about, in bytes
}

// A Change is one thing that a conversion did to a schema.
type Change struct {
	// Pass names what was done, by a verb: "inlineRefs".
	Pass string `json:"pass"`
	// Pointer is the JSON pointer into the tool's input schema.
	Pointer string `json:"pointer"`
	// Lossless reports that the model is held to what the server accepts just
	// as before, or that arguments are mapped back exactly. Where it is false
	// the validation of arguments does what the schema did.
	Lossless bool `json:"lossless"`
	// Why says why it was done.
	Why string `json:"why"`
	// Narrows reports that the model cannot say everything that the server
	// accepts here.
	Narrows bool `json:"narrows,omitempty"`
}

// Name returns the tool's name in this dialect.
func (p *Plan) Name() string { return p.name }

// Function returns the tool as an element of tools in a Chat Completions
// request. The bytes are shared and must not be changed.
func (p *Plan) Function() json.RawMessage { return p.function }

// ResponsesFunction returns the tool as an element of tools in a Responses
// request, where strict is always explicit. The bytes are shared and must not
// be changed.
func (p *Plan) ResponsesFunction() json.RawMessage { return p.responses }

// Parameters returns the schema that is sent. The bytes are a copy.
func (p *Plan) Parameters() json.RawMessage { return p.sent.Bytes() }

// Meaning returns the schema that is sent as JSON Schema means it. It differs from
// Parameters where the engine matches patterns against the text of a JSON string
// as it is written: there a quotation mark is two characters. The bytes are a copy.
func (p *Plan) Meaning() json.RawMessage { return p.meant.Bytes() }

// Strict reports whether the tool is sent as strict.
func (p *Plan) Strict() bool { return p.strict }

// Wide reports whether the dialect could not take the schema in any form, so
// that an object without a schema is sent, and the schema as text in its
// description.
func (p *Plan) Wide() bool { return p.wide }

// Report returns what was changed, in order. It is shared and must not be
// changed.
func (p *Plan) Report() []Change { return p.report }

// Unchecked says what of the server's schema cannot be checked, such as a
// pattern that RE2 does not know.
func (p *Plan) Unchecked() []string { return p.judge.Unchecked() }

// maxToolName is the length of a tool's name that MCP recommends not to exceed
// (specification 2025-11-25, "Tool Names"); what is longer is a mistake or an
// attack.
const maxToolName = 128

func (d *Dialect) convert(tool dragoman.Tool) (*Plan, *dragoman.Problem) {
	b, problem := admit(tool)
	if problem != nil {
		return nil, problem
	}
	b.dialect = d
	return b.plan()
}

// admit reads what all dialects need of a tool.
func admit(tool dragoman.Tool) (b building, problem *dragoman.Problem) {
	switch {
	case tool.Name == "":
		return b, invalidTool("The tool has no name.")
	case len(tool.Name) > maxToolName:
		return b, invalidTool(fmt.Sprintf("The tool's name has %d characters; at most %d are allowed.", len(tool.Name), maxToolName))
	}
	doc, refusal := schema.Admit(tool.Input())
	if refusal != nil {
		return b, invalidTool(fmt.Sprintf("The input schema, at %q, %s.", refusal.Pointer, refusal.Reason))
	}
	var output *schema.Node
	if len(tool.OutputSchema) > 0 && len(tool.OutputSchema) <= schema.MaxBytes {
		output, _ = schema.Parse(tool.OutputSchema) // a broken one only means that nothing is told of it
	}
	return building{tool: tool, doc: doc, output: output, judge: doc.Validator()}, nil
}

func invalidTool(message string) *dragoman.Problem {
	return &dragoman.Problem{Code: dragoman.CodeInvalidTool, Message: message}
}

// A building is one tool on its way to a plan.
type building struct {
	dialect *Dialect
	tool    dragoman.Tool
	doc     *schema.Document
	output  *schema.Node
	judge   *schema.Validator
}

// plan tries the forms of the dialect from the strictest to the widest.
func (b *building) plan() (*Plan, *dragoman.Problem) {
	spec, options := &b.dialect.spec, b.dialect.options
	var refused []Change
	if spec.Strict != nil && !options.Loose {
		p, why, problem := b.attempt(spec.Strict, true)
		if problem != nil {
			return nil, problem
		}
		if p != nil {
			p.loose = sync.OnceValue(func() *Plan {
				loose, _ := b.settle(nil) // what was admitted for the strict form is admitted for this
				return loose
			})
			return p, nil
		}
		refused = []Change{{Pass: "keepLoose", Lossless: true, Why: "not strict: " + why}}
	}
	return b.settle(refused)
}

// settle makes a plan that is not strict.
func (b *building) settle(report []Change) (*Plan, *dragoman.Problem) {
	p, why, problem := b.attempt(&b.dialect.spec.Rules, false)
	if problem != nil {
		return nil, problem
	}
	if p == nil {
		p = b.widest(why)
	}
	p.report = append(report, p.report...)
	return p, nil
}

// attempt converts by some rules. Without a plan it says why there is none. A
// schema that gets too large when its recursion is written out twice is tried
// with less of that.
func (b *building) attempt(rules *Rules, strict bool) (p *Plan, why string, problem *dragoman.Problem) {
	for unroll := 2; unroll >= 0; unroll-- {
		p, why, problem = b.attemptOnce(rules, strict, unroll)
		if p != nil || problem != nil || !rules.bad(Recursion) && !rules.bad(RefDefs) || !b.doc.Recursive() {
			break
		}
	}
	return p, why, problem
}

func (b *building) attemptOnce(rules *Rules, strict bool, unroll int) (*Plan, string, *dragoman.Problem) {
	c := &conversion{
		rules: b.dialect.adjusted(rules), tool: b.tool.Name, doc: b.doc, lossy: b.dialect.options.ForceStrict, unroll: unroll,
		output: b.output, dropFormat: b.dialect.options.NoFormatChoice,
	}
	if rules.PropertyName != "" {
		c.propertyName = namePattern(rules.PropertyName)
	}
	c.begin()
	if reason := c.settleRoot(); reason != "" {
		return nil, "", invalidTool(fmt.Sprintf("The input schema, at \"\", %s.", reason))
	}
	for _, pass := range c.passes() {
		pass()
		if c.failed != "" {
			return nil, c.failed, nil
		}
	}
	if size := len(c.root.Bytes()); size > maxSentBytes {
		return nil, fmt.Sprintf("it has %d bytes once its references are expanded", size), nil
	}
	if b.dialect.spec.Wire.DefinitionsShared {
		c.prefixDefinitions()
	}
	k := check(c.root, c.rules)
	if len(k.faults) > 0 {
		return nil, k.faults[0], nil
	}
	p := &Plan{
		strict: strict, sent: c.root, meant: c.meaning(), report: c.report, judge: b.judge, admitted: b.doc,
		optionals: k.optionals, unions: k.unions,
	}
	r := &record{root: c.root, marks: c.marks, judge: b.judge}
	if r.finish() {
		r.sent = schema.NewOpenAPIValidator(p.meant.Bytes())
		p.record = r
	}
	b.render(p, c.toolDescription(b.tool.Description, b.output), rules)
	return p, "", nil
}

var namePatterns sync.Map // of the tables, by text: a handful

// namePattern compiles a pattern of a table; [Spec.Validate] has seen it.
func namePattern(text string) *regexp.Regexp {
	if re, ok := namePatterns.Load(text); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(text)
	namePatterns.Store(text, re)
	return re
}

// passes are the passes in the order in which each finds what it needs. The
// ones that change the form of arguments come after those that only say the
// same in another way.
func (c *conversion) passes() []func() {
	return []func(){
		c.inlineRefs, c.mergeRoot, c.mergeAllOf, c.dropFormatChoice, c.dropImpossible, c.replaceOneOf, c.replaceConst, c.pushIntoBranches,
		c.inferTypes, c.splitTypeLists, c.itemsFromUnevaluated, c.writeTuples, c.nullableUnions, c.spliceUnions, c.writeEnumsAsText, c.leaveLiterals,
		c.hideReferences, c.collapseItemUnions, c.dropIdle, c.spillConditions, c.spellOutAny, c.spliceUnions, c.addMissing, c.declareRequired, c.defineRequired, c.writeMaps, c.keepMembers, c.openObjects, c.openExplicitly,
		c.renameProperties, c.limitDepth, c.acceptNulls, c.makeStrict, c.describeRequired, c.rewriteConstraints, c.spillConstraints, c.relaxConditions, c.dropIdle,
		c.openIdle, c.spellOutAny, c.relaxOneOf, c.stripAnnotations, c.spliceUnions, c.preferKnown, c.describe,
	}
}

// maxSchemaText is how much of a schema goes into a description.
const maxSchemaText = 4000

// widest makes the plan of last resort: an object, and the schema as text.
func (b *building) widest(why string) *Plan {
	root := schema.NewObject(
		schema.Member{Name: "type", Value: schema.NewString("object")},
		schema.Member{Name: "properties", Value: schema.NewObject()})
	if rules := &b.dialect.spec.Rules; rules.ClosedBySilence && !rules.bad(Open) {
		root.Set("additionalProperties", schema.NewBool(true))
	}
	p := &Plan{sent: root, meant: root, wide: true, judge: b.judge, admitted: b.doc, report: []Change{{
		Pass: "sendWidest", Why: "the dialect takes no other form: " + why,
	}}}
	text := sentence(b.tool.Description, "The arguments are an object of this JSON Schema: "+cut(string(b.doc.Root.Bytes()), maxSchemaText))
	b.render(p, text, &b.dialect.spec.Rules)
	return p
}

// render writes the plan's bytes.
func (b *building) render(p *Plan, description string, rules *Rules) {
	wire := &b.dialect.spec.Wire
	p.tool = b.tool.Name
	p.name = wire.legalToolName(b.tool.Name)
	if p.name != p.tool {
		p.report = append(p.report, Change{Pass: "renameTool", Lossless: true, Why: "the name is not taken"})
	}
	if description == "" && wire.DescriptionNeeded {
		description = p.name
	}
	body := rawjson.Object{}
	body.Set("name", rawjson.Quote(p.name))
	if description != "" {
		body.Set("description", rawjson.Quote(description))
	}
	if !rules.OmitEmpty || len(p.sent.Get("properties").Members()) > 0 || p.wide {
		body.Set("parameters", p.sent.Bytes())
	}
	strict := json.RawMessage("false")
	if p.strict {
		strict = json.RawMessage("true")
	}
	flat := rawjson.Object{Members: append([]rawjson.Member{{Name: "type", Value: rawjson.Quote("function")}}, body.Members...)}
	if !wire.NoStrictField {
		body.Set("strict", strict)
	}
	flat.Set("strict", strict)
	p.responses = flat.Bytes()
	p.function = (&rawjson.Object{Members: []rawjson.Member{
		{Name: "type", Value: rawjson.Quote("function")},
		{Name: "function", Value: body.Bytes()},
	}}).Bytes()
	p.size = p.measure()
}

var (
	legalTool   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]*$`)
	illegalTool = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)
)

// What marks a name that had to be cut, and the shortest such name: the mark behind a _.
const (
	nameHashBytes = 4
	shortestName  = len("_") + 2*nameHashBytes
)

// legalToolName is the name itself where the dialect takes it, else one made of
// it that is the same every time. One that had to be cut ends with a hash of
// the whole.
func (w *Wire) legalToolName(name string) string {
	limit := w.MaxNameLength
	if limit == 0 {
		limit = 64
	}
	if len(name) <= limit && legalTool.MatchString(name) {
		return name
	}
	legal := illegalTool.ReplaceAllString(name, "_")
	if legal[0] == '-' || legal[0] >= '0' && legal[0] <= '9' {
		legal = "t_" + legal
	}
	if len(legal) > limit || legal == "_" {
		sum := sha256.Sum256([]byte(name))
		hash := hex.EncodeToString(sum[:nameHashBytes])
		legal = legal[:min(len(legal), limit-shortestName)] + "_" + hash
	}
	return legal
}

// Size returns about how many bytes of memory a plan takes.
func (p *Plan) Size() int { return p.size }

// measure is the size of a plan: of its trees, of what is known of the places in them, and
// of its texts.
func (p *Plan) measure() int {
	const itself, place, change = 2 << 10, 80, 96
	size := itself + p.admitted.Size() + len(p.function) + len(p.responses)
	trees := []*schema.Node{p.admitted.Root, p.sent, p.meant}
	if p.record != nil {
		trees = append(trees, p.record.root)
		size += place*(len(p.record.paths)+len(p.record.marks)+len(p.record.mapped)) + len(p.function)
	}
	for i, tree := range trees[1:] {
		if !slices.Contains(trees[:i+1], tree) {
			size += tree.Size()
		}
	}
	for _, c := range p.report {
		size += change + len(c.Pointer) + len(c.Why)
	}
	return size
}
