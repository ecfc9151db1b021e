package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
)

// TestFormatsAreJudged judges by formats, in small schemas and in those whose
// steps are counted.
func TestFormatsAreJudged(t *testing.T) {
	good := map[string]string{
		"date": "2026-11-21", "date-time": "2026-11-21T17:00:00Z", "time": "17:00:00+01:00", "duration": "P1DT2H",
		"email": "a@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
		"uri": "https://example.com/?q=1", "iri": "https://example.com/ü", "uri-reference": "/a?b", "iri-reference": "/ü",
		"uuid": "123e4567-e89b-12d3-a456-426614174000", "json-pointer": "/a/0", "relative-json-pointer": "1/a",
		"uri-template": "/users/{id}", "regex": "^(?=a)a+$",
	}
	bad := map[string]string{
		"date": "21.11.2026", "date-time": "2026-11-21 17:00", "time": "25:00", "duration": "1 day", "email": "a at b",
		"hostname": "-a.b", "ipv4": "256.0.0.1", "ipv6": "1::2::3", "uri": "not a uri", "iri": "x", "uri-reference": "http://[",
		"iri-reference": "http://[", "uuid": "123", "json-pointer": "a", "relative-json-pointer": "/a", "uri-template": "{a", "regex": "(",
	}
	recursive := `,"properties":{"next":{"$ref":"#"}}`
	for _, name := range Formats() {
		for _, more := range []string{"", recursive} {
			v := NewValidator([]byte(`{"properties":{"p":{"type":"string","format":"` + name + `"}},"not":{"required":["x"]}` + strings.Replace(more, `"properties"`, `"patternProperties"`, 1) + `}`))
			if found := v.Validate(fmt.Appendf(nil, `{"p":%q}`, good[name])); len(found) > 0 {
				t.Errorf("%s%s: %q: %v", name, more, good[name], found)
			}
			found := v.Validate(fmt.Appendf(nil, `{"p":%q}`, bad[name]))
			if len(found) != 1 || found[0].Keyword != "format" || found[0].Expected != formatWords(name) {
				t.Errorf("%s%s: %q: %+v", name, more, bad[name], found)
			}
			if u := v.Unchecked(); len(u) > 0 {
				t.Errorf("%s: unchecked %q", name, u)
			}
		}
	}
}

// TestUncheckedSaysWhat names what only the server can judge.
func TestUncheckedSaysWhat(t *testing.T) {
	v := NewValidator([]byte(`{"properties":{"a":{"type":"string","format":"phone"},"b":{"format":"phone"},"c":{"type":"integer","format":"int64"},
		"d":{"type":"string","pattern":"(?<"}}}`))
	u := v.Unchecked()
	if len(u) != 2 || !strings.Contains(strings.Join(u, "\n"), `the format "phone"`) || !strings.Contains(strings.Join(u, "\n"), `the pattern "(?<"`) {
		t.Errorf("%q", u)
	}
	if found := v.Validate([]byte(`{"a":"x","c":1,"d":"y"}`)); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestPatternsOfECMAScript judges by what Go's own engine does not know.
func TestPatternsOfECMAScript(t *testing.T) {
	for _, tc := range []struct{ pattern, good, bad string }{
		{`^(?!_)\\w+$`, "ab", "_ab"},
		{`^(?=.*\\d)(?=.*[a-z]).{4,}$`, "abc1", "abcd"},
		{`(?<=a)b`, "ab", "cb"},
		{`(?<!a)b$`, "cb", "ab"},
		{`^(a|b)\\1$`, "aa", "ab"},
		{`^.{2,2000}$`, "ab", "a"},
		{`^\\u00e9$`, "é", "e"},
		{`^\\u{1F600}$`, "😀", "uu"},
		{`^[\\u{e9}\\u{1f600}-\\u{1F64F}]+$`, "é😀", "u"},
		{`^\\uD83D\\uDE00$`, "😀", "😁"},
		{`^(?!x)\\uD83D\\uDE00\\u{41}$`, "😀A", "😀"},
		{`^\\u00e9\\\\u0041$`, "é\\u0041", "éA"},
		{`^[\\p{L}\\s]+$`, "山田\u3000太郎", "山田-太郎"},
		{`^\\d+\\s€$`, "5\u202f€", "5€"},
		{`^\\S+$`, "5€", "5\u00a0€"},
		{`^(?!\\s)[^\\s]+\\s$`, "5\u00a0", "\u00a05"},
		{`^[\\w-\\s]$`, "-", "ab"},
	} {
		v := NewValidator([]byte(`{"type":"string","pattern":"` + tc.pattern + `"}`))
		if len(v.Validate(fmt.Appendf(nil, "%q", tc.good))) > 0 || len(v.Validate(fmt.Appendf(nil, "%q", tc.bad))) != 1 || len(v.Unchecked()) > 0 {
			t.Errorf("%s: %q or %q is misjudged, unchecked %q", tc.pattern, tc.good, tc.bad, v.Unchecked())
		}
	}
}

// TestPatternsAreBounded gives up a pattern that would look forever.
func TestPatternsAreBounded(t *testing.T) {
	v := NewValidator([]byte(`{"type":"array","items":{"type":"string","pattern":"^(?!x)(a+)+$"}}`))
	value := `["` + strings.Repeat(strings.Repeat("a", 40)+`!","`, 500) + `x"]`
	if took := cputime.Of(func() { v.Validate([]byte(value)) }); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}
