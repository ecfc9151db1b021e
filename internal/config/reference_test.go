package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated documentation")

// TestReference keeps docs/configuration.md up to date: headings, tables and
// defaults come from the schema, the words and examples around them from
// testdata/reference, a file for each key.
func TestReference(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "configuration.md")
	want := referencePage(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the schema says; run go test ./internal/config -run TestReference -update", file)
	}
}

// TestReferenceExamples reads every example, and wants one for every key.
func TestReferenceExamples(t *testing.T) {
	schema := schemaNode(t)
	shown := map[string]bool{}
	for _, name := range sections(schema) {
		for _, text := range examples(prose(t, name)) {
			f, err := Parse(name+".md", []byte(text), func(name string) (string, bool) {
				return "a-value-of-a-variable", name != "DRAGOMAN_INPUT_REGION"
			})
			if err != nil {
				t.Errorf("an example cannot be read:\n%v", err)
				continue
			}
			if len(f.Warnings) > 0 {
				t.Errorf("an example is doubtful:\n%v", f.Warnings)
			}
			_, root, failed := tree(name, []byte(text))
			if failed != nil {
				t.Fatal(failed)
			}
			mark(shown, schema, root, "")
		}
	}
	var missing []string
	everyKey(schema, "", func(path string, _ *node) {
		if !shown[path] {
			missing = append(missing, path)
		}
	})
	if missing != nil {
		t.Errorf("these keys have no example in testdata/reference: %s", strings.Join(missing, ", "))
	}
}

// schemaNode is the schema that "dragoman config schema" prints, in its order.
func schemaNode(t *testing.T) *node {
	t.Helper()
	data := Schema()
	root, failed := parseJSON(newSource("schema", string(data)), data)
	if failed != nil {
		t.Fatal(failed)
	}
	return root
}

// sections are the pieces of the page, in order.
func sections(schema *node) []string {
	names := []string{"head"}
	for _, e := range schema.get("properties").entries {
		if e.value.get("deprecated") == nil {
			names = append(names, e.name)
		}
	}
	return append(names, "tail")
}

func prose(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "reference", name+".md"))
	if err != nil {
		t.Fatalf("%v: say there what %s is for, with an example", err, name)
	}
	return string(text)
}

var fence = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

func examples(text string) (found []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// below returns what the schema of a key says about the keys in it: those of a
// mapping, of each item of a list, or of each entry.
func below(schema *node) (keys *node, step string) {
	if items := schema.get("items"); items.get("properties") != nil {
		return items, "[]"
	}
	if each := schema.get("additionalProperties"); each.get("properties") != nil {
		return each, ".LABEL"
	}
	return schema, ""
}

// everyKey visits the keys of a schema, outer ones first.
func everyKey(schema *node, path string, visit func(path string, key *node)) {
	keys, step := below(schema)
	if keys.get("properties") == nil {
		return
	}
	for _, e := range keys.get("properties").entries {
		if e.value.get("deprecated") == nil {
			at := join(path+step, e.name)
			visit(at, e.value)
			everyKey(e.value, at, visit)
		}
	}
}

// mark notes the keys that an example sets.
func mark(shown map[string]bool, schema, value *node, path string) {
	keys, step := below(schema)
	var objects []*node
	switch {
	case step == "[]":
		objects = value.items
	case step != "":
		for _, e := range value.entries {
			objects = append(objects, e.value)
		}
	default:
		objects = []*node{value}
	}
	for _, object := range objects {
		for _, e := range object.entries {
			if key := keys.get("properties").get(e.name); key != nil {
				at := join(path+step, e.name)
				shown[at] = true
				mark(shown, key, e.value, at)
			}
		}
	}
}

// referencePage returns the page.
func referencePage(t *testing.T) string {
	schema := schemaNode(t)
	var b strings.Builder
	b.WriteString("# Configuration\n\n<!-- Generated from the schema and internal/config/testdata/reference by go test ./internal/config -run TestReference -update. Do not edit. -->\n\n")
	for _, name := range sections(schema) {
		if key := schema.get("properties").get(name); key != nil {
			fmt.Fprintf(&b, "## %s\n\n%s%s\n\n", name, inMarkdown(key.get("description").text), defaultOfKey(key, " Default: %s."))
			writeTable(&b, key, name)
		}
		b.WriteString(prose(t, name))
		if name != "tail" {
			b.WriteString("\n")
		}
	}
	return regexp.MustCompile(`\n{3,}`).ReplaceAllString(b.String(), "\n\n")
}

// writeTable lists the keys below a key.
func writeTable(b *strings.Builder, key *node, name string) {
	var rows []string
	everyKey(key, name, func(path string, key *node) {
		if kind := kindOf(key); kind != "" {
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", path, kind, defaultOfKey(key, "%s"), inMarkdown(key.get("description").text)))
		}
	})
	if rows != nil {
		b.WriteString("| key | value | default | |\n|---|---|---|---|\n" + strings.Join(rows, "") + "\n")
	}
}

// inMarkdown escapes what would be markup in a cell of a table.
func inMarkdown(text string) string {
	return strings.NewReplacer("*", `\*`, "|", `\|`, "<", "&lt;").Replace(text)
}

func defaultOfKey(key *node, format string) string {
	if def := key.get("default"); def != nil && def.text != "" {
		return fmt.Sprintf(format, "`"+def.text+"`")
	}
	return ""
}

// kindOf says in words what a key takes; nothing for one that only holds others.
func kindOf(key *node) string {
	schema := key
	if either := key.get("anyOf"); either != nil { // or a reference
		schema = either.items[0]
	}
	switch ref := schema.get("$ref"); {
	case ref != nil:
		return strings.TrimPrefix(ref.text, "#/$defs/")
	case schema.get("enum") != nil:
		var values []string
		for _, v := range schema.get("enum").items {
			values = append(values, "`"+v.text+"`")
		}
		return strings.Join(values, ", ")
	}
	kinds := schema.get("type")
	if kinds.kind == listKind { // or nothing
		kinds = kinds.items[0]
	}
	switch inner, _ := below(schema); kinds.text {
	case "array":
		if inner != schema {
			return "list"
		}
		return "list of texts"
	case "object":
		if schema.get("additionalProperties").get("$ref") != nil {
			return "names with texts"
		}
		if schema.get("properties") == nil {
			return "mapping"
		}
		return ""
	case "boolean":
		return "`true`, `false`"
	case "integer":
		if most := schema.get("maximum"); most != nil {
			return schema.get("minimum").text + " to " + most.text
		}
		return "whole number"
	default:
		return map[string]string{"string": "text"}[kinds.text]
	}
}

// TestReferenceFiles finds words about keys that are gone.
func TestReferenceFiles(t *testing.T) {
	known := sections(schemaNode(t))
	files, err := filepath.Glob(filepath.Join("testdata", "reference", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(known, strings.TrimSuffix(filepath.Base(file), ".md")) {
			t.Errorf("%s is about a key that does not exist", file)
		}
	}
}
