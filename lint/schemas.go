package lint

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// schemaRules look at whether an input schema is one that can be worked with.
var schemaRules = []Rule{
	{
		ID: "S001", Severity: Error, Title: "input schema that is none",
		Why:     "MCP wants an object schema of JSON Schema 2020-12; clients drop the tool, and SDKs fail on the whole list.",
		Advice:  "Send at least {\"type\":\"object\"}, and only types that JSON Schema knows.",
		Source:  specTools + " (inputSchema)",
		Gateway: "The gateway offers a tool without a schema as one without arguments, and quarantines what it cannot read.",
		Tool:    checkObject,
	},
	{
		ID: "S002", Severity: Error, Title: "reference to outside of the schema",
		Why:     "Clients must not fetch schemas from the network or the disk, so what the reference stands for is unknown.",
		Advice:  "Copy what is referred to into $defs.",
		Source:  specTools + " (no network $ref)",
		Gateway: "The gateway quarantines the tool; it fetches nothing.",
		Tool: func(t *Tool, say Say) {
			for _, ref := range badRefs(t.Input) {
				say(at("/inputSchema"+ref.pointer+"/$ref"), "the reference %s leads to nothing in the schema", quote(ref.text))
			}
		},
	},
	{
		ID: "S003", Severity: Error, Title: "reference that leads back to itself",
		Why:     "A circle of references that consumes no part of the value never ends: some validators overflow their stack on it and take the client with them.",
		Advice:  "Let each turn of the circle pass through properties or items.",
		Source:  "MCP 2026-07-28, Basic (schema resource use); measured on two validators",
		Gateway: "The gateway quarantines the tool.",
		Tool: func(t *Tool, say Say) {
			if t.Refusal != nil && len(badRefs(t.Input)) == 0 && circular(t.Input) {
				say(at("/inputSchema"+t.Refusal.Pointer), "the schema %s", t.Refusal.Reason)
			}
		},
	},
	{
		ID: "S004", Severity: Error, Title: "schema bomb",
		Why:     "A kilobyte of doubling references keeps a validator busy for seconds, and a very deep or large schema does the same to every client.",
		Advice:  fmt.Sprintf("Stay below %d KB, %d levels and %d schemas with references filled in.", schema.MaxBytes>>10, schema.MaxDepth, schema.MaxSubschemas),
		Source:  "MCP 2026-07-28, Basic (composition keywords); measured",
		Gateway: "The gateway quarantines the tool.",
		Tool: func(t *Tool, say Say) {
			if refused(t) && tooLarge(t) {
				say(at("/inputSchema"+t.Refusal.Pointer), "the schema %s", t.Refusal.Reason)
			} else if where, n := doubling(t.Input); n > 0 {
				say(at("/inputSchema"+where), "with references written out, %.0f schemas judge one value", n)
			}
		},
	},
	{
		ID: "S025", Severity: Warning, Title: "schema that few validators can read",
		Why:     "References that depend on how one came, two at one place, or to what is no schema are read by some validators and refused by most, model APIs among them.",
		Advice:  "Use $ref to a schema in $defs, one at a place.",
		Source:  "JSON Schema 2020-12, 8.2.3; " + ours,
		Gateway: "The gateway quarantines the tool.",
		Tool: func(t *Tool, say Say) {
			if refused(t) && !tooLarge(t) && !contradicts(t) {
				say(at("/inputSchema"+t.Refusal.Pointer), "the schema %s", t.Refusal.Reason)
			}
		},
	},
	{
		ID: "S005", Severity: Error, Title: "schema that contradicts itself",
		Why:     "A required argument that is not declared, an enum without values of the type, or a range that ends before it begins cannot be filled in; strict model APIs refuse the request, and an engine can run out of memory over it.",
		Advice:  "Declare what is required under properties; make required an array of names beside properties; let minima be at most the maxima.",
		Source:  "JSON Schema 2020-12; OpenAI structured outputs",
		Gateway: "The gateway quarantines a tool that nothing fits, declares what is required and drops what means nothing.",
		Tool:    checkConsistent,
	},
	{
		ID: "S011", Severity: Warning, Title: "pattern that clients cannot use",
		Why:     "Patterns with look-around, back references or nested repetition are refused by RE2 and several model APIs, or take exponential time elsewhere. Clients in TypeScript read patterns as ECMAScript with the flag u, and one of an output schema that they cannot read costs them the list of all tools.",
		Advice:  "Write a plain pattern that RE2 and ECMAScript know, and check the rest in the server.",
		Source:  "JSON Schema 2020-12, Regular expressions; CWE-1333; ECMA-262, Patterns",
		Gateway: "The gateway moves the pattern into the description and does not check it.",
		Tool:    checkPatterns,
	},
	{
		ID: "S012", Severity: Warning, Title: "too many or too deep arguments",
		Why:    "Models fill in 15 flat arguments well; beyond that, and below five levels, they begin to leave out and to misplace.",
		Advice: "Split the tool, or make the rare arguments a tool of their own.",
		Source: "OpenAI structured outputs limits; " + ours,
		Tool: func(t *Tool, say Say) {
			deepest, where := 0, ""
			walk(t.Input, "/inputSchema", func(n *schema.Node, pointer string, _ int) {
				if d := strings.Count(pointer, "/properties/") + strings.Count(pointer, "/items"); d > deepest {
					deepest, where = d, pointer
				}
			})
			if n := len(t.Params()); n > 15 {
				say(at("/inputSchema/properties"), "the tool has %d arguments", n)
			}
			if deepest > 5 && t.Refusal == nil {
				say(at(where), "arguments are nested %d levels deep", deepest)
			}
		},
	},
	{
		ID: "S013", Severity: Error, Title: "parameter header that MCP does not allow",
		Why:     "Clients must drop a tool with an invalid x-mcp-header, and a secret in a header is logged by every proxy on the way.",
		Advice:  "Mark only strings, integers and booleans that are reached through properties, each with a name of its own; never secrets.",
		Source:  "MCP 2026-07-28, Streamable HTTP (SEP-2243)",
		Gateway: "The gateway quarantines the tool over HTTP.",
		Tool:    checkHeaders,
	},
	{
		ID: "S021", Severity: Error, Title: "definition that strict readers refuse",
		Why:     "Duplicate members, invalid UTF-8 and endless nesting are read differently by different programs, so what was checked is not what runs.",
		Advice:  "Write the definition with a JSON library, and every member once.",
		Source:  "RFC 7493 (I-JSON); GHSA-4gph-2hhr-5mwg",
		Gateway: "The gateway quarantines the tool.",
		Tool: func(t *Tool, say Say) {
			if t.Malformed != nil {
				say(here, "%s", t.Malformed.Error())
			} else if t.Root.Kind() != schema.Object {
				say(here, "entry %d of the list is not an object", t.Index+1)
			}
		},
	},
	{
		ID: "S022", Severity: Warning, Title: "default or example that its own schema refuses",
		Why:    "A model that copies the value gets an error for doing what it was shown.",
		Advice: "Correct the value or the schema.",
		Source: "JSON Schema 2020-12, Validation 9",
		Tool:   checkSamples,
	},
}

func isObject(t *Tool) bool {
	return t.Input.Kind() == schema.Object && (t.Input.Get("type").IsString("object") || !t.Input.Has("type"))
}

func checkObject(t *Tool, say Say) {
	switch kind := t.Input.Get("type"); {
	case t.Malformed != nil || t.Root.Kind() != schema.Object:
	case t.Input == nil:
		say(here, "the tool has no inputSchema")
	case t.Input.Kind() != schema.Object:
		say(at("/inputSchema"), "the inputSchema is not an object")
	case kind == nil:
		say(at("/inputSchema"), "the inputSchema has no type; it must be \"object\"")
	case !kind.IsString("object"):
		say(at("/inputSchema/type"), "the inputSchema has the type %s; it must be \"object\"", clip(kind))
	case t.Refusal != nil && badType(t.Input):
		say(at("/inputSchema"+t.Refusal.Pointer), "the schema %s", t.Refusal.Reason)
	}
}

func clip(n *schema.Node) string {
	text := string(n.Bytes())
	if len(text) > 60 {
		text = text[:57] + "…"
	}
	return visible(text)
}

// types are those of JSON Schema, and two that are so common that everybody
// understands them.
var types = words("object array string number integer boolean null any")

// badType reports whether a schema has a type that does not exist.
func badType(n *schema.Node) (bad bool) {
	walk(n, "", func(n *schema.Node, _ string, _ int) {
		kind := n.Get("type")
		list := kind.Items()
		switch kind.Kind() {
		case 0:
			return
		case schema.Array:
			bad = bad || len(list) == 0
		default:
			list = []*schema.Node{kind}
		}
		for _, k := range list {
			bad = bad || k.Kind() != schema.String || !types[k.Text()]
		}
	})
	return bad
}

type ref struct{ pointer, text string }

// badRefs returns the references that do not lead to a place in the schema.
// Anchors and ids are left to admission, which knows them.
func badRefs(root *schema.Node) (bad []ref) {
	if root == nil || !bytes.Contains(root.Bytes(), []byte(`$ref`)) {
		return nil
	}
	anchored := false
	walk(root, "", func(n *schema.Node, _ string, _ int) {
		anchored = anchored || n.Has("$anchor") || n.Has("$id") || n.Has("id") || n.Has("$dynamicAnchor")
	})
	walk(root, "", func(n *schema.Node, pointer string, _ int) {
		r := n.Get("$ref")
		if r == nil || r.Kind() != schema.String {
			return
		}
		text := r.Text()
		fragment, local := strings.CutPrefix(text, "#")
		if (!local || root.At(fragment) == nil) && !anchored {
			bad = append(bad, ref{pointer, text})
		}
	})
	return bad
}

// circular reports whether following references and what judges the same value
// leads back to where it began.
func circular(root *schema.Node) bool {
	const open, done = 1, 2
	state := map[*schema.Node]int{}
	var visit func(*schema.Node) bool
	visit = func(n *schema.Node) bool {
		if n == nil || n.Kind() != schema.Object || state[n] == done {
			return false
		}
		if state[n] == open {
			return true
		}
		state[n] = open
		defer func() { state[n] = done }()
		if fragment, ok := strings.CutPrefix(n.Get("$ref").Text(), "#"); ok && n.Has("$ref") && visit(root.At(fragment)) {
			return true
		}
		for sub := range n.Subschemas() {
			if sub.InPlace() && visit(sub.Node) {
				return true
			}
		}
		return false
	}
	found := false
	walk(root, "", func(n *schema.Node, _ string, _ int) { found = found || visit(n) })
	return found
}

// refused reports whether a schema was refused for something that no other rule speaks
// of.
func refused(t *Tool) bool {
	return t.Refusal != nil && isObject(t) && len(badRefs(t.Input)) == 0 && !circular(t.Input) && !badType(t.Input)
}

// contradicts reports whether S005 finds something.
func contradicts(t *Tool) (found bool) {
	checkConsistent(t, func(At, string, ...any) { found = true })
	return found
}

func checkConsistent(t *Tool, say Say) {
	if t.Refusal != nil && unsatisfiable(t.Input) {
		say(at("/inputSchema"+t.Refusal.Pointer), "the schema %s", t.Refusal.Reason)
		return
	}
	walk(t.Input, "/inputSchema", func(n *schema.Node, pointer string, _ int) {
		required := n.Get("required")
		switch {
		case required == nil:
		case required.Kind() != schema.Array:
			say(at(pointer+"/required"), "required is %s; it must be an array of names", clip(required))
		case n.Has("properties") && !n.Has("$ref"):
			for _, name := range required.Items() {
				if !n.Get("properties").Has(name.Text()) && !inherits(n) {
					say(at(pointer+"/required"), "%s is required and not among the properties", quote(name.Text()))
				}
			}
		}
		if e := n.Get("enum"); e != nil && e.Kind() != schema.Array {
			say(at(pointer+"/enum"), "the enum has no values")
		}
		for _, name := range []string{"imum", "Length", "Items", "Properties", "Contains"} {
			if sign, ok := schema.Compare(n.Get("min"+name), n.Get("max"+name)); ok && sign > 0 {
				say(at(pointer), "min%s is more than max%s", name, name)
			}
		}
	})
}

// unsatisfiable reports whether a schema, or one in it, can be met by no value.
func unsatisfiable(root *schema.Node) (found bool) {
	walk(root, "", func(n *schema.Node, _ string, _ int) {
		enum := n.Get("enum")
		found = found || n.Kind() == schema.Object && !schema.Satisfiable(n) || enum.Kind() == schema.Array && len(enum.Items()) == 0
	})
	return found
}

// inherits reports whether properties may be declared elsewhere.
func inherits(n *schema.Node) bool {
	return n.Has("allOf") || n.Has("anyOf") || n.Has("oneOf") || n.Has("patternProperties") || n.Get("additionalProperties").Kind() == schema.Object
}

var headerName = pattern.Of("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func checkHeaders(t *Tool, say Say) {
	seen := map[string]string{}
	walk(t.Input, "/inputSchema", func(n *schema.Node, pointer string, _ int) {
		h := n.Get("x-mcp-header")
		if h == nil {
			return
		}
		where := at(pointer + "/x-mcp-header")
		path := strings.TrimPrefix(pointer, "/inputSchema")
		parts := strings.Split(path, "/")
		static := len(parts) > 2 && len(parts)%2 == 1
		for i := 1; i < len(parts) && static; i += 2 {
			static = parts[i] == "properties"
		}
		kind := n.Get("type").Text()
		name, _ := property(pointer)
		switch {
		case h.Kind() != schema.String || !headerName.MatchString(h.Text()):
			say(where, "%s is not the name of a header", clip(h))
		case !static:
			say(where, "the header %s is not reached through properties alone", quote(h.Text()))
		case kind != "string" && kind != "integer" && kind != "boolean":
			say(where, "the header %s is for a value of type %s; string, integer and boolean are allowed", quote(h.Text()), quote(kind))
		case seen[strings.ToLower(h.Text())] != "":
			say(where, "the header %s is used twice", quote(h.Text()))
		case isSecret(name):
			say(where, "the argument %s is a secret and would travel in a header", quote(name))
		}
		seen[strings.ToLower(h.Text())] = pointer
	})
}

// checkSamples looks at the defaults and examples of both schemas. Admission may
// have rewritten the tree; its own pointers lead to what a value is judged by.
func checkSamples(t *Tool, say Say) {
	checkSamplesOf(t.Admitted, "/inputSchema", say)
	if t.Output != nil && (bytes.Contains(t.Definition, []byte(`"default"`)) || bytes.Contains(t.Definition, []byte(`"examples"`))) {
		out, _ := schema.AdmitNode(t.Output)
		checkSamplesOf(out, "/outputSchema", say)
	}
}

func checkSamplesOf(d *schema.Document, where string, say Say) {
	if d == nil {
		return
	}
	var judge *schema.Validator
	walk(d.Root, "", func(n *schema.Node, pointer string, _ int) {
		for keyword, value := range samples(n) {
			if schema.Plainly(n, value) {
				continue
			}
			if judge == nil {
				judge = d.Validator()
			}
			if v := judge.ValidateAt(pointer, value); len(v) > 0 && v[0].Keyword != schema.CostKeyword {
				say(at(where+d.Origin(n)+"/"+keyword), "%s %s breaks its own rules: %s", strings.TrimSuffix(keyword, "s"), clip(value), v[0].String())
				return
			}
		}
	})
}

// samples are the values that a schema itself holds, by the keyword.
func samples(n *schema.Node) iter.Seq2[string, *schema.Node] {
	return func(yield func(string, *schema.Node) bool) {
		for _, value := range n.Get("examples").Items() {
			if !yield("examples", value) {
				return
			}
		}
		if d := n.Get("default"); d != nil && d.Kind() != schema.Null {
			yield("default", d)
		}
	}
}
