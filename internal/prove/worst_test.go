package prove

import (
	"strings"
	"testing"
)

// TestWorstWitnessIsFirst: of two witnesses the one of the place where nearly every call
// is lost comes before one that is shorter, and of a place where few are.
func TestWorstWitnessIsFirst(t *testing.T) {
	server := `{"type":"object","properties":{"n":{"type":"integer","maximum":7},"text":{"type":"string","pattern":"^q{7}$"}},"additionalProperties":false}`
	engine := `{"type":"object","properties":{"n":{"type":"integer"},"text":{"type":"string"}},"additionalProperties":false}`
	proof := proveTool(t, &Prover{Dialect: in(t, "openai"), Engine: obtuse{engine}}, server)
	w := proof.First(Refused)
	if w == nil || proof.Count(Refused) < 2 {
		t.Fatalf("%+v", proof)
	}
	if w.At != "/properties/text" || w.Lost == 0 || w.Lost > w.Of {
		t.Errorf("the first is %+v", w)
	}
}

// TestPlaceIsTheOneThatIsNamed: where the reason names a place, that is the place.
func TestPlaceIsTheOneThatIsNamed(t *testing.T) {
	server := `{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"size":{"type":"integer","minimum":3}},"required":["size"]}},"name":{"$ref":"#/$defs/name"}},"$defs":{"name":{"type":"string","minLength":2}}}`
	engine := `{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}},"name":{"$ref":"#/$defs/name"}},"$defs":{"name":{"type":"string"}}}`
	proof := proveTool(t, &Prover{Dialect: in(t, "openai"), Engine: obtuse{engine}}, server)
	if proof.Count(Refused) == 0 {
		t.Fatalf("%+v", proof)
	}
	for _, w := range proof.Witnesses {
		if w.Kind != Refused {
			continue
		}
		want := "/properties/list/items/properties/size"
		if strings.Contains(w.Why, "/name:") {
			want = "/$defs/name"
		}
		if w.At != want {
			t.Errorf("%s at %s: %s", w.Call, w.At, w.Why)
		}
	}
}

// TestWhatIsTakenIsWritableWhereNothingIsFound: the certificate does not speak against
// itself.
func TestWhatIsTakenIsWritableWhereNothingIsFound(t *testing.T) {
	for _, input := range []string{
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"on":{"type":"boolean"},"how":{"enum":["a","b"]}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"],"additionalProperties":false}`,
	} {
		for _, name := range []string{"openai", "openai-strict", "vllm", "gemini", "conservative"} {
			proof := proveTool(t, &Prover{Dialect: in(t, name)}, input)
			if l := proof.Looked; len(proof.Witnesses) == 0 && (l.Taken == 0 || l.Writable < l.Taken) {
				t.Errorf("%s in %s: nothing found, %d taken, %d writable", input, name, l.Taken, l.Writable)
			}
		}
	}
}
