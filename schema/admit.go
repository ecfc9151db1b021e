package schema

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// Limits of what [Admit] lets in. They are far above what real tools need (the
// largest of 1,342 public ones has 88 KB) and keep every later step, whose cost
// grows with them, below a tenth of a second.
const (
	MaxBytes      = 256 << 10 // of the schema's text
	MaxDepth      = 32        // schemas inside schemas
	MaxSubschemas = 2000      // that a value can meet; one that is referred to twice counts once
)

// A Refusal says why a schema is not admitted.
type Refusal struct {
	// Pointer is the JSON pointer to the reason; empty for the whole schema.
	Pointer string
	// Reason is the rest of a sentence that begins with the schema.
	Reason string
}

func (r *Refusal) Error() string { return fmt.Sprintf("at %q: %s", r.Pointer, r.Reason) }

// A Note is something that Admit did to a schema.
type Note struct {
	// Pass names what was done, by a verb.
	Pass string
	// Pointer is where, in the schema as it came.
	Pointer string
	// Why says why.
	Why string
	// Lossless reports that the schema still means the same.
	Lossless bool
}

// A Document is a schema that was admitted: within the limits, of JSON Schema
// draft 2020-12 whatever it was written in, every reference a pointer that
// leads to a schema inside it. It is immutable unless its owner changes Root.
type Document struct {
	// Root is the schema.
	Root *Node
	// Notes are what was done to it.
	Notes []Note

	origin  map[*Node]string // pointer in the text as it came
	path    map[*Node]string // pointer in Root
	targets map[*Node]*Node  // schema with $ref → its target
	cyclic  map[*Node]bool   // schemas that reach themselves
}

// Size returns about how many bytes of memory the document takes, without the text that it
// was read from.
func (d *Document) Size() int {
	const place = 80 // of a schema, with its pointers
	return d.Root.Size() + place*(len(d.origin)+len(d.path))
}

// Admit reads a schema and decides whether it can be worked with at all. It
// refuses what is no JSON, over a limit, or not resolvable: references to
// files, to the network or to nothing, references that lead in a circle
// without consuming anything, and types that do not exist. Malformed keywords
// beside that are dropped with a Note. It takes at most some 50 ms for any
// input.
func Admit(raw json.RawMessage) (*Document, *Refusal) {
	if len(raw) > MaxBytes {
		return nil, &Refusal{"", fmt.Sprintf("is longer than %d bytes", MaxBytes)}
	}
	root, err := Parse(raw)
	if err != nil {
		at := ""
		if e, ok := err.(*SyntaxError); ok {
			at = e.Pointer
		}
		return nil, &Refusal{at, "is not valid JSON: " + err.Error()}
	}
	return admit(root)
}

// AdmitNode is [Admit] for a schema that was parsed already, which stays as it is.
func AdmitNode(n *Node) (*Document, *Refusal) {
	if len(n.Bytes()) > MaxBytes {
		return nil, &Refusal{"", fmt.Sprintf("is longer than %d bytes", MaxBytes)}
	}
	return admit(n.Clone())
}

// admit takes root over.
func admit(root *Node) (*Document, *Refusal) {
	if k := root.Kind(); k != Object && k != Bool {
		return nil, &Refusal{"", "is not a schema: a schema is an object or a boolean"}
	}
	a := &admission{
		Document: &Document{
			Root: root, origin: map[*Node]string{}, path: map[*Node]string{},
			targets: map[*Node]*Node{}, cyclic: map[*Node]bool{},
		},
		draft:     draftOf(root),
		resources: map[string]*Node{}, base: map[*Node]string{}, anchors: map[string]*Node{}, came: lookup{},
	}
	for _, step := range []func() *Refusal{
		func() *Refusal { return a.index(root, "", "", 0) },
		a.resolve,
		a.sanitize,
		a.upgrade,
		a.satisfy,
		func() *Refusal { a.place(root, ""); return nil },
		a.rewriteRefs,
		a.findCycles,
		a.countReachable,
	} {
		if r := step(); r != nil {
			return nil, r
		}
	}
	return a.Document, nil
}

// Target returns the schema that n's $ref leads to; nil without $ref.
func (d *Document) Target(n *Node) *Node { return d.targets[n] }

// Cyclic reports whether a schema contains or reaches itself.
func (d *Document) Cyclic(n *Node) bool { return d.cyclic[n] }

// Recursive reports whether any schema of d is Cyclic.
func (d *Document) Recursive() bool {
	for _, cyclic := range d.cyclic {
		if cyclic {
			return true
		}
	}
	return false
}

// Origin returns the JSON pointer to a schema in the text as it came.
func (d *Document) Origin(n *Node) string { return d.origin[n] }

// Path returns the JSON pointer to a schema in Root.
func (d *Document) Path(n *Node) string { return d.path[n] }

// draft is a version of JSON Schema; the zero value means that none is named.
type draft int

// draftOf reads $schema. An unknown one counts as none: the meaning of a
// schema is then found by its shape.
func draftOf(root *Node) draft {
	s := strings.TrimRight(root.Get("$schema").Text(), "#")
	for name, d := range map[string]draft{
		"draft-04/schema": 4, "draft-06/schema": 6, "draft-07/schema": 7,
		"2019-09/schema": 2019, "2020-12/schema": 2020,
	} {
		if strings.HasSuffix(s, "json-schema.org/"+name) || strings.HasSuffix(s, "json-schema.org/draft/"+name) {
			return d
		}
	}
	return 0
}

type admission struct {
	*Document
	draft     draft
	order     []*Node          // schemas in the order found
	resources map[string]*Node // by absolute $id
	base      map[*Node]string // $id that holds for a schema
	anchors   map[string]*Node // by base + "#" + name
	came      lookup           // into the schema as it came
}

func (a *admission) note(pass string, n *Node, suffix, why string, lossless bool) {
	a.Notes = append(a.Notes, Note{Pass: pass, Pointer: a.origin[n] + suffix, Why: why, Lossless: lossless})
}

// index finds all schemas with their place and the ids that hold there.
func (a *admission) index(n *Node, at, base string, depth int) *Refusal {
	if depth > MaxDepth {
		return &Refusal{at, fmt.Sprintf("is nested deeper than %d schemas", MaxDepth)}
	}
	a.order = append(a.order, n)
	a.origin[n] = at
	id := n.Get("$id")
	if id == nil && a.draft == 4 {
		id = n.Get("id")
	}
	if a.draft != 0 && a.draft <= 7 && n.Has("$ref") {
		id = nil // what stands beside a reference does not count there
	}
	if text := id.Text(); id.Kind() == String && text != "" {
		if name, ok := strings.CutPrefix(text, "#"); ok { // an anchor, up to draft 7
			a.anchors[base+"#"+name] = n
		} else {
			base = strings.TrimSuffix(join(base, text), "#")
			a.resources[base] = n
		}
	}
	if at == "" {
		a.resources[""] = n
	}
	a.base[n] = base
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name := n.Get(keyword); name.Kind() == String {
			a.anchors[base+"#"+name.text] = n
		}
	}
	for sub := range n.Subschemas() {
		if r := a.index(sub.Node, at+sub.Pointer(), base, depth+1); r != nil {
			return r
		}
	}
	return nil
}

// join resolves a reference against a base; it returns ref where either cannot
// be parsed.
func join(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	r, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return b.ResolveReference(r).String()
}

// resolve finds the target of every reference, before anything moves.
func (a *admission) resolve() *Refusal {
	for i := 0; i < len(a.order); i++ { // grows: targets may be schemas nobody found yet
		n := a.order[i]
		for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			ref := n.Get(keyword)
			if ref == nil {
				continue
			}
			at := a.origin[n] + "/" + keyword
			if ref.Kind() != String {
				return &Refusal{at, "is a reference that is not a string"}
			}
			target, pointer := a.find(a.base[n], ref.text)
			if target == nil {
				return &Refusal{at, fmt.Sprintf("refers to %q, which is not in the schema; nothing is fetched", clip(ref.text))}
			}
			if k := target.Kind(); k != Object && k != Bool {
				return &Refusal{at, fmt.Sprintf("refers to %q, which is not a schema", clip(ref.text))}
			}
			if _, known := a.origin[target]; !known {
				if r := a.index(target, pointer, a.base[n], strings.Count(pointer, "/")/2); r != nil {
					return r
				}
			}
			if a.targets[n] == nil {
				a.targets[n] = target
			} else if a.targets[n] != target {
				return &Refusal{at, "is a second reference beside another"}
			}
		}
	}
	return a.settleDynamic()
}

// settleDynamic refuses dynamic references that have a choice: where they lead
// depends on the way by which a validator came, and no dialect can say that. One
// whose name only a single schema has is a plain reference.
func (a *admission) settleDynamic() *Refusal {
	anchors := map[string]int{}
	recursive := 0
	for _, n := range a.order {
		if name := n.Get("$dynamicAnchor"); name.Kind() == String {
			anchors[name.text]++
		}
		if n.Get("$recursiveAnchor").IsBool(true) {
			recursive++
		}
	}
	for _, n := range a.order {
		target := a.targets[n]
		if target == nil {
			continue
		}
		if ref := n.Get("$dynamicRef"); ref != nil {
			name := target.Get("$dynamicAnchor").Text()
			if name != "" && strings.HasSuffix(ref.text, "#"+name) && anchors[name] > 1 {
				return &Refusal{a.origin[n] + "/$dynamicRef", "is a dynamic reference that may lead to several schemas"}
			}
		}
		if n.Has("$recursiveRef") && target.Get("$recursiveAnchor").IsBool(true) && recursive > 1 {
			return &Refusal{a.origin[n] + "/$recursiveRef", "is a dynamic reference that may lead to several schemas"}
		}
	}
	return nil
}

// find returns what a reference leads to, and its pointer.
func (a *admission) find(base, ref string) (*Node, string) {
	whole, fragment, _ := strings.Cut(ref, "#")
	if whole != "" {
		base = strings.TrimSuffix(join(base, whole), "#")
	}
	resource := a.resources[base]
	if resource == nil {
		return nil, ""
	}
	if fragment != "" && fragment[0] != '/' {
		if name, err := url.PathUnescape(fragment); err == nil {
			fragment = name
		}
		n := a.anchors[base+"#"+fragment]
		return n, a.origin[n]
	}
	plain, err := url.PathUnescape(fragment)
	if err != nil {
		plain = fragment
	}
	return resource.at(fragment, a.came.get), a.origin[resource] + plain
}

// rewriteRefs makes every reference a plain pointer into Root, and takes away
// the ids that it needs no longer.
func (a *admission) rewriteRefs() *Refusal {
	now := lookup{}
	for _, n := range a.order {
		if target := a.targets[n]; target != nil {
			path, known := a.path[target]
			if !known {
				return &Refusal{a.origin[n] + "/$ref", "refers to something that is not a schema"}
			}
			if n.Delete("$dynamicRef") || n.Delete("$recursiveRef") {
				a.note("resolveReferences", n, "", "a dynamic reference within one document is a plain one", true)
				n.Set("$ref", NewString(fragment(path)))
			}
			if was := n.Get("$ref"); a.Root.at(strings.TrimPrefix(was.text, "#"), now.get) != target || !strings.HasPrefix(was.text, "#") {
				n.Set("$ref", NewString(fragment(path)))
				a.note("resolveReferences", n, "/$ref", "references become pointers within the schema", true)
			}
		}
	}
	for _, n := range a.order {
		for _, keyword := range []string{"$anchor", "$dynamicAnchor", "$recursiveAnchor", "$id"} {
			if n.Delete(keyword) {
				a.note("resolveReferences", n, "/"+keyword, "no reference needs it any more", true)
			}
		}
	}
	return nil
}

// fragment writes a JSON pointer as a URI fragment.
func fragment(pointer string) string {
	return "#" + (&url.URL{Fragment: pointer}).EscapedFragment()
}

// place notes where every schema is now. A schema that only a reference finds
// keeps its old pointer.
func (a *admission) place(n *Node, at string) {
	a.path[n] = at
	for sub := range n.Subschemas() {
		a.place(sub.Node, at+sub.Pointer())
	}
	if at == "" {
		now := lookup{}
		for _, other := range a.order {
			if _, placed := a.path[other]; !placed && a.Root.at(a.origin[other], now.get) == other {
				a.place(other, a.origin[other])
			}
		}
	}
}

// findCycles marks the schemas that reach themselves, and refuses circles in
// which nothing is consumed: no value would ever be judged by them.
func (a *admission) findCycles() *Refusal {
	const (
		fresh = iota
		open
		done
	)
	var refusal *Refusal
	state := make(map[*Node]int, len(a.order))
	var visit func(n *Node) bool // reports a circle without consumption
	visit = func(n *Node) bool {
		switch state[n] {
		case open:
			return true
		case done:
			return false
		}
		state[n] = open
		circle := false
		if t := a.targets[n]; t != nil {
			circle = visit(t)
		}
		for sub := range n.Subschemas() {
			if sub.InPlace() && !circle {
				circle = visit(sub.Node)
			}
		}
		state[n] = done
		return circle
	}
	for _, n := range a.order {
		if state[n] == fresh && visit(n) {
			refusal = &Refusal{a.origin[n], "refers to itself without consuming anything"}
			break
		}
	}
	if refusal == nil {
		a.findRecursive()
	}
	return refusal
}

// findRecursive is Tarjan's algorithm over containment and references.
func (a *admission) findRecursive() {
	number := make(map[*Node]int, len(a.order)) // from 1 on, as they are visited
	low := make([]int, 1, len(a.order)+1)       // by number
	at := make([]int, 1, len(a.order)+1)        // where in stack, by number; -1 once it was taken from there
	var stack []*Node
	var visit func(n *Node) int // returns its number
	visit = func(n *Node) int {
		num := len(low)
		number[n] = num
		low, at = append(low, num), append(at, len(stack))
		stack = append(stack, n)
		next := func(m *Node) {
			if seen := number[m]; seen == 0 {
				low[num] = min(low[num], low[visit(m)])
			} else if at[seen] >= 0 {
				low[num] = min(low[num], seen)
			}
		}
		if t := a.targets[n]; t != nil {
			next(t)
		}
		for sub := range n.Subschemas() {
			next(sub.Node)
		}
		if low[num] == num {
			first := at[num]
			for _, m := range stack[first:] {
				at[number[m]] = -1
				a.cyclic[m] = len(stack)-first > 1
			}
			stack = stack[:first]
		}
		return num
	}
	for _, n := range a.order {
		if number[n] == 0 {
			visit(n)
		}
	}
}

// countReachable refuses a schema of which too much can judge a value.
// Definitions that nothing refers to cost nothing, and those that much refers
// to cost once, since a [Validator] judges a value by each of them once: whoever
// writes references out bounds that work himself.
func (a *admission) countReachable() *Refusal {
	reached := map[*Node]bool{}
	var reach func(n *Node)
	reach = func(n *Node) {
		if reached[n] || len(reached) > MaxSubschemas {
			return
		}
		reached[n] = true
		if t := a.targets[n]; t != nil {
			reach(t)
		}
		for sub := range n.Subschemas() {
			if sub.Keyword != "$defs" && sub.Keyword != "definitions" {
				reach(sub.Node)
			}
		}
	}
	if reach(a.Root); len(reached) > MaxSubschemas {
		return &Refusal{"", fmt.Sprintf("has more than %d subschemas that can judge a value", MaxSubschemas)}
	}
	return nil
}

func clip(s string) string {
	if len(s) <= 100 {
		return s
	}
	return strings.ToValidUTF8(s[:100], "") + "…"
}
