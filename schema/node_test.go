package schema

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseWritesBackWhatItRead(t *testing.T) {
	for _, in := range []string{
		`{}`, `[]`, ` {"b" : 1.0, "a": [ 1e5, -0, 9007199254740993 ] } `, `"\u00e9\/\"\\"`, `{"\u0061":"\\\\"}`,
		`[true,false,null,"",{"x":{}}]`, `-1.50E+10`, `{"a":"x\"y","b":["\"","\\\""]}`,
	} {
		n, err := Parse([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := string(n.Clone().Bytes()); got != strings.TrimSpace(in) {
			t.Errorf("wrote %s, read %s", got, in)
		}
	}
}

func TestChangesLeaveTheRestAlone(t *testing.T) {
	n, err := Parse([]byte(`{"z": {"k" : [1.0, 2] }, "same": { "a" : 1 }, "y":{ "n": 1e2, "d" :1}, "\u0078": "\u0061"}`))
	if err != nil {
		t.Fatal(err)
	}
	c := n.Clone()
	c.Get("y").Delete("d")
	c.Get("y").Set("e", NewArray(NewString("\"<"), NewBool(true), NewNull(), NewNumber("7")))
	c.Rename("x", "w")
	c.Get("z").Get("k").Items()[1].Become(n.Get("y").Get("d"))
	want := `{"z":{"k":[1.0,1]},"same":{ "a" : 1 },"y":{"n":1e2,"e":["\"<",true,null,7]},"w":"\u0061"}`
	if got := string(c.Bytes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !n.Get("y").Has("d") || n.Has("w") {
		t.Error("a change of a clone reached the original")
	}
}

// TestNodeInAStruct has encoding/json write and read a tree, which it did as {}.
func TestNodeInAStruct(t *testing.T) {
	type tool struct {
		Name   string `json:"name"`
		Schema *Node  `json:"schema"`
		Zero   Node   `json:"zero"`
		None   *Node  `json:"none"`
	}
	n, err := Parse([]byte(`{ "z": [9007199254740993, 1.0], "a": "<" }`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(&tool{Name: "t", Schema: n})
	if want := `{"name":"t","schema":{"z":[9007199254740993,1.0],"a":"\u003c"},"zero":null,"none":null}`; string(b) != want || err != nil {
		t.Errorf("wrote %s, %v; want %s", b, err, want)
	}
	var back tool
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	clear(b) // the tree has bytes of its own
	if want := `{"z":[9007199254740993,1.0],"a":"\u003c"}`; !Equal(back.Schema, n) || string(back.Schema.Bytes()) != want || back.None != nil {
		t.Errorf("read %s, want %s", back.Schema.Bytes(), want)
	}
	if err := json.Unmarshal([]byte(`{"schema":{"a":1,"a":2}}`), &back); err == nil {
		t.Error("a name twice was read")
	}
	if _, err := json.Marshal(NewNumber("one")); err == nil {
		t.Error("what is no number was written")
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		in, reason            string
		incomplete, duplicate bool
	}{
		{in: `{"a":1,"a":2}`, reason: "duplicate", duplicate: true},
		{in: `{"a":{"b":1,"\u0062":2}}`, reason: "/a", duplicate: true},
		{in: `{"a":1} {}`, reason: "more after"},
		{in: `{"a":`, reason: "ends before", incomplete: true},
		{in: `{"a":"x`, reason: "ends before", incomplete: true},
		{in: ``, reason: "ends before", incomplete: true},
		{in: "\"\xff\"", reason: "UTF-8"},
		{in: `{a:1}`, reason: "byte 1"},
		{in: `[1e999999999]`, reason: "out of range"},
		{in: `1e1001`, reason: "out of range"},
		{in: strings.Repeat("[", 600) + strings.Repeat("]", 600), reason: "deeper"},
	} {
		_, err := Parse([]byte(tc.in))
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok || !strings.Contains(err.Error(), tc.reason) || e.Incomplete != tc.incomplete || e.Duplicate != tc.duplicate {
			t.Errorf("%.40q: %v (%+v)", tc.in, err, e)
		}
	}
}

func TestValidate(t *testing.T) {
	v := NewValidator([]byte(`{"type":"object","properties":{
		"a":{"type":["integer","null"]},"m":{"enum":["x",2]},"u":{"anyOf":[{"type":"string"},{"type":"number"}]},
		"p":{"type":"string","pattern":"^(?!x)"},"big":{"type":"integer","maximum":9007199254740993}},
		"required":["a","m"],"additionalProperties":false}`))
	for _, tc := range []struct{ value, want string }{
		{`{"a":null,"m":2.0}`, ""},
		{`{"m":"x"}`, "/a is missing: expected integer or null"},
		{`{"a":"1"}`, "/a: expected integer or null; /m is missing: expected one of 'x', 2"},
		{`{"a":1,"m":"y","z":1}`, "/m: expected one of 'x', 2; /z: expected no member of this name"},
		{`{"a":1,"m":2,"u":[]}`, "/u: expected number; /u: expected string"},
		{`{"a":1,"m":2,"p":"xx"}`, "/p: expected a string that matches ^(?!x)"},
		{`{"a":1,"m":2,"p":"yx"}`, ""},
		{`{"a":1,"m":2,"big":9007199254740994}`, "/big: expected a number of at most 9007199254740993"},
		{`[]`, "the value: expected object"},
	} {
		var got []string
		for _, violation := range v.Validate([]byte(tc.value)) {
			got = append(got, violation.String())
		}
		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %q, want %q", tc.value, got, tc.want)
		}
	}
	if u := v.Unchecked(); len(u) != 0 {
		t.Errorf("Unchecked() = %q", u)
	}
}

// TestMissingSaysTheDefault: what is required is not filled in, so whoever left it out
// because it has a default is told what to send.
func TestMissingSaysTheDefault(t *testing.T) {
	v := NewValidator([]byte(`{"properties":{
		"level":{"enum":["low","high"],"default":"low"},"all":{"type":"boolean","default":false},"page":{"type":"integer","default":1},
		"none":{"type":["string","null"],"default":null},"list":{"type":"array","default":[1]},"any":true},
		"required":["level","all","page","none","list","any","undeclared"]}`))
	want := []string{
		"/all is missing: expected boolean (default: false)", "/any is missing: expected a value",
		"/level is missing: expected one of 'low', 'high' (default: 'low')", "/list is missing: expected array",
		"/none is missing: expected string or null (default: null)", "/page is missing: expected integer (default: 1)",
		"/undeclared is missing: expected a value",
	}
	var got []string
	for _, violation := range v.Validate([]byte(`{}`)) {
		got = append(got, violation.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestValidatorFetchesNothing(t *testing.T) {
	for _, ref := range []string{"http://127.0.0.1:1/x", "file:///etc/passwd", "other.json"} {
		v := NewValidator([]byte(`{"properties":{"a":{"$ref":"` + ref + `"}}}`))
		if len(v.Validate([]byte(`{"a":1}`))) != 0 || len(v.Unchecked()) != 1 {
			t.Errorf("$ref %s: unchecked %q", ref, v.Unchecked())
		}
	}
}
