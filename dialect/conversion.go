package dialect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A conversion is one tool's input schema on its way into a dialect. The passes
// work on root, one after the other; what they do to the form of arguments they
// write down as mappings in the marks of the nodes they do it to.
type conversion struct {
	rules  *Rules
	tool   string
	doc    *schema.Document
	root   *schema.Node
	marks  map[*schema.Node]*mark
	report []Change
	told   map[Change]bool // what is in report
	notes  []string        // sentences for the tool's description
	unroll int             // how often a recursive schema is written out inside itself
	nodes  int             // nodes that references were expanded to
	failed string          // why this form is not possible; empty while it is
	lossy  bool            // strict is forced, so that null may mean absent
	output *schema.Node    // what the tool says of its results; nil where it says nothing

	joined  map[string]string // patterns that say what a format and a pattern say, by both
	compare int               // what may still be spent on comparing patterns

	dropFormat bool // the choice of a form is left out where it decides nothing

	propertyName *regexp.Regexp    // nil for any
	sentAs       map[string]string // names of properties that are not taken, as they are sent
	namePatterns []knownPattern    // of all patternProperties
	looks        int               // of names at those
	properties   map[string]bool   // names that are in use, once one is not taken
}

// A mark is what a conversion knows about one schema of the tree in work.
type mark struct {
	origin *schema.Node // the admitted schema it came from
	at     string       // JSON pointer to that in the schema as it came
	judge  bool         // the admitted schema at path judges the values of this one
	path   string
	ops    []mapping // how values were changed, in the order of the passes
	said   []string  // constraints that left, for the description
	def    *schema.Node
	closed bool // objects are closed by silence here
	wider  bool // something that judged was left out here
	one    bool // to the server exactly one alternative fits
	// pattern is the server's pattern, where another one is sent; meant what that
	// one says of texts, where the engine reads it as what JSON writes for them.
	pattern, meant string
	raw            bool // the pattern that is sent is one of an engine that reads it so
}

// maxExpanded is the number of schemas that a conversion makes before it gives
// up. maxSent is the number of schemas, and maxSentBytes the length, that a
// converted tool may have: as much as is admitted, so that what is sent can be
// checked like what came.
const (
	maxExpanded  = 10_000
	maxSent      = schema.MaxSubschemas
	maxSentBytes = schema.MaxBytes
)

// begin makes a working copy of the admitted schema.
func (c *conversion) begin() {
	c.marks, c.told, c.joined, c.compare = map[*schema.Node]*mark{}, map[Change]bool{}, map[string]string{}, maxCompare
	c.root = c.copyOf(c.doc.Root)
	for _, n := range c.doc.Notes {
		c.add(Change{Pass: n.Pass, Pointer: n.Pointer, Lossless: n.Lossless, Why: n.Why})
	}
}

// copyOf copies an admitted schema with everything inside it, and marks it.
func (c *conversion) copyOf(n *schema.Node) *schema.Node {
	if c.failed != "" {
		return schema.NewObject()
	}
	clone := n.Clone()
	c.markCopy(n, clone)
	return clone
}

func (c *conversion) markCopy(from, to *schema.Node) {
	c.count()
	c.marks[to] = &mark{origin: from, at: c.doc.Origin(from), path: c.doc.Path(from), judge: true}
	if to.Delete("nullable") { // of OpenAPI: by JSON Schema, which judges arguments, a null is refused
		c.say("stripAnnotations", to, "nullable is no keyword of JSON Schema, and restricts nothing")
	}
	twins := make([]*schema.Node, 0, 8)
	for sub := range to.Subschemas() {
		twins = append(twins, sub.Node)
	}
	i := 0
	for sub := range from.Subschemas() {
		c.markCopy(sub.Node, twins[i])
		i++
	}
}

// count bounds the work: a conversion that makes too many schemas has failed.
func (c *conversion) count() {
	if c.nodes++; c.nodes > maxExpanded && c.failed == "" {
		c.failed = "it is too large once its references are expanded"
	}
}

// clone copies a schema of the tree in work with its marks. Once the conversion
// has failed it is not worth the work.
func (c *conversion) clone(n *schema.Node) *schema.Node {
	if c.failed != "" {
		return schema.NewObject()
	}
	clone := n.Clone()
	c.cloneMarks(n, clone)
	return clone
}

func (c *conversion) cloneMarks(from, to *schema.Node) {
	if m := c.marks[from]; m != nil {
		twin := *m
		twin.ops, twin.said = slices.Clone(m.ops), slices.Clone(m.said)
		c.marks[to] = &twin
	}
	c.count()
	twins := make([]schema.Subschema, 0, 8)
	for sub := range to.Subschemas() {
		twins = append(twins, sub)
	}
	i := 0
	for sub := range from.Subschemas() {
		// What was merged since may have another shape, and no twin here.
		if i >= len(twins) || twins[i].Keyword != sub.Keyword || twins[i].Name != sub.Name {
			return
		}
		c.cloneMarks(sub.Node, twins[i].Node)
		i++
	}
}

// mark returns the mark of a schema; one that a pass made gets a mark of its
// own, which no admitted schema judges.
func (c *conversion) mark(n *schema.Node) *mark {
	m := c.marks[n]
	if m == nil {
		m = &mark{}
		c.marks[n] = m
	}
	return m
}

// made marks a new schema that stands where an old one stood, or inside it.
func (c *conversion) made(n, from *schema.Node) *schema.Node {
	if m := c.marks[from]; m != nil {
		c.marks[n] = &mark{at: m.at, origin: m.origin}
	}
	return n
}

// say notes a change that keeps everything.
func (c *conversion) say(pass string, n *schema.Node, why string) {
	c.add(Change{Pass: pass, Pointer: c.mark(n).at, Lossless: true, Why: why})
}

// widen notes a change after which the model may answer what the server
// refuses; the validation of arguments tells it then.
func (c *conversion) widen(pass string, n *schema.Node, why string) {
	m := c.mark(n)
	m.wider = true
	c.add(Change{Pass: pass, Pointer: m.at, Why: why})
}

// narrow notes a change after which the model cannot say everything that the
// server accepts.
func (c *conversion) narrow(pass string, n *schema.Node, why string) {
	c.add(Change{Pass: pass, Pointer: c.mark(n).at, Narrows: true, Why: why})
}

// add notes a change, once for each place.
func (c *conversion) add(change Change) {
	if !c.told[change] {
		c.told[change] = true
		c.report = append(c.report, change)
	}
}

// each visits all schemas of the tree, inner ones first. A visit may change the
// schema it gets in any way. Once the conversion has failed none is visited any more.
func (c *conversion) each(visit func(*schema.Node)) { c.eachIn(c.root, visit) }

func (c *conversion) eachIn(n *schema.Node, visit func(*schema.Node)) {
	if c.failed != "" {
		return
	}
	for sub := range n.Subschemas() {
		c.eachIn(sub.Node, visit)
	}
	visit(n)
}

// target returns the schema of the tree in work that a $ref leads to.
func (c *conversion) target(n *schema.Node) *schema.Node {
	return resolveRef(c.root, n)
}

func resolveRef(root, n *schema.Node) *schema.Node {
	ref := n.Get("$ref")
	if ref.Kind() != schema.String {
		return nil
	}
	pointer, ok := strings.CutPrefix(ref.Text(), "#")
	if !ok {
		return nil
	}
	return root.At(pointer)
}

// spill keeps words for a schema's own description.
func (c *conversion) spill(n *schema.Node, words string) {
	m := c.mark(n)
	if slices.Contains(m.said, words) {
		return
	}
	m.said = append(m.said, words)
}

// snippet is a schema or a value as a short text.
func snippet(n *schema.Node, limit int) string {
	return cut(string(n.Bytes()), limit)
}

// cut shortens a text to some number of bytes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// words are the keywords that only tell people and models something.
var words = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "$comment": true, "deprecated": true,
	"readOnly": true, "writeOnly": true,
}

// judges reports whether a keyword restricts values, as far as we know it.
func judges(keyword string) bool { return judging[keyword] }

var judging = func() map[string]bool {
	m := map[string]bool{}
	for _, k := range strings.Fields(`type enum const $ref anyOf oneOf allOf not if then else properties required
		additionalProperties patternProperties propertyNames minProperties maxProperties dependentRequired
		dependentSchemas unevaluatedProperties items prefixItems minItems maxItems uniqueItems contains minContains
		maxContains unevaluatedItems minLength maxLength pattern format minimum maximum exclusiveMinimum
		exclusiveMaximum multipleOf`) {
		m[k] = true
	}
	return m
}()

// unrestricted reports whether n restricts nothing: true, {}, or words alone.
func unrestricted(n *schema.Node) bool {
	if n.IsBool(true) {
		return true
	}
	if n.Kind() != schema.Object {
		return false
	}
	for _, m := range n.Members() {
		if judges(m.Name) {
			return false
		}
	}
	return true
}

// impossible reports whether no value fits n for certain.
func impossible(n *schema.Node) bool {
	if n.IsBool(false) {
		return true
	}
	not := n.Get("not")
	return not != nil && unrestricted(not) ||
		n.Get("enum").Kind() == schema.Array && len(n.Get("enum").Items()) == 0
}

// typesOf returns the types that n names; nil where it names none.
func typesOf(n *schema.Node) []string {
	t := n.Get("type")
	switch t.Kind() {
	case schema.String:
		return []string{t.Text()}
	case schema.Array:
		var names []string
		for _, item := range t.Items() {
			names = append(names, item.Text())
		}
		return names
	}
	return nil
}

// fitsTypes reports whether a value has a type that n names, or n names none.
func fitsTypes(n, v *schema.Node) bool {
	types, t := typesOf(n), typeOfValue(v)
	return len(types) == 0 || slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number") ||
		t == "null" && n.Get("nullable").IsBool(true)
}

func setTypes(n *schema.Node, names []string) {
	if len(names) == 1 {
		n.Set("type", schema.NewString(names[0]))
		return
	}
	items := make([]*schema.Node, len(names))
	for i, name := range names {
		items[i] = schema.NewString(name)
	}
	n.Set("type", schema.NewArray(items...))
}

// isObject reports whether n describes objects and nothing else.
func isObject(n *schema.Node) bool {
	t := typesOf(n)
	return len(t) == 1 && t[0] == "object"
}

// required returns the names in required.
func required(n *schema.Node) []string {
	var names []string
	for _, item := range n.Get("required").Items() {
		names = append(names, item.Text())
	}
	return names
}

func setRequired(n *schema.Node, names []string) {
	if len(names) == 0 {
		n.Delete("required")
		return
	}
	items := make([]*schema.Node, len(names))
	for i, name := range names {
		items[i] = schema.NewString(name)
	}
	n.Set("required", schema.NewArray(items...))
}
