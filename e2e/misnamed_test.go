package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Some valid instances of MaskBench are valid by accident: their authors wrote
// "readOnly " where the schema says readOnly, and an open schema takes any name.
// A gateway is to put that right or to ask, since a model that writes so has
// lost a switch. Such instances are counted by themselves; whether one is of
// them is decided here, by names alone and by other code than the gateway's.

// misnamed reports whether a value has a member that a schema nowhere declares
// and whose name is, but for its spelling or for one mistake, one that it does.
func misnamed(root *schema.Node, data json.RawMessage) bool {
	value, err := schema.Parse(data)
	if err != nil {
		return false
	}
	declared := map[string]bool{}
	gather(root, declared)
	spelled := map[string]bool{}
	for name := range declared {
		spelled[letters(name)] = true
	}
	found := false
	var visit func(v *schema.Node)
	visit = func(v *schema.Node) {
		for _, m := range v.Members() {
			found = found || !declared[m.Name] && (spelled[letters(m.Name)] || closeToOne(m.Name, declared) || pathOf(m.Name, spelled))
			visit(m.Value)
		}
		for _, item := range v.Items() {
			visit(item)
		}
	}
	visit(value)
	return found
}

// gather collects the names of all properties that a schema declares anywhere.
func gather(n *schema.Node, into map[string]bool) {
	for _, m := range n.Get("properties").Members() {
		into[m.Name] = true
	}
	for sub := range n.Subschemas() {
		gather(sub.Node, into)
	}
}

// letters are the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), ""))
}

// pathOf reports whether a name is several declared ones, written as a path.
func pathOf(name string, spelled map[string]bool) bool {
	parts := strings.FieldsFunc(strings.NewReplacer("__", ".", "::", ".", "->", ".").Replace(name), func(r rune) bool { return strings.ContainsRune(`./[]"'`, r) })
	for _, part := range parts {
		if !spelled[letters(part)] {
			return false
		}
	}
	return len(parts) > 1
}

// closeToOne reports whether a name is one edit or one exchange of neighbours
// away from a declared one.
func closeToOne(name string, declared map[string]bool) bool {
	for other := range declared {
		if diff := len(other) - len(name); diff >= -1 && diff <= 1 && distance([]rune(name), []rune(other)) <= 1 {
			return true
		}
	}
	return false
}

// distance is that of Damerau and Levenshtein, where only neighbours change
// places.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

func TestMisnamed(t *testing.T) {
	root, err := schema.Parse([]byte(`{"type":"object","properties":{"readOnly":{},"spec":{"type":"object","properties":{"replicas":{}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]bool{
		`{"readOnly":true}`:              false,
		`{"readOnly ":true}`:             true,
		`{"read_only":true}`:             true,
		`{"spec":{"replcias":2}}`:        true,
		`{"spec":[{"replica":2}]}`:       true,
		`{"spec.replicas":2}`:            true,
		`{"spec.copies":2}`:              false,
		`{"spec":{"copies":2},"note":1}`: false,
	} {
		if misnamed(root, json.RawMessage(data)) != want {
			t.Errorf("%s: want %v", data, want)
		}
	}
}
