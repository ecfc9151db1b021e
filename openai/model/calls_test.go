package model

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// assembled is what came of the deltas of one stream: a line for each call, with
// made-up ids as *.
func assembled(t *testing.T, deltas ...string) []string {
	t.Helper()
	var a assembler
	for _, d := range deltas {
		if err := a.add([]byte(d)); err != nil {
			t.Fatalf("%s: %v", d, err)
		}
	}
	var calls []string
	for _, c := range a.calls {
		id := c.ID
		if c.minted {
			id = "*"
		}
		calls = append(calls, strings.TrimSuffix(id+" "+c.Name+" "+string(c.Arguments)+" "+string(c.extra.result().Bytes()), " {}"))
	}
	return calls
}

// Each case is the way in which some provider or engine was seen to stream calls.
func TestAssemble(t *testing.T) {
	for _, tc := range []struct {
		name   string
		deltas []string
		want   []string
	}{
		{"as documented", []string{
			`{"index":0,"id":"x","type":"function","function":{"name":"look","arguments":""}}`,
			`{"index":0,"function":{"arguments":"{\"at\":"}}`,
			`{"index":0,"function":{"arguments":"7}"}}`,
		}, []string{`x look {"at":7}`}},
		{"interleaved", []string{
			`{"index":0,"id":"x","function":{"name":"look","arguments":"{"}}`,
			`{"index":1,"id":"y","function":{"name":"hear","arguments":"{\"b\""}}`,
			`{"index":0,"function":{"arguments":"\"a\":1}"}}`,
			`{"index":1,"function":{"arguments":":2}"}}`,
		}, []string{`x look {"a":1}`, `y hear {"b":2}`}},
		{"whole in one (Groq, Mistral, Ollama)", []string{
			`{"index":0,"id":"x","type":"function","function":{"name":"look","arguments":"{\"at\":7}"}}`,
		}, []string{`x look {"at":7}`}},
		{"arguments begin at once (llama.cpp)", []string{
			`{"index":0,"id":"x","type":"function","function":{"name":"look","arguments":"{"}}`,
			`{"index":0,"function":{"arguments":"\"at\":7}"}}`,
		}, []string{`x look {"at":7}`}},
		{"null for what does not change (Venice)", []string{
			`{"index":0,"id":"x","type":"function","function":{"name":"look","arguments":""}}`,
			`{"index":0,"id":null,"type":"function","function":{"name":null,"arguments":"{}"}}`,
		}, []string{`x look {}`}},
		{"no index, a signature (Gemini)", []string{
			`{"id":"x","type":"function","function":{"name":"look","arguments":"{\"at\":7}"},"extra_content":{"google":{"thought_signature":"s"}}}`,
			`{"id":"y","type":"function","function":{"name":"look","arguments":"{\"at\":8}"}}`,
		}, []string{`x look {"at":7} {"extra_content":{"google":{"thought_signature":"s"}}}`, `y look {"at":8}`}},
		{"empty ids, all under index 0 (Gemini)", []string{
			`{"index":0,"id":"","function":{"name":"look","arguments":"{\"at\":7}"}}`,
			`{"index":0,"id":"","function":{"name":"hear","arguments":"{}"}}`,
			`{"index":0,"id":"","function":{"name":"look","arguments":"{\"at\":8}"}}`,
		}, []string{`* look {"at":7}`, `* hear {}`, `* look {"at":8}`}},
		{"the second call's arguments under the first one's index", []string{
			`{"index":0,"id":"x","type":"function","function":{"name":"find","arguments":""}}`,
			`{"index":0,"function":{"name":"","arguments":"{\"q\":\"a\"}"}}`,
			`{"index":0,"function":{"name":"","arguments":"{\"q\":"}}`,
			`{"index":0,"function":{"name":"","arguments":"\"b\"}"}}`,
		}, []string{`x find {"q":"a"}`, `* find {"q":"b"}`}},
		{"placeholder", []string{
			`{"index":0,"id":"x","function":{"name":"find","arguments":"{}"}}`,
			`{"index":0,"function":{"arguments":" {\"q\":1}"}}`,
		}, []string{`x find  {"q":1}`}},
		{"braces in strings are no end", []string{
			`{"index":0,"id":"x","function":{"name":"find","arguments":"{\"q\":\"}"}}`,
			`{"index":0,"function":{"arguments":"{\"}"}}`,
		}, []string{`x find {"q":"}{"}`}},
		{"white space behind complete arguments", []string{
			`{"index":0,"id":"x","function":{"name":"find","arguments":"{\"q\":1}"}}`,
			`{"index":0,"function":{"arguments":"\n"}}`,
		}, []string{"x find {\"q\":1}\n"}},
		{"an object for a string (TGI)", []string{
			`{"index":0,"id":"x","function":{"name":"find","arguments":{"q": 1.0}}}`,
		}, []string{`x find {"q": 1.0}`}},
		{"null arguments", []string{`{"index":0,"id":"x","function":{"name":"find","arguments":null}}`}, []string{`x find `}},
		{"no arguments", []string{`{"index":0,"id":"x","function":{"name":"find"}}`}, []string{`x find `}},
		{"the id comes late", []string{
			`{"index":0,"function":{"name":"find","arguments":"{"}}`,
			`{"index":0,"id":"x","function":{"arguments":"}"}}`,
		}, []string{`* find {}`}},
		{"another id for each piece (old vLLM)", []string{
			`{"index":0,"id":"x","function":{"name":"find"}}`,
			`{"index":0,"id":"y","function":{"arguments":"{\"q\""}}`,
			`{"index":0,"id":"z","function":{"arguments":":1}"}}`,
		}, []string{`x find {"q":1}`}},
		{"the id leads, whatever the index says", []string{
			`{"index":0,"id":"x","function":{"name":"find","arguments":"{"}}`,
			`{"index":1,"id":"x","function":{"arguments":"}"}}`,
		}, []string{`x find {}`}},
		{"one id for all calls (GLM, DeepSeek)", []string{
			`{"index":0,"id":"x","function":{"name":"now","arguments":""}}`,
			`{"index":1,"id":"x","function":{"name":"look","arguments":""}}`,
			`{"index":1,"function":{"arguments":"{\"at\":7}"}}`,
			`{"index":2,"id":"x","function":{"name":"hear","arguments":"{}"}}`,
			`{"index":3,"id":"x","function":{"name":"find","arguments":"{\"q\":"}}`,
			`{"index":3,"id":"x","function":{"arguments":"8}"}}`,
		}, []string{`x now `, `x look {"at":7}`, `x hear {}`, `x find {"q":8}`}},
		{"one id and one index for all calls", []string{
			`{"index":0,"id":"x","function":{"name":"look","arguments":"{\"at\":7}"}}`,
			`{"index":0,"id":"x","function":{"name":"hear","arguments":""}}`,
			`{"index":0,"id":"x","function":{"arguments":"{\"b\":8}"}}`,
		}, []string{`x look {"at":7}`, `x hear {"b":8}`}},
		{"a name in pieces", []string{
			`{"index":0,"id":"x","function":{"name":"find_"}}`,
			`{"index":0,"function":{"name":"me"}}`,
			`{"index":0,"function":{"arguments":"{}"}}`,
		}, []string{`x find_me {}`}},
		{"a name again and again", []string{
			`{"index":0,"id":"x","function":{"name":"find","arguments":"{"}}`,
			`{"index":0,"id":"x","function":{"name":"find","arguments":"}"}}`,
		}, []string{`x find {}`}},
		{"indexes with gaps", []string{
			`{"index":3,"id":"x","function":{"name":"find","arguments":"{}"}}`,
			`{"index":1,"id":"y","function":{"name":"find","arguments":"{}"}}`,
		}, []string{`x find {}`, `y find {}`}},
		{"custom", []string{
			`{"index":0,"id":"x","type":"custom","custom":{"name":"sql","input":"select "}}`,
			`{"index":0,"custom":{"input":"1"}}`,
		}, []string{`x sql select 1`}},
		{"unknown members", []string{
			`{"index":0,"id":"x","function":{"name":"find","arguments":"{}","strict":true},"big":9007199254740993}`,
			`{"index":0,"function":{"arguments":"","parsed":null},"more":{"b":1}}`,
		}, []string{`x find {} {"function":{"strict":true,"parsed":null},"big":9007199254740993,"more":{"b":1}}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, assembled(t, tc.deltas...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Ids that we make pass the strictest rule of all: 40 characters, letters,
// digits, dash and underscore.
func TestMintedIDs(t *testing.T) {
	fits := regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	seen := map[string]bool{}
	for range 100 {
		for _, id := range []string{mintID("call_"), mintID("chatcmpl-")} {
			if !fits.MatchString(id) || seen[id] {
				t.Errorf("id %q", id)
			}
			seen[id] = true
		}
	}
}

func TestMerge(t *testing.T) {
	for _, tc := range []struct{ name, deltas, want string }{
		{"text appends", `{"content":"a\"b"} {"content":"\u00e9"} {"content":""}`, `{"content":"a\"b\u00e9"}`},
		{"null is nothing", `{"content":null,"refusal":"no"} {"content":"a","refusal":null}`, `{"content":"a","refusal":"no"}`},
		{"the role does not", `{"role":"assistant"} {"role":"assistant"}`, `{"role":"assistant"}`},
		{"reasoning appends", `{"reasoning_content":"a","reasoning":"x"} {"reasoning_content":"b","reasoning":"y"}`, `{"reasoning_content":"ab","reasoning":"xy"}`},
		{"other text is replaced", `{"mood":"a"} {"mood":"b"}`, `{"mood":"b"}`},
		{"numbers are replaced", `{"n":1} {"n":2.0}`, `{"n":2.0}`},
		{"arrays append", `{"l":[1]} {"l":[2,[3]]}`, `{"l":[1,2,[3]]}`},
		{"by index", `{"l":[{"index":0,"text":"a","k":1}]} {"l":[{"index":1,"text":"x"},{"index":0,"text":"b","k":2}]}`, `{"l":[{"index":0,"text":"ab","k":2},{"index":1,"text":"x"}]}`},
		{"objects merge", `{"o":{"a":{"text":"x"},"b":1}} {"o":{"a":{"text":"y"},"c":2}}`, `{"o":{"a":{"text":"xy"},"b":1,"c":2}}`},
		{"kinds that differ", `{"o":{"a":1}} {"o":[1]}`, `{"o":[1]}`},
		{"big numbers", `{"o":{"a":9007199254740993}} {"o":{"b":12345678901234567890}}`, `{"o":{"a":9007199254740993,"b":12345678901234567890}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var into growingObject
			decoder := json.NewDecoder(strings.NewReader(tc.deltas))
			buf := make([]byte, 0, 1024)
			for {
				var raw json.RawMessage
				if err := decoder.Decode(&raw); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				// As in a stream, the next delta overwrites the last one.
				buf = append(buf[:0], raw...)
				delta, err := rawjson.ParseObject(buf)
				if err != nil {
					t.Fatal(err)
				}
				into.merge(delta)
			}
			clear(buf[:cap(buf)])
			if got := string(into.result().Bytes()); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAddUsage(t *testing.T) {
	for _, tc := range []struct{ a, b, want string }{
		{``, ``, ``},
		{`{"x":1}`, ``, `{"x":1}`},
		{`null`, `{"x":1}`, `{"x":1}`},
		{`{"x":1}`, `null`, `{"x":1}`},
		{`{"prompt_tokens":10,"total_tokens":12}`, `{"prompt_tokens":3,"total_tokens":4}`, `{"prompt_tokens":13,"total_tokens":16}`},
		{`{"d":{"cached_tokens":1,"deep":{"x":1}}}`, `{"d":{"cached_tokens":2,"deep":{"x":2,"y":3}}}`, `{"d":{"cached_tokens":3,"deep":{"x":3,"y":3}}}`},
		{`{"cost":0.25}`, `{"cost":0.5}`, `{"cost":0.75}`},
		{`{"big":9007199254740993}`, `{"big":9007199254740993}`, `{"big":18014398509481986}`},
		{`{"huge":99999999999999999999}`, `{"huge":1}`, `{"huge":100000000000000000000}`},
		{`{"tier":"a","flag":true,"l":[1]}`, `{"tier":"b","flag":false,"l":[2]}`, `{"tier":"b","flag":false,"l":[2]}`},
		{`{"d":null}`, `{"d":{"x":1}}`, `{"d":{"x":1}}`},
		{`{"d":{"x":1}}`, `{"d":null}`, `{"d":{"x":1}}`},
		{`{"x":1}`, `{"y":2}`, `{"x":1,"y":2}`},
	} {
		if got := string(AddUsage(json.RawMessage(tc.a), json.RawMessage(tc.b))); got != tc.want {
			t.Errorf("%s + %s = %s, want %s", tc.a, tc.b, got, tc.want)
		}
	}
	long := json.RawMessage(strings.Repeat("9", 4<<20))
	if got := AddUsage(long, long); string(got) != string(long) { // added exactly they would take minutes
		t.Errorf("two long numbers are one of %d bytes", len(got))
	}
}
