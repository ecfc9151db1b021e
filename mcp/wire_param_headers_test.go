package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

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
