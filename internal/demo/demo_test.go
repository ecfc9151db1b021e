package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

func newDemo(t *testing.T) *Demo {
	t.Helper()
	d := New(Options{})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

// dial connects the official client through d's pipe.
func dial(t *testing.T, d *Demo, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	r, w := d.Pipe(t.Context())
	return connect(t, &sdk.IOTransport{Reader: r, Writer: w}, version, opts)
}

func connect(t *testing.T, via sdk.Transport, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts)
	s, err := client.Connect(t.Context(), via, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	if got := s.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("protocol version %s, want %s", got, version)
	}
	return s
}

// call runs a tool and returns its result with structuredContent as it came.
func call(t *testing.T, s *sdk.ClientSession, tool, arguments string) (text, data string, failed bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s %s: %d content blocks, want 1", tool, arguments, len(res.Content))
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*sdk.TextContent).Text, string(raw), res.IsError
}

func TestTools(t *testing.T) {
	d := newDemo(t)
	s := dial(t, d, legacy, nil)
	outputs := outputSchemas(t, s)

	for _, tt := range []struct {
		name, tool, arguments string
		want                  string   // the text block, exactly
		contains              []string // parts of the text block
		failed                bool
	}{
		{
			name: "weather, Chinese", tool: "get_weather", arguments: `{"city":"北京"}`,
			want: `{"temperature":22,"unit":"Celsius","condition":"多云","humidity":65}`,
		},
		{
			name: "weather, English", tool: "get_weather", arguments: `{"city":"Beijing"}`,
			want: `{"temperature":22,"unit":"Celsius","condition":"cloudy","humidity":65}`,
		},
		{
			name: "weather, loosely written", tool: "get_weather", arguments: `{"city":" NEW YORK City, USA"}`,
			want: `{"temperature":15,"unit":"Celsius","condition":"windy","humidity":56}`,
		},
		{
			name: "weather, accent left out", tool: "get_weather", arguments: `{"city":"Sao Paulo"}`,
			want: `{"temperature":24,"unit":"Celsius","condition":"showers","humidity":67}`,
		},
		{
			name: "weather, 市 and Chinese comma", tool: "get_weather", arguments: `{"city":"北京市，中国"}`,
			want: `{"temperature":22,"unit":"Celsius","condition":"多云","humidity":65}`,
		},
		{
			name: "weather, unknown city", tool: "get_weather", arguments: `{"city":"Atlantis"}`, failed: true,
			contains: []string{`"Atlantis"`, "Known cities: Beijing, ", "English or Chinese"},
		},
		{
			name: "weather, unknown Chinese city", tool: "get_weather", arguments: `{"city":"蓬莱仙岛"}`, failed: true,
			contains: []string{"蓬莱仙岛", "北京, 上海"},
		},
		{
			name: "weather, city missing", tool: "get_weather", arguments: `{}`, failed: true,
			contains: []string{"Invalid arguments for get_weather", "missing property 'city'"},
		},
		{
			name: "weather, two things wrong", tool: "get_weather", arguments: `{"city":7,"day":"now"}`, failed: true,
			contains: []string{"/city: got number, want string", "additional properties 'day' not allowed"},
		},
		{
			name: "weather, name in the wrong case", tool: "get_weather", arguments: `{"City":"Paris"}`, failed: true,
			contains: []string{"missing property 'city'"},
		},
		{
			name: "restaurants of a cuisine", tool: "find_restaurant", arguments: `{"city":"Chengdu","cuisine":"italian food"}`,
			want: `{"city":"Chengdu","restaurants":[{"name":"Panda Slice","cuisine":"Italian","rating":4,"address":"3 Tech Park Road, Gaoxin","price":"$"}],"total":1}`,
		},
		{
			name: "restaurants, best first", tool: "find_restaurant", arguments: `{"city":"成都","cuisine":"四川菜"}`,
			want: `{"city":"成都","restaurants":[` +
				`{"name":"九大碗","cuisine":"川菜","rating":4.8,"address":"青羊区宽巷15号","price":"$$"},` +
				`{"name":"沸江火锅","cuisine":"川菜","rating":4.6,"address":"武侯区南环路77号","price":"$$"}],"total":2}`,
		},
		{
			name: "restaurants of any cuisine", tool: "find_restaurant", arguments: `{"city":"Beijing"}`,
			contains: []string{`"total":5`, "Red Gate Roast Duck"},
		},
		{
			name: "restaurants of a wider cuisine", tool: "find_restaurant", arguments: `{"city":"Beijing","cuisine":"Chinese"}`,
			contains: []string{`"total":3`},
		},
		{
			name: "restaurants, none of that cuisine", tool: "find_restaurant", arguments: `{"city":"Rome","cuisine":"粤菜"}`,
			want: `{"city":"Rome","restaurants":[],"total":0}`,
		},
		{
			name: "restaurants, unknown city", tool: "find_restaurant", arguments: `{"city":"Atlantis"}`,
			want: `{"city":"Atlantis","restaurants":[],"total":0}`,
		},
		{
			name: "restaurants, city missing", tool: "find_restaurant", arguments: `{"cuisine":"Thai"}`, failed: true,
			contains: []string{"missing property 'city'"},
		},
		{name: "sum", tool: "calculate_sum", arguments: `{"a":2.1,"b":3.4}`, want: `{"sum":5.5}`},
		{name: "sum, to a whole number", tool: "calculate_sum", arguments: `{"a":0.5,"b":1.50}`, want: `{"sum":2}`},
		{name: "sum, nothing", tool: "calculate_sum", arguments: `{"a":-0.1,"b":1e-1}`, want: `{"sum":0}`},
		{
			name: "sum, beyond float64", tool: "calculate_sum", arguments: `{"a":9007199254740993,"b":1e-20}`,
			want: `{"sum":9007199254740993.00000000000000000001}`,
		},
		{
			name: "sum of text", tool: "calculate_sum", arguments: `{"a":"2","b":3}`, failed: true,
			contains: []string{"/a: got string, want number"},
		},
		{
			name: "sum, exponent out of range", tool: "calculate_sum", arguments: `{"a":1e999999999,"b":3}`, failed: true,
			contains: []string{"/a: exponent of 1e999999999 is out of range"},
		},
		{
			name: "sum, far too many digits", tool: "calculate_sum", arguments: `{"a":1,"b":` + strings.Repeat("9", 1001) + `}`, failed: true,
			contains: []string{"/b: number of 1001 characters"},
		},
		{
			name: "sum, one number missing", tool: "calculate_sum", arguments: `{"a":1}`, failed: true,
			contains: []string{"missing property 'b'"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, data, failed := call(t, s, tt.tool, tt.arguments)
			if failed != tt.failed {
				t.Fatalf("isError %v, want %v: %s", failed, tt.failed, text)
			}
			if tt.want != "" && text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
			for _, part := range tt.contains {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in %s", part, text)
				}
			}
			if failed {
				if data != "null" {
					t.Errorf("a failed call has structuredContent %s", data)
				}
				return
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if err := outputs[tt.tool].Validate(v); err != nil {
				t.Errorf("result breaks the announced schema: %v", err)
			}
		})
	}
}

// outputSchemas compiles what the server announces, as a client received it.
func outputSchemas(t *testing.T, s *sdk.ClientSession) map[string]*jsonschema.Schema {
	t.Helper()
	schemas := map[string]*jsonschema.Schema{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("test:"+tool.Name, doc); err != nil {
			t.Fatal(err)
		}
		if schemas[tool.Name], err = c.Compile("test:" + tool.Name); err != nil {
			t.Fatal(err)
		}
	}
	return schemas
}

func TestPipeEnds(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	for _, tt := range []struct {
		name string
		end  func(d *Demo, r io.Closer, w io.Closer, cancel context.CancelFunc)
	}{
		{"writer closed", func(_ *Demo, _, w io.Closer, _ context.CancelFunc) { w.Close() }},
		{"reader closed", func(_ *Demo, r, _ io.Closer, _ context.CancelFunc) { r.Close() }},
		{"context cancelled", func(_ *Demo, _, _ io.Closer, cancel context.CancelFunc) { cancel() }},
		{"demo closed", func(d *Demo, _, _ io.Closer, _ context.CancelFunc) { d.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{})
			defer d.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, w := d.Pipe(ctx)
			if _, err := io.WriteString(w, ping); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, 1)
			if _, err := io.ReadFull(r, answer); err != nil || answer[0] != '{' {
				t.Fatalf("answer starts with %q, %v", answer, err)
			}

			tt.end(d, r, w, cancel)
			if _, err := io.Copy(io.Discard, r); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("read after the end: %v", err)
			}
			d.pipes.Wait() // hangs if the session did not notice
			if _, err := io.WriteString(w, ping); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("write after the end: %v, want %v", err, io.ErrClosedPipe)
			}
		})
	}
}
