package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/schema"
)

type nested struct {
	Street string `json:"street"`
	Zip    string `json:"zip,omitempty" pattern:"^[0-9]{5}$"`
}

type audited struct {
	At time.Time `json:"at" desc:"When"`
}

type person struct {
	Name    string   `json:"name"`
	Friends []person `json:"friends,omitempty" desc:"People they know"`
}

type forest struct {
	Roots map[string]*node `json:"roots"`
}

type node struct {
	Left, Right *node  `json:",omitempty"`
	Tag         string `json:"tag"`
}

type chain []link

type link struct {
	Next chain `json:"next,omitempty" max:"2"`
}

type secret int

func (secret) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

type either struct{}

func (either) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"anyOf":[{"type":"string"},{"type":"integer"}]}`)
}

type owned struct {
	A either `json:"a" title:"A" desc:"Either" default:"7" example:"8"`
	B either `json:"b" title:"B" nullable:"true" default:"\"x\""`
	C either `json:"c"`
}

// order is the argument struct with one of everything.
type order struct {
	ID      string            `json:"id" desc:"Order id" min:"1" max:"20" example:"A-1"`
	Kind    string            `json:"kind" enum:"fast, slow" default:"slow" title:"Kind of delivery"`
	Count   int               `json:"count" min:"1" max:"50" default:"20"`
	Ratio   float64           `json:"ratio,omitempty" above:"0" below:"1"`
	Step    int               `json:"step,omitempty" multiple:"5"`
	Small   uint8             `json:"small,omitempty"`
	Gift    *bool             `json:"gift"`
	Tags    []string          `json:"tags,omitempty" enum:"a,b" min:"1" unique:"true"`
	Home    nested            `json:"home"`
	Work    *nested           `json:"work,omitempty" desc:"Place of work"`
	Labels  map[string]string `json:"labels,omitempty" max:"3"`
	Due     time.Time         `json:"due,omitzero"`
	Mail    string            `json:"mail,omitempty" format:"email"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Any     any               `json:"any,omitempty"`
	Amount  json.Number       `json:"amount,omitempty"`
	Blob    []byte            `json:"blob,omitempty"`
	Pair    [2]int            `json:"pair,omitempty"`
	Custom  either            `json:"custom,omitzero" desc:"Either"`
	Note    *string           `json:"note" nullable:"true"`
	Region  string            `json:"region,omitempty" header:"Region"`
	hidden  string            //lint:ignore U1000 fields like this one must not show
	Ignored string            `json:"-"`
	audited
}

func TestInputSchema(t *testing.T) {
	got, err := InputSchema[order]()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"id":{"type":"string","description":"Order id","minLength":1,"maxLength":20,"examples":["A-1"]},` +
		`"kind":{"type":"string","title":"Kind of delivery","enum":["fast","slow"],"default":"slow"},` +
		`"count":{"type":"integer","minimum":1,"maximum":50,"default":20},` +
		`"ratio":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},` +
		`"step":{"type":"integer","multipleOf":5},` +
		`"small":{"type":"integer","minimum":0,"maximum":255},` +
		`"gift":{"type":"boolean"},` +
		`"tags":{"type":"array","minItems":1,"uniqueItems":true,"items":{"type":"string","enum":["a","b"]}},` +
		`"home":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},` +
		`"required":["street"],"additionalProperties":false},` +
		`"work":{"type":"object","description":"Place of work","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},` +
		`"required":["street"],"additionalProperties":false},` +
		`"labels":{"type":"object","maxProperties":3,"additionalProperties":{"type":"string"}},` +
		`"due":{"type":"string","format":"date-time"},` +
		`"mail":{"type":"string","format":"email"},` +
		`"raw":{},"any":{},"amount":{"type":"number"},` +
		`"blob":{"type":"string","contentEncoding":"base64"},` +
		`"pair":{"type":"array","minItems":2,"maxItems":2,"items":{"type":"integer"}},` +
		`"custom":{"anyOf":[{"type":"string"},{"type":"integer"}],"description":"Either"},` +
		`"note":{"type":["string","null"]},` +
		`"region":{"type":"string","x-mcp-header":"Region"},` +
		`"at":{"type":"string","description":"When","format":"date-time"}},` +
		`"required":["id","home","at"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, refusal := schema.Admit(got); refusal != nil {
		t.Errorf("the schema is not admitted: %v", refusal)
	}
}

func TestOutputSchema(t *testing.T) {
	type result struct {
		Must  *int    `json:"must"`
		May   *int    `json:"may,omitempty"`
		Where *nested `json:"where"`
		List  []*int  `json:"list"`
	}
	for name, tt := range map[string]struct {
		got  func() (json.RawMessage, error)
		want string
	}{
		"pointers": {OutputSchema[result], `{"type":"object","properties":{"must":{"type":["integer","null"]},"may":{"type":"integer"},` +
			`"where":{"type":["object","null"],"properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["street"]},` +
			`"list":{"type":"array","items":{"type":["integer","null"]}}},"required":["must","where","list"]}`},
		"recursive root": {OutputSchema[person], `{"type":"object","properties":{"name":{"type":"string"},` +
			`"friends":{"type":"array","description":"People they know","items":{"$ref":"#/$defs/person"}}},"required":["name"],` +
			`"$defs":{"person":{"type":"object","properties":{"name":{"type":"string"},` +
			`"friends":{"type":"array","description":"People they know","items":{"$ref":"#/$defs/person"}}},"required":["name"]}}}`},
		"recursive below": {OutputSchema[forest], `{"type":"object","properties":{"roots":{"type":"object","additionalProperties":` +
			`{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}}},"required":["roots"],"$defs":{"node":{"type":"object","properties":` +
			`{"Left":{"$ref":"#/$defs/node"},"Right":{"$ref":"#/$defs/node"},"tag":{"type":"string"}},"required":["tag"]}}}`},
		"list of itself": {OutputSchema[struct {
			C []person `json:"c"`
			L chain    `json:"l"`
		}], `{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#/$defs/person"}},` +
			`"l":{"$ref":"#/$defs/chain"}},"required":["c","l"],"$defs":{"person":{"type":"object","properties":{"name":{"type":"string"},` +
			`"friends":{"type":"array","description":"People they know","items":{"$ref":"#/$defs/person"}}},"required":["name"]},` +
			`"chain":{"type":"array","items":{"type":"object","properties":{"next":{"$ref":"#/$defs/chain","maxItems":2}}}}}}`},
		"own schemas": {InputSchema[owned], `{"type":"object","properties":{` +
			`"a":{"anyOf":[{"type":"string"},{"type":"integer"}],"title":"A","description":"Either","default":7,"examples":[8]},` +
			`"b":{"anyOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]},{"type":"null"}],"title":"B","default":"x"},` +
			`"c":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"required":["c"],"additionalProperties":false}`},
		"embedded alone": {OutputSchema[justPoint], `{"required":["X"]}`},
		"embedded, own":  {OutputSchema[ownPoint], `{"required":["X","Z"]}`},
		"map":            {OutputSchema[map[string][]int], `{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tt.got()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, refusal := schema.Admit(got); refusal != nil {
				t.Errorf("the schema is not admitted: %v", refusal)
			}
		})
	}
}

func TestSchemaErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"function":     {failing[struct{ Do func() }](), "struct.Do: type func() has no form in JSON"},
		"map key":      {failing[struct{ M map[int]string }](), "struct.M: a map with keys of type int"},
		"marshaler":    {failing[struct{ S secret }](), "struct.S: toolkit.secret makes its own JSON"},
		"duration":     {failing[struct{ D time.Duration }](), "struct.D: time.Duration is a number of nanoseconds"},
		"interface":    {failing[struct{ E error }](), "struct.E: interface error: its JSON is unknown"},
		"same name":    {sameName(), `struct.B: a second field named "x" in JSON, besides A`},
		"string":       {failing[asString](), `asString.N: the option "string"`},
		"odd name":     {failing[oddName](), `oddName.N: encoding/json takes no name such as "user's" (letters, digits and ASCII punctuation without quotes and backslash), and would read and write "N"`},
		"misspelt":     {failing[misspeltTag](), `misspeltTag.N: tag "description" says nothing here; use desc`},
		"enum":         {failing[badEnum](), `badEnum.N: enum: "two" is not an integer`},
		"default":      {failing[badDefault](), `badDefault.N: default 7 breaks its own rules: the value: expected a number of at most 5`},
		"default type": {failing[badType](), `badType.N: default: "x" is not a number`},
		"bounds":       {failing[badBounds](), "badBounds.N: min 5 is more than max 1"},
		"length":       {failing[badLength](), `badLength.S: min: "-1" is not a length`},
		"pattern":      {failing[badPattern](), "badPattern.S: pattern: error parsing regexp"},
		"misplaced":    {failing[misplaced](), "misplaced.B: min and max mean nothing for bool"},
		"deep":         {failing[struct{ A []struct{ B chan int } }](), "struct.A[].B: type chan int has no form in JSON"},
		"two at once":  {failing[struct{ A, B chan int }](), "struct.B: type chan int"},
		"own JSON":     {failingResult[struct{ N *big.Int }](), "struct.N: big.Int makes its own JSON"},
		"own enum":     {failing[ownEnum](), "ownEnum.E: enum says nothing here; the JSONSchema method of toolkit.either does"},
		"own default":  {failing[ownDefault](), "ownDefault.E: default true breaks its own rules"},
		"embedded":     {failingResult[widerPoint](), "widerPoint: toolkit.widerPoint has the JSONSchema method of toolkit.point, which it embeds and which says nothing of its other fields"},
		"deeper":       {failing[struct{ P struct{ widerPoint } }](), "struct.P: struct { toolkit.widerPoint } has the JSONSchema method of toolkit.point"},
		"by pointer":   {failing[struct{ *point }](), "struct: the JSONSchema method of struct { *toolkit.point } panics for a zero value"},
		"two embedded": {failingResult[twoPoints](), "twoPoints.point: encoding/json writes the fields of what is embedded"},
		"own text":     {failingResult[struct{ N *big.Float }](), "struct.N: big.Float has MarshalText on the pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", tt.err, tt.want)
			}
		})
	}
}

type (
	asString struct {
		N int `json:",string"`
	}
	oddName struct {
		//lint:ignore SA5008 a name that encoding/json does not take is what is tried
		N int `json:"user's"`
	}
	misspeltTag struct {
		N int `description:"x"`
	}
	badEnum struct {
		N int `enum:"1,two"`
	}
	badDefault struct {
		N int `default:"7" max:"5"`
	}
	badType struct {
		N float64 `default:"x"`
	}
	badBounds struct {
		N int `min:"5" max:"1"`
	}
	badLength struct {
		S string `min:"-1"`
	}
	badPattern struct {
		S string `pattern:"("`
	}
	ownEnum struct {
		E []either `enum:"1,2"`
	}
	ownDefault struct {
		E either `default:"true"`
	}
	misplaced struct {
		B bool `min:"1"`
	}
	point      struct{ X int }
	spot       struct{ Y int }
	widerPoint struct {
		point
		Z int
	}
	justPoint struct{ point }
	ownPoint  struct {
		point
		Z int
	}
	twoPoints struct {
		point
		spot
	}
)

func (point) JSONSchema() json.RawMessage    { return json.RawMessage(`{"required":["X"]}`) }
func (spot) JSONSchema() json.RawMessage     { return json.RawMessage(`{"required":["Y"]}`) }
func (ownPoint) JSONSchema() json.RawMessage { return json.RawMessage(`{"required":["X","Z"]}`) }

// sameName surveys a struct that vet would not let us write.
func sameName() error {
	integer := reflect.TypeFor[int]()
	_, err := shapeOf(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: integer, Tag: `json:"x"`}, {Name: "B", Type: integer, Tag: `json:"x"`},
	}), true)
	return err
}

func failing[T any]() error {
	_, err := InputSchema[T]()
	return err
}

func failingResult[T any]() error {
	_, err := OutputSchema[T]()
	return err
}

type (
	hidden struct{ A int }
	// odd has names that encoding/json takes otherwise than one may think.
	odd struct {
		hidden `json:"inner"`
		//lint:ignore SA5008 a field of that name is what is tried
		Dash int `json:"-,"`
		Gone int `json:"-"`
	}
)

// A color is a byte that is a text in JSON, and a shade one whose JSON is its own.
type (
	color uint8
	shade uint8
)

func (c color) MarshalText() ([]byte, error) { return []byte{'a' + byte(c)}, nil }

func (c *color) UnmarshalText(text []byte) error {
	if len(text) != 1 || text[0] < 'a' || text[0] > 'c' {
		return errors.New("a, b or c")
	}
	*c = color(text[0] - 'a')
	return nil
}

func (shade) MarshalJSON() ([]byte, error) { return []byte(`"dark"`), nil }
func (shade) JSONSchema() json.RawMessage  { return json.RawMessage(`{"type":"string"}`) }

// TestTextsOfBytes has a list of texts whose Go type is a byte.
func TestTextsOfBytes(t *testing.T) {
	s := newServer(t, Options{})
	type query struct {
		Colors []color `json:"colors"`
	}
	Add(s, Tool{Name: "get_colors", Description: "x", Hints: reading, Examples: []Example{{"b", `{"colors":["b"]}`}}},
		func(_ context.Context, q query) (query, error) { return q, nil })
	session := dial(t, s, legacy, nil)
	if got := call(t, session, "get_colors", `{"colors":["c","a"]}`); got.data != `{"colors":["c","a"]}` {
		t.Errorf("got %+v", got)
	}
	if got := call(t, session, "get_colors", `{"colors":["c","x"]}`); !got.failed || !strings.Contains(got.text, "colors.1: expected color: a, b or c") {
		t.Errorf("a wrong one: %+v", got)
	}
}

// TestSchemaMeetsEncoding holds that what Go writes fits the schema made for it,
// for values at both ends: everything zero, everything filled.
func TestSchemaMeetsEncoding(t *testing.T) {
	full := forest{Roots: map[string]*node{"a": {Left: &node{Tag: "l"}, Tag: "r"}, "b": nil}}
	friends := person{Name: "A", Friends: []person{{Name: "B"}}}
	for _, value := range []any{forest{}, full, person{}, friends, map[string][]int{"x": nil}, struct{ T []time.Time }{[]time.Time{{}}}, odd{},
		struct {
			B []byte
			L [][]byte
			M map[string][]byte
		}{L: [][]byte{nil}, M: map[string][]byte{"x": nil}},
		struct {
			Colors []color
			Shades []shade
			None   []color
		}{Colors: []color{0, 1}, Shades: []shade{1}}} {
		s, err := shapeOf(reflect.TypeOf(value), false)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		b := binding{out: s}
		if data, err = b.withoutNulls(data); err != nil {
			t.Fatal(err)
		}
		if bad := schema.NewValidator(s.schema(false)).Validate(data); len(bad) > 0 {
			t.Errorf("%s breaks %s: %v", data, s.schema(false), bad)
		}
		n, err := schema.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range n.Members() {
			if s.kind == kindObject && s.field(m.Name) == nil {
				t.Errorf("%s has %q, and %s has not", data, m.Name, s.schema(false))
			}
		}
	}
}
