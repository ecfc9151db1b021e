package toolkit

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-mcp/dragoman/schema"
)

// everything has each kind of field that fits judges.
type everything struct {
	Text   string           `json:"text" min:"1" max:"3"`
	Word   string           `json:"word,omitempty" enum:"a,b"`
	Code   string           `json:"code,omitempty" pattern:"^[a-z]+$"`
	Small  int8             `json:"small,omitempty"`
	Whole  int              `json:"whole,omitempty" min:"-1" max:"2"`
	Number float64          `json:"number,omitempty" above:"0" below:"2"`
	Step   float64          `json:"step,omitempty" multiple:"0.5"`
	Flag   *bool            `json:"flag" nullable:"true"`
	At     time.Time        `json:"at,omitzero"`
	List   []string         `json:"list,omitempty" max:"2" enum:"a,b"`
	Pair   [2]int           `json:"pair,omitempty"`
	Dict   map[string]int8  `json:"dict,omitempty" max:"1"`
	Set    []int            `json:"set,omitempty" unique:"true"`
	Part   *part            `json:"part,omitempty"`
	Any    json.RawMessage  `json:"any,omitempty"`
	Maybe  Optional[string] `json:"maybe,omitzero" max:"1"`
}

// TestFitsAgrees holds the quick judgement to that of the validator: where it is
// sure, it is right.
func TestFitsAgrees(t *testing.T) {
	s, err := shapeOf(reflect.TypeFor[everything](), true)
	if err != nil {
		t.Fatal(err)
	}
	v := schema.NewValidator(s.schema(true))
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "ab", "abcd", "A", "ü"}), func(s string) any { return s }),
		rapid.Map(rapid.SampledFrom([]string{"0", "-1", "1", "2", "2.0", "0.5", "1.5", "1e2", "-129", "1e40"}), func(s string) any { return json.Number(s) }),
	)
	value := rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"name", "grade", "x"}), leaf, 0, 3), func(m map[string]any) any { return m }),
	)
	sure := 0
	rapid.Check(t, func(t *rapid.T) {
		given := map[string]any{"text": "a"}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(append(names, "other")), 0, 3, rapid.ID).Draw(t, "names") {
			given[name] = value.Draw(t, name)
		}
		data, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		n, err := schema.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		bad := v.ValidateNode(n)
		switch (&place{of: s}).fits(n, true) {
		case fine:
			sure++
			if len(bad) > 0 {
				t.Fatalf("%s: taken for fine, and %v", data, bad)
			}
		case wrong:
			sure++
			if len(bad) == 0 {
				t.Fatalf("%s: taken for wrong, and it fits", data)
			}
		}
	})
	if sure == 0 {
		t.Error("never sure")
	}
}
