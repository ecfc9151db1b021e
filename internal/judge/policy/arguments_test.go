package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

func TestRecord(t *testing.T) {
	for document, want := range map[string]string{
		``:                                   `{}`,
		`{}`:                                 `{}`,
		`{"a":"x\u0041\n"}`:                  `{"a":"xA\n"}`,
		`{"a":true,"b":false}`:               `{"a":true, "b":false}`,
		`{"a":null}`:                         `{"a":JSON::"null"}`,
		`{"a":9223372036854775807}`:          `{"a":9223372036854775807}`,
		`{"a":-9223372036854775808}`:         `{"a":-9223372036854775808}`,
		`{"a":9223372036854775808}`:          `{"a":"9223372036854775808"} inexact`,
		`{"a":1.50}`:                         `{"a":"1.50"} inexact`,
		`{"a":1.0,"b":1e3,"c":-0}`:           `{"a":1, "b":1000, "c":0}`,
		`{"a":[1,2]}`:                        `{"a":[1, 2]}`,
		`{"a":[1,1.0]}`:                      `{"a":[1]} inexact`,
		`{"a":{"b":{"":1}}}`:                 `{"a":{"b":{"":1}}}`,
		`{"__entity":{"type":"x","id":"y"}}`: `{"__entity":{"id":"y", "type":"x"}}`,
		`{"a":"1","b":"JSON::\"null\""}`:     `{"a":"1", "b":"JSON::\"null\""}`,
		`{"a":1,"a":2}`:                      `error`,
		`{"a":1,"\u0061":2}`:                 `error`,
		`{"a":"\ud800"}`:                     `error`,
		"{\"a\":\"\xff\"}":                   `error`,
		`{"a":01}`:                           `error`,
		`{"a":1}x`:                           `error`,
		`{"a":1`:                             `error`,
		`{"a":1]`:                            `error`,
		`[]`:                                 `error`,
		`null`:                               `error`,
		`{"a":[` + strings.Repeat("1,", maxValues) + `1]}`:   `error`,
		`{"a":[` + strings.Repeat("{},", maxNested) + `{}]}`: `error`,
	} {
		r, inexact, err := record(json.RawMessage(document))
		got := r.String()
		if inexact {
			got += " inexact"
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%.60s: %s (%v), want %s", document, got, err, want)
		}
	}
}

// integer agrees with exact arithmetic about every spelling.
func TestInteger(t *testing.T) {
	spellings := []string{"0", "-0", "0.0", "0e999999999999", "-0.00e-5", "1e18", "1e19", "9.223372036854775807e18", "9.223372036854775808e18",
		"-9.223372036854775808e18", "-9.223372036854775809e18", "12e-1", "120e-1", "1200000e-5", "1e-1", "0.1e1", "0.01e1", "1E+2", "1e00002",
		"100000000000000000000e-2", "1e-999999999999", "1e999999999999", "0.00000000000000000001e20", "123456789.000", "1.000000000000000000000000001"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		spellings = append(spellings, number(random))
	}
	for _, text := range spellings {
		got, ok := integer(text)
		if strings.Contains(text, "99999999999") {
			if zero := !strings.ContainsAny(strings.FieldsFunc(text, func(r rune) bool { return r == 'e' })[0], "123456789"); ok != zero {
				t.Errorf("integer(%s) = %d, %t", text, got, ok)
			}
			continue
		}
		exact, _ := new(big.Rat).SetString(text)
		want := exact.IsInt() && exact.Num().IsInt64()
		if ok != want || ok && exact.Num().Int64() != got {
			t.Errorf("integer(%s) = %d, %t", text, got, ok)
		}
	}
}

// TestDifferential: what the rules see of arguments is what a server gets that
// reads the same bytes with another decoder. Documents that could be read in two
// ways are refused by both the door and the rules. make judge takes 50,000.
func TestDifferential(t *testing.T) {
	documents := 500
	if os.Getenv("DRAGOMAN_DIFFERENTIAL") != "" {
		if _, err := fmt.Sscan(os.Getenv("DRAGOMAN_DIFFERENTIAL"), &documents); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range documents {
		document := []byte(object(random, 4))
		if random.IntN(4) == 0 {
			document = disturb(random, document)
		}
		if !agree(t, document) {
			refused++
		}
	}
	t.Logf("%d documents, of which %d were refused", documents, refused)
	if refused == 0 || refused > documents/2 {
		t.Errorf("%d of %d documents were refused: they test little", refused, documents)
	}
}

func FuzzArguments(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		f.Add([]byte(object(random, 3)))
	}
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Add([]byte(`{"a":"\ud800\udc00"}`))
	f.Fuzz(func(t *testing.T, document []byte) { agree(t, document) })
}

// agree compares what rules see of a document with what encoding/json reads. It
// reports false for a document that is refused.
func agree(t *testing.T, document []byte) bool {
	t.Helper()
	door := rawjson.Check(document)
	r, inexact, err := record(document)
	switch object := rawjson.Kind(document) == '{'; {
	case (door != nil || !object) && err == nil && len(document) > 0:
		t.Fatalf("the door refuses and the rules do not: %q: %v", document, door)
	case door == nil && object && err != nil && !strings.Contains(err.Error(), errTooMany.Error()):
		t.Fatalf("the rules refuse and the door does not: %q: %v", document, err)
	case err != nil || len(document) == 0:
		return false
	}
	server := json.NewDecoder(bytes.NewReader(document))
	server.UseNumber()
	var theirs any
	if err := server.Decode(&theirs); err != nil {
		t.Fatalf("a server cannot read %q: %v", document, err)
	}
	lost := false
	if !same(r, theirs, &lost) {
		t.Fatalf("%q: the rules see %s", document, r)
	}
	if lost != inexact {
		t.Fatalf("%q: inexact is %t, and is %t", document, inexact, lost)
	}
	return true
}

// same compares a value of Cedar with one of encoding/json; lost becomes true
// where Cedar cannot hold it.
func same(v types.Value, theirs any, lost *bool) bool {
	switch theirs := theirs.(type) {
	case nil:
		return v.Equal(jsonNull)
	case bool:
		return v.Equal(types.Boolean(theirs))
	case string:
		return v.Equal(types.String(theirs))
	case json.Number:
		exact, ok := new(big.Rat), len(theirs) < 50
		if ok {
			exact, ok = exact.SetString(string(theirs))
		}
		if ok && exact.IsInt() && exact.Num().IsInt64() {
			return v.Equal(types.Long(exact.Num().Int64()))
		}
		if n, isLong := v.(types.Long); isLong {
			return !ok && n == 0 // zero, in a spelling that is too long for us
		}
		*lost = true
		return v.Equal(types.String(theirs))
	case []any:
		set, ok := v.(types.Set)
		if !ok {
			return false
		}
		found := 0
		for element := range set.All() {
			for _, each := range theirs {
				var elsewhere bool
				if same(element, each, &elsewhere) {
					*lost = *lost || elsewhere
					found++
					break
				}
			}
		}
		for _, each := range theirs {
			matched, inside := false, false
			for element := range set.All() {
				if same(element, each, &inside) {
					matched = true
					break
				}
				inside = false
			}
			if *lost = *lost || inside; !matched {
				return false
			}
		}
		*lost = *lost || set.Len() != len(theirs)
		return found == set.Len()
	case map[string]any:
		members, ok := v.(types.Record)
		if !ok || members.Len() != len(theirs) {
			return false
		}
		for name, value := range theirs {
			if ours, ok := members.Get(types.String(name)); !ok || !same(ours, value, lost) {
				return false
			}
		}
		return true
	}
	return false
}

// object returns a random JSON object with the spellings that readers disagree
// about.
func object(random *rand.Rand, depth int) string {
	var members []string
	used := map[string]bool{}
	for range random.IntN(5) {
		name := pick(random, "a", "A", "path", "\u00e9", "", "__proto__", "__entity", "a\u0000", "\U0001f600", "constructor", "1")
		if used[name] {
			continue
		}
		used[name] = true
		members = append(members, space(random)+spell(random, name)+space(random)+":"+space(random)+value(random, depth-1)+space(random))
	}
	return space(random) + "{" + strings.Join(members, ",") + "}" + space(random)
}

func value(random *rand.Rand, depth int) string {
	kinds := 7
	if depth <= 0 {
		kinds = 5
	}
	switch random.IntN(kinds) {
	case 0:
		return pick(random, "null", "true", "false")
	case 1, 2:
		return number(random)
	case 3, 4:
		return spell(random, pick(random, "", "x", "/etc/passwd", "1", "1.5", "\u2028", "a\"b\\c", "\U0001f600", "\u0000", "\ufeff", "null"))
	case 5:
		var elements []string
		for range random.IntN(4) {
			elements = append(elements, value(random, depth-1))
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	return object(random, depth)
}

func number(random *rand.Rand) string {
	text := pick(random, "", "-") + pick(random, "0", "1", "12", "100", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616")
	text += pick(random, "", "", ".0", ".5", ".250", ".000000000000000000001")
	return text + pick(random, "", "", "e0", "E3", "e+2", "e-2", "e18", "e-18", "e400", "e-400")
}

// spell writes a string with some of its characters escaped.
func spell(random *rand.Rand, text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch escape := random.IntN(3) == 0; {
		case r > 0xffff && escape:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		case r == '/' && escape:
			b.WriteString(`\/`)
		case r < ' ' || r == '"' || r == '\\' || escape && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// disturb makes of a document one that readers may disagree about.
func disturb(random *rand.Rand, document []byte) []byte {
	switch random.IntN(6) {
	case 0: // the same member again, otherwise spelled
		return append([]byte(`{"x":1,`+pick(random, `"\u0078"`, `"x"`)+`:2,"rest":`), append(document, '}')...)
	case 1:
		return append(document, pick(random, "{}", " null", "]", "\x00", "//")...)
	case 2:
		return document[:random.IntN(len(document)+1)]
	case 3: // one byte of it
		if len(document) > 0 {
			document[random.IntN(len(document))] = byte(random.IntN(256))
		}
		return document
	case 4:
		return append([]byte(pick(random, "\ufeff", "'", "[", "NaN", "+")), document...)
	}
	return append([]byte(`{"x":`+pick(random, `"\ud800"`, "\"\xff\"", "01", "1.", ".5", "+1", "0x10", "NaN", "'x'", "\"\n\"", `"\x"`)+`,"rest":`), append(document, '}')...)
}

func space(random *rand.Rand) string { return pick(random, "", "", " ", "\n\t", "\r") }

func pick(random *rand.Rand, of ...string) string { return of[random.IntN(len(of))] }

// An argument whose name differs in case alone from the one that a rule looks for is judged
// as if it was that, at any depth, whichever of the two its server has.
func TestArgumentsInAnotherCase(t *testing.T) {
	denies := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}, {Name: "etc", Deny: []string{"*"}, When: When{Arguments: []Argument{{"path", []string{"/etc*"}}}}}}})
	asks := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}, {Ask: []string{"*"}, When: When{Arguments: []Argument{{"Path", []string{"/etc*"}}}}}}})
	deep := must(t, Config{File: cedarFile(t, `permit (principal, action, resource);
forbid (principal, action, resource) when { context.arguments has options && context.arguments.options has force && context.arguments.options.force };
forbid (principal, action, resource) when { context.arguments has list && context.arguments.list.contains({deep: true}) };
forbid (principal, action, resource) when { context.arguments has Options && context.arguments has url };`)})
	for _, tt := range []struct {
		rules     *Policy
		arguments string
		want      Effect
	}{
		{denies, `{"path":"/etc/passwd"}`, Deny},
		{denies, `{"Path":"/etc/passwd"}`, Deny},
		{denies, `{"PATH":"/etc/passwd","other":1}`, Deny},
		{denies, `{"PATH":"/home/a"}`, Allow}, // a server may call it so
		{denies, `{"Path":7}`, Deny},          // what is no text cannot be compared
		{denies, `{}`, Allow},
		{asks, `{"path":"/etc/passwd"}`, Ask},
		{asks, `{"path":"/home"}`, Allow},
		{deep, `{"options":{"force":false}}`, Allow},
		{deep, `{"options":{"Force":true}}`, Deny},
		{deep, `{"OPTIONS":{"FORCE":true}}`, Deny},
		{deep, `{"options":{"force":false,"Force":true}}`, Deny},
		{deep, `{"options":{"map":{"a":1,"A":2}}}`, Allow},
		{deep, `{"list":[{"Deep":true}]}`, Deny},
		{deep, `{"list":[{"deep":false}]}`, Allow},
		{deep, `{"OPTIONS":{},"URL":"x"}`, Deny}, // two rules spell it in two ways
	} {
		r := Request{Caller: free(caller.Caller{ID: "k"}), Action: Call, Tool: tool("files", "read", ""), Arguments: []byte(tt.arguments)}
		if v := tt.rules.Decide(r); v.Effect != tt.want || !v.Depends {
			t.Errorf("%s: %s %s, depends: %t", tt.arguments, v.Effect, v.Reason, v.Depends)
		}
	}
}

// Whoever asks with an argument in another case is asked about by those who answer what is
// asked of either reading.
func TestApproversOfArgumentsInAnotherCase(t *testing.T) {
	etc := When{Arguments: []Argument{{"path", []string{"/etc*"}}}}
	for _, tt := range []struct {
		anybody, ofEtc []string
		arguments      string
		want           Effect
		approvers      []string
	}{
		{[]string{"ada", "bob"}, []string{"ada"}, `{"path":"/etc/passwd"}`, Ask, []string{"ada"}},
		{[]string{"ada", "bob"}, []string{"ada"}, `{"Path":"/etc/passwd"}`, Ask, []string{"ada"}},
		{[]string{"ada", "bob"}, []string{"ada"}, `{"Path":"/home"}`, Ask, []string{"ada", "bob"}},
		{nil, []string{"ada"}, `{"Path":"/etc/passwd"}`, Ask, []string{"ada"}},
		{[]string{"bob"}, nil, `{"Path":"/etc/passwd"}`, Ask, []string{"bob"}},
		{[]string{"bob"}, []string{"ada"}, `{"path":"/etc/passwd"}`, Deny, nil},
		{[]string{"bob"}, []string{"ada"}, `{"Path":"/etc/passwd"}`, Deny, nil},
	} {
		rules := must(t, Config{Rules: []Rule{
			{Ask: []string{"*"}, Approvers: tt.anybody},
			{Ask: []string{"*"}, Approvers: tt.ofEtc, When: etc},
		}})
		v := rules.Decide(Request{Caller: alice, Action: Call, Tool: tool("files", "write", ""), Arguments: []byte(tt.arguments)})
		if v.Effect != tt.want || !slices.Equal(v.Approvers, tt.approvers) || !v.Depends {
			t.Errorf("%s, %v and %v: %s by %v, depends: %t", tt.arguments, tt.anybody, tt.ofEtc, v.Effect, v.Approvers, v.Depends)
		}
	}
}

// Where rules look at arguments, none that a server may take for the one that was
// looked at goes with it. Deeper down, and where nobody looks, names are the server's.
func TestTwins(t *testing.T) {
	looks := must(t, Config{Rules: []Rule{{Allow: []string{"*"}, When: When{Arguments: []Argument{{"path", []string{"/pub/*"}}}}}}})
	blind := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}}})
	for _, tt := range []struct {
		arguments    string
		looks, blind Effect
	}{
		{`{"path":"/pub/a"}`, Allow, Allow},
		{`{"path":"/pub/a","Path":"/etc"}`, Deny, Allow},
		{`{"PATH":"/etc","path":"/pub/a"}`, Deny, Allow},
		{`{"path":"/pub/a","mask":1,"ma\u017fk":2}`, Deny, Allow},
		{`{"path":"/pub/a","\u212a":1,"k":2}`, Deny, Allow},
		{`{"path":"/pub/a","map":{"a":1,"A":2}}`, Allow, Allow},
		{`{"Path":"/pub/a"}`, Deny, Allow},
	} {
		r := Request{Caller: free(caller.Caller{ID: "k"}), Action: Call, Tool: tool("files", "read", ""), Arguments: []byte(tt.arguments)}
		if a, b := looks.Decide(r).Effect, blind.Decide(r).Effect; a != tt.looks || b != tt.blind {
			t.Errorf("%s: %s and %s, want %s and %s", tt.arguments, a, b, tt.looks, tt.blind)
		}
	}
}

// TestPrototypes: what stands in a member of the name __proto__ a server in JavaScript may find
// as an argument, at any depth; where no rule looks at arguments, that is nobody's concern.
func TestPrototypes(t *testing.T) {
	looks := must(t, Config{Rules: []Rule{
		{Allow: []string{"*"}},
		{Deny: []string{"*"}, When: When{Arguments: []Argument{{"task", []string{"drop"}}}}},
	}})
	blind := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}}})
	for _, tt := range []struct {
		arguments string
		looks     Effect
	}{
		{`{"__proto__":{"task":"drop"}}`, Deny},
		{`{"\u005f_proto__":{"task":"drop"}}`, Deny},
		{`{"task":"list","in":[{"__proto__":{"task":"drop"}}]}`, Deny},
		{`{"__proto__":{"__proto__":{"task":"drop"}}}`, Deny},
		{`{"__proto__":"drop","task":"list"}`, Allow}, // is no other object's
		{`{"proto":{"task":"drop"}}`, Allow},
		{`{"constructor":{"task":"drop"}}`, Allow},
	} {
		r := Request{Caller: free(caller.Caller{ID: "k"}), Action: Call, Tool: tool("jobs", "run", ""), Arguments: []byte(tt.arguments)}
		if a, b := looks.Decide(r).Effect, blind.Decide(r).Effect; a != tt.looks || b != Allow {
			t.Errorf("%s: %s and %s, want %s", tt.arguments, a, b, tt.looks)
		}
	}
}
