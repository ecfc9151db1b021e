package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
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
		id := c.id
		if c.minted {
			id = "*"
		}
		calls = append(calls, strings.TrimSuffix(id+" "+c.name+" "+string(c.args)+" "+string(c.object.Bytes()), " {}"))
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
		for _, id := range []string{mintID("call_"), mintID("chatcmpl-"), readID + mintID("")[:22], wroteID + mintID("")[:22]} {
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
			into := &rawjson.Object{}
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
				merge(into, delta)
			}
			clear(buf[:cap(buf)])
			if got := string(into.Bytes()); got != tc.want {
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
		if got := string(addUsage(json.RawMessage(tc.a), json.RawMessage(tc.b))); got != tc.want {
			t.Errorf("%s + %s = %s, want %s", tc.a, tc.b, got, tc.want)
		}
	}
}

// Whatever an upstream streams, the client gets one completion: chunks that are
// JSON with one id, one role, and one finish reason before [DONE], or an error
// and neither.
func FuzzStream(f *testing.F) {
	f.Add([]byte(getStream), true)
	f.Add([]byte(fineStream), true)
	f.Add([]byte(`data: {"choices":[{"delta":{"content":"a","tool_calls":[{"function":{"name":"x","arguments":"{"}}]},"finish_reason":"length"}],"usage":{"a":1}}`+"\n\n"), false)
	f.Add([]byte("data: {\"error\":{\"message\":\"x\"}}\r\n\r\n"), true)
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"text"}],"tool_calls":[{},{"id":"a"}]}}]}`), true)
	f.Add([]byte(`data: {"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":{"content":[{}]}}]}`+"\n\ndata:[DONE]"), false)
	f.Fuzz(func(t *testing.T, data []byte, wantMore bool) {
		w := &client{}
		body := strings.Replace(streamBody, `"m"`, `"m","tools":[{"type":"function","function":{"name":"x"}}],"stream_options":{"include_usage":true}`, 1)
		rounds := 0
		chat := newChat(t, w, body, ChatOptions{Turns: &Turns{}, Post: func(context.Context, [][]byte) (*http.Response, error) {
			if rounds++; rounds > 1 {
				return streamed(strings.NewReader(fineStream)), nil
			}
			r := io.Reader(bytes.NewReader(data))
			if wantMore {
				r = iotest.OneByteReader(r)
			}
			return streamed(r), nil
		}})
		_ = (&dragoman.Loop{Tools: calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return done, nil })}).Run(t.Context(), chat)
		checkCompletion(t, w)
	})
}

func checkCompletion(t *testing.T, w *client) {
	t.Helper()
	got := w.String()
	if w.status != http.StatusOK {
		if !strings.HasPrefix(got, `{"error":`) {
			t.Errorf("status %d: %s", w.status, got)
		}
		return
	}
	var id string
	roles, finishes, ends, failures := 0, 0, 0, 0
	for event := range strings.SplitSeq(strings.TrimSuffix(got, "\n\n"), "\n\n") {
		payload, ok := strings.CutPrefix(event, "data: ")
		if !ok || strings.Contains(payload, "\n") {
			t.Fatalf("event %q", event)
		}
		if payload == "[DONE]" {
			ends++
			continue
		}
		chunk, err := rawjson.ParseObject([]byte(payload))
		if err != nil || !json.Valid([]byte(payload)) {
			t.Fatalf("chunk %q: %v", payload, err)
		}
		if chunk.Get("error") != nil {
			failures++
			continue
		}
		choices, _ := rawjson.Elements(chunk.Get("choices"))
		for _, raw := range choices {
			choice, err := rawjson.ParseObject(raw)
			if err != nil {
				t.Fatalf("choice %q: %v", raw, err)
			}
			if delta, err := rawjson.ParseObject(choice.Get("delta")); err == nil && delta.Get("role") != nil {
				roles++
			}
			if !rawjson.IsNull(choice.Get("finish_reason")) {
				finishes++
			}
			if id == "" {
				id = string(chunk.Get("id"))
			}
			if got := string(chunk.Get("id")); got != id || id == "" {
				t.Errorf("id %s after %s", got, id)
			}
		}
	}
	if failures == 1 && finishes == 0 && ends == 0 && roles <= 1 {
		return
	}
	if failures != 0 || roles != 1 || finishes != 1 || ends != 1 {
		t.Errorf("%d errors, %d roles, %d finish reasons, %d ends:\n%s", failures, roles, finishes, ends, got)
	}
}

// Reading a request never panics; what is accepted goes upstream as JSON, with
// its unknown members in it.
func FuzzParseChat(f *testing.F) {
	f.Add([]byte(streamBody))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","function_call":{"name":"f"}},{"role":"function"}],"functions":[{"name":"f"}],"function_call":{"name":"f"},"x":1e400}`))
	f.Add([]byte(`{"model":"m","messages":[{}],"tools":[{"type":"mcp","server_label":"a","allowed_tools":{"tool_names":["x"]}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{}},"dragoman":{"messages":true}}`))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"dragoman0x"},1,null]},{"role":"tool","tool_call_id":"dragoman0x"}],"n":1,"x":[1.0,"\ud83d\ude00"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseChat(data)
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Status != http.StatusBadRequest {
				t.Errorf("error %v", err)
			}
			return
		}
		_ = r.Withhold()
		if err := rawjson.Check(r.Plain()); err != nil {
			t.Errorf("plain: %v: %s", err, r.Plain())
		}
		unknown := json.RawMessage(nil)
		if o, err := rawjson.ParseObject(data); err == nil {
			unknown = o.Get("x")
		}
		chat := newChat(t, &client{}, string(data), ChatOptions{Turns: &Turns{}, Post: func(_ context.Context, parts [][]byte) (*http.Response, error) {
			body := bytes.Join(parts, nil)
			if err := rawjson.Check(body); err != nil {
				t.Errorf("sent: %v: %s", err, body)
			}
			o, err := rawjson.ParseObject(body)
			if err != nil || !bytes.Equal(o.Get("x"), unknown) || o.Get("dragoman") != nil {
				t.Errorf("sent %s", body)
			}
			return streamed(strings.NewReader(fineStream)), nil
		}})
		_ = (&dragoman.Loop{Tools: calling(nil)}).Run(t.Context(), chat)
	})
}
