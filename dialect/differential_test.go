package dialect

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kaptinlin/jsonrepair"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

// breakages are what models do to JSON. Each takes text that may be broken
// already.
var breakages = map[string]func(string) string{
	"fence":          func(s string) string { return "```json\n" + s + "\n```" },
	"trailing comma": func(s string) string { return strings.Replace(s, "}", ",}", 1) },
	"comma in list":  func(s string) string { return strings.Replace(s, "]", ",]", 1) },
	"python literal": func(s string) string {
		return strings.NewReplacer(":true", ":True", ":false", ":False", ":null", ":None").Replace(s)
	},
	"single quotes": func(s string) string {
		if strings.ContainsAny(s, `\'`) {
			return s
		}
		return strings.ReplaceAll(s, `"`, `'`)
	},
	"bare names":   func(s string) string { return strings.Replace(s, `{"a":`, `{a:`, 1) },
	"raw newline":  func(s string) string { return strings.ReplaceAll(s, `\n`, "\n") },
	"space":        func(s string) string { return "\n\t" + strings.ReplaceAll(s, ",", " ,\n ") + "\n" },
	"extra closer": func(s string) string { return s + "}" },
}

// TestRepairLikeOthers compares our repair of broken arguments with that of
// another implementation: where both find a value it is the same one, and ours
// finds the value that was broken. What is cut off is the exception: the other
// one completes it, and we never do.
func TestRepairLikeOthers(t *testing.T) {
	d, err := For("conservative")
	if err != nil {
		t.Fatal(err)
	}
	plan, problem := d.Plan(dragoman.Tool{Name: "t", Description: "Takes anything.", InputSchema: json.RawMessage(`{"type":"object"}`)})
	if problem != nil {
		t.Fatal(problem)
	}
	r := rand.New(rand.NewPCG(1, 2))
	names := slices.Sorted(maps.Keys(breakages))
	both, ours, theirs := 0, 0, 0
	for range 3000 {
		want := randomObject(r, 3)
		text := want
		var did []string
		for range 1 + r.IntN(2) {
			name := names[r.IntN(len(names))]
			text = breakages[name](text)
			did = append(did, name)
		}
		got, _, problem := plan.Decode(text, "")
		other, err := jsonrepair.Repair(text)
		okOther := err == nil && json.Valid([]byte(other)) && strings.HasPrefix(strings.TrimSpace(other), "{")
		switch {
		case problem == nil && okOther:
			both++
			if !same(t, got, []byte(other)) && !same(t, got, []byte(want)) {
				t.Errorf("%v made %q\nours   %s\ntheirs %s\nwas    %s", did, text, got, other, want)
			}
		case problem == nil:
			ours++
		case okOther:
			theirs++
		}
		if problem == nil && !same(t, got, []byte(want)) {
			t.Errorf("%v: %q was repaired to %s; it was %s", did, text, got, want)
		}
		// Never complete what is cut off.
		if cut := want[:r.IntN(len(want))]; cut != "" {
			if got, _, problem := plan.Decode(cut, ""); problem == nil {
				t.Errorf("the cut off %q became %s", cut, got)
			}
		}
	}
	t.Logf("repaired by both %d, by ours alone %d, by the other alone %d", both, ours, theirs)
	if both < 2000 {
		t.Errorf("only %d of 3,000 were repaired by both", both)
	}
}

func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	x, err := schema.Parse(bytes.Clone(a))
	if err != nil {
		return false
	}
	y, err := schema.Parse(bytes.Clone(b))
	return err == nil && schema.Equal(x, y)
}

// randomObject returns a JSON object whose first member is a.
func randomObject(r *rand.Rand, depth int) string {
	var b strings.Builder
	b.WriteString(`{"a":` + randomValue(r, depth-1))
	for _, name := range []string{"b", "name", "list_1"}[:r.IntN(4)] {
		b.WriteString(`,"` + name + `":` + randomValue(r, depth-1))
	}
	return b.String() + "}"
}

func randomValue(r *rand.Rand, depth int) string {
	scalars := []string{"1", "-2.5", "9007199254740993", "true", "false", "null", `""`, `"text"`, `"two words"`, `"a\nb"`, `"北京"`}
	switch n := r.IntN(8); {
	case depth > 0 && n == 0:
		return randomObject(r, depth)
	case depth > 0 && n == 1:
		return "[" + randomValue(r, depth-1) + "," + randomValue(r, depth-1) + "]"
	}
	return scalars[r.IntN(len(scalars))]
}
