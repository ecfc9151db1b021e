package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestHeaderValue(t *testing.T) {
	for in, want := range map[string]string{
		"us-west1":                 "us-west1",
		"":                         "",
		"a b\tc":                   "a b\tc",
		" padded ":                 "=?base64?IHBhZGRlZCA=?=",
		"tab\t":                    "=?base64?dGFiCQ==?=",
		"line1\nline2":             "=?base64?bGluZTEKbGluZTI=?=",
		"Hello, 世界":                "=?base64?SGVsbG8sIOS4lueVjA==?=",
		"=?base64?literal?=":       "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?":                "=?base64?",
		"=?BASE64?x?=":             "=?BASE64?x?=",
		"file:///projects/my.json": "file:///projects/my.json",
		"\x7f":                     "=?base64?fw==?=",
	} {
		if got := headerValue(in); got != want {
			t.Errorf("headerValue(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzHeaderValue(f *testing.F) {
	f.Add("a")
	f.Add("=?base64??=")
	f.Fuzz(func(t *testing.T, in string) {
		out := headerValue(in)
		for i := range len(out) {
			if out[i] != '\t' && (out[i] < ' ' || out[i] > '~') {
				t.Fatalf("%q became %q", in, out)
			}
		}
		back := out
		if inner, ok := strings.CutPrefix(out, "=?base64?"); ok && strings.HasSuffix(inner, "?=") {
			b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
			if err != nil {
				t.Fatal(err)
			}
			back = string(b)
		}
		if back != in {
			t.Errorf("%q became %q, which is %q", in, out, back)
		}
	})
}

func TestParamHeaders(t *testing.T) {
	property := func(p string) string { return `{"type":"object","properties":{"p":` + p + `}}` }
	for _, tc := range []struct{ schema, arguments, want string }{
		{`{"properties":{"p":{"type":"string"}}}`, `{"p":"x"}`, "[]"},
		{property(`{"type":"string","x-mcp-header":"Region"}`), `{"p":"\u0078"}`, "[{Mcp-Param-Region x}]"},
		{property(`{"type":"string","x-mcp-header":"region-ID"}`), `{"p":"x"}`, "[{Mcp-Param-Region-Id x}]"},
		{property(`{"type":"string","x-mcp-header":"R"}`), `{"p":null}`, "[]"},
		{property(`{"type":"string","x-mcp-header":"R"}`), `{}`, "[]"},
		{property(`{"type":"string","x-mcp-header":"R"}`), ``, "[]"},
		{property(`{"type":"string","x-mcp-header":"R"}`), `{"p":""}`, "[{Mcp-Param-R }]"},
		{property(`{"type":"boolean","x-mcp-header":"R"}`), `{"p":false}`, "[{Mcp-Param-R false}]"},
		{property(`{"type":"integer","x-mcp-header":"R"}`), `{"p":4.20e1}`, "[{Mcp-Param-R 42}]"},
		{property(`{"type":["integer","null"],"x-mcp-header":"R"}`), `{"p":-9007199254740991}`, "[{Mcp-Param-R -9007199254740991}]"},
		{property(`{"properties":{"q":{"type":"string","x-mcp-header":"Q"}}}`), `{"p":{"q":"deep"},"q":"flat"}`, "[{Mcp-Param-Q deep}]"},
		{`{"properties":{"x-mcp-header":{"type":"string"}}}`, `{"x-mcp-header":"x"}`, "[]"},
		{property(`{"type":"object","default":{"x-mcp-header":"R"},"enum":[{"x-mcp-header":7}]}`), `{}`, "[]"},
		{property(`{"type":"string","x-mcp-header":""}`), ``, "error"},
		{property(`{"type":"string","x-mcp-header":7}`), ``, "error"},
		{property(`{"type":"string","x-mcp-header":"a b"}`), ``, "error"},
		{property(`{"type":"string","x-mcp-header":"a:b"}`), ``, "error"},
		{property(`{"type":"string","x-mcp-header":"a\r\nb"}`), ``, "error"},
		{property(`{"type":"string","x-mcp-header":"é"}`), ``, "error"},
		{property(`{"type":"number","x-mcp-header":"R"}`), ``, "error"},
		{property(`{"type":["string","integer"],"x-mcp-header":"R"}`), ``, "error"},
		{property(`{"x-mcp-header":"R"}`), ``, "error"},
		{property(`{"type":"object","x-mcp-header":"R"}`), ``, "error"},
		{property(`{"type":"null","x-mcp-header":"R"}`), ``, "error"},
		{`{"type":"string","x-mcp-header":"R"}`, ``, "error"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}}}`, ``, "error"},
		{property(`{"items":{"type":"string","x-mcp-header":"R"}}`), ``, "error"},
		{property(`{"items":{"properties":{"q":{"type":"string","x-mcp-header":"R"}}}}`), ``, "error"},
		{property(`{"anyOf":[{"type":"string","x-mcp-header":"R"}]}`), ``, "error"},
		{`{"$defs":{"d":{"type":"string","x-mcp-header":"R"}}}`, ``, "error"},
		{`{"then":{"properties":{"p":{"type":"string","x-mcp-header":"R"}}}}`, ``, "error"},
		{strings.Repeat(`{"properties":{"p":`, 70) + `{"type":"string","x-mcp-header":"R"}` + strings.Repeat("}}", 70), ``, "error"},
	} {
		p, err := paramHeaders(json.RawMessage(tc.schema))
		got := fmt.Sprint(p.of(json.RawMessage(tc.arguments)))
		if err != nil {
			got = "error"
		}
		if got != tc.want {
			t.Errorf("%s with %s: %s (%v), want %s", tc.schema, tc.arguments, got, err, tc.want)
		}
	}
}
