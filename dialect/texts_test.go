package dialect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// TestLengthsInPatterns writes lengths into patterns, and leaves them where that
// cannot be done exactly.
func TestLengthsInPatterns(t *testing.T) {
	for _, tc := range []struct {
		in          string
		least, most int
		want        string
	}{
		{`^[0-9a-f]+$`, 24, 24, `^[0-9a-f]{24}$`},
		{`^[0-9a-f]*$`, 0, 9, `^[0-9a-f]{0,9}$`},
		{`^[0-9a-f]{2,}$`, 1, 9, `^[0-9a-f]{2,9}$`},
		{`^[A-Za-z_][A-Za-z0-9_]*$`, 0, 64, `^[A-Z_a-z][0-9A-Z_a-z]{0,63}$`},
		{`^id-[0-9]+$`, 5, -1, `^id-[0-9]{2,}$`},
		{`^(ab)+$`, 3, 9, `^(?:(ab){2,4})$`},
		{`^https?://`, 0, 30, ``}, // two parts vary
		{`^a:`, 0, 30, `^a:[\s\S]{0,28}$`},
		{`^[0-9]{4}$`, 4, 4, `^[0-9]{4}$`},
		{`^(a{1,3}|[0-9]+)$`, 2, 5, `^(?:a{2,3}|[0-9]{2,5})$`},
		{`^(a|bc)$`, 2, 2, `^bc$`},
		{`^[a-z]*[0-9]*$`, 1, -1, `^(?:[a-z]+[0-9]*|[0-9]+)$`},
		{`^(a?|b*)$`, 1, -1, `^(?:a|b+)$`},
		{`^[a-z]+(-[a-z]+)*$`, 3, 40, ``},
		{`^[a-z]{3}$`, 5, -1, ``}, // nothing fits
		{`^(?=a)a+$`, 2, 3, ``},
		{`^\bx+$`, 2, 3, ``},
		{`^[a-z]+$`, 0, 5000, ``}, // RE2 stops at a thousand
	} {
		got, ok := withLengths(tc.in, span{tc.least, tc.most})
		if ok != (tc.want != "") {
			t.Errorf("%s of %d to %d: %q %v", tc.in, tc.least, tc.most, got, ok)
			continue
		}
		if !ok {
			continue
		}
		if simple := strings.NewReplacer("(?:(ab){2,4})", "(ab){2,4}").Replace(tc.want); got != tc.want && got != simple {
			t.Errorf("%s of %d to %d: %s, want %s", tc.in, tc.least, tc.most, got, tc.want)
		}
		of, by := regexp.MustCompile(tc.in), regexp.MustCompile(got)
		for _, text := range textsUpTo(6, "a1:-") {
			long := len(text) >= tc.least && (tc.most < 0 || len(text) <= tc.most)
			if by.MatchString(text) != (of.MatchString(text) && long) {
				t.Errorf("%s of %d to %d: %s and %q", tc.in, tc.least, tc.most, got, text)
			}
		}
	}
}

// textsUpTo are all texts of some letters up to a length.
func textsUpTo(length int, letters string) []string {
	all, last := []string{""}, []string{""}
	for range length {
		var next []string
		for _, text := range last {
			for _, letter := range letters {
				next = append(next, text+string(letter))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// TestFormatsInPatterns holds what the validator takes of a format against the
// pattern that engines get for it.
func TestFormatsInPatterns(t *testing.T) {
	texts := map[string][2][]string{
		"date-time": {{"2026-11-21T12:00:00Z", "2024-02-29t00:00:00.123456789+23:59"}, {"2026-11-21", "2026-13-01T00:00:00Z", "2026-04-31T00:00:00Z", "20266-01-01T00:00:00Z", "2026-11-21T24:00:00Z"}},
		"date":      {{"2026-12-31"}, {"2026-02-30", "1.1.2026"}},
		"time":      {{"12:00:00Z", "23:59:59.5-01:30"}, {"12:00", "25:00:00Z"}},
		"ipv4":      {{"0.0.0.0", "255.249.10.99"}, {"256.1.1.1", "01.1.1.1", "1.1.1"}},
		"uuid":      {{"123e4567-E89B-12d3-a456-426614174000"}, {"123e4567"}},
		"uri":       {{"https://a.bc/d?e=f#g", "http://[::1]:80/", "urn:a:b", "mailto:a@b.co", "a:%20", "http://[2001:db8::1]/a?b#c"}, {"/a", "a b", "1a:b"}},
		"hostname":  {{"a.bc", "Host-1.local", "localhost."}, {"-a.b", "a b", "a..b"}},
		"email":     {{"a.b+c@d-e.org", "a@b"}, {"a", "a@", ".a@b.co", "a@-b"}},
	}
	for name, patterns := range formatPatterns {
		judge := schema.NewValidator(fmt.Appendf(nil, `{"type":"string","format":%q}`, name))
		for i, text := range slices.Concat(texts[name][0], texts[name][1]) {
			want := i < len(texts[name][0])
			if fits := len(judge.ValidateNode(schema.NewString(text))) == 0; fits != want {
				t.Fatalf("%s: %q: %v", name, text, fits)
			}
			if regexp.MustCompile(patterns[0]).MatchString(text) != want {
				t.Errorf("%s: %q and %s", name, text, patterns[0])
			}
		}
		if len(texts[name][0]) == 0 {
			t.Errorf("%s is not tried", name)
		}
	}
	for pattern, holds := range map[string]string{
		`^[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,7})?Z$`: `([.][0-9]{1,7})?Z$`,
		`^[0-9]{4}-`:                      `|02-(`,
		`^[0-9]{4}-(01|02)-01T00:00:00Z$`: `^[0-9]{4}-(0[12])-01T00:00:00Z$`, // says it all
	} {
		plan := planFor(t, "vllm", fmt.Sprintf(`{"type":"object","properties":{"p":{"type":"string","format":"date-time","pattern":%q}}}`, pattern))
		p := plan.sent.Get("properties").Get("p")
		sent := regexp.MustCompile(p.Get("pattern").Text())
		if p.Has("format") || !strings.Contains(sent.String(), holds) || sent.MatchString("2026-13-01T00:00:00Z") || !sent.MatchString("2026-01-01T00:00:00Z") {
			t.Errorf("%s: %s", pattern, p.Bytes())
		}
	}
}

// TestReferencesThatAreNone sends no member named $ref that is no reference to an
// engine that would take it for one; the description says what was there.
func TestReferencesThatAreNone(t *testing.T) {
	for _, tc := range []struct{ in, says string }{
		{`"x-of":{"$ref":"#/no"}`, ""},
		{`"example":{"a":[{"$ref":"#/no"}]}`, ""},
		{`"examples":[{"$ref":"#/no"}]`, ""},
		{`"default":{"$ref":"#/no"}`, `default: {\"$ref\":\"#/no\"}`},
		{`"const":{"$ref":"#/no"}`, `one of {\"$ref\":\"#/no\"}`},
		{`"enum":[{"$ref":"#/no"},{"a":1}]`, `one of {\"$ref\":\"#/no\"}, {\"a\":1}`},
	} {
		for _, name := range []string{"llamacpp", "lmstudio"} {
			plan := planFor(t, name, `{"type":"object","properties":{"p":{"type":"object",`+tc.in+`},"q":{"$ref":"#/$defs/q"}},"$defs":{"q":{"type":"string"}}}`)
			sent := string(plan.Parameters())
			if plan.Wide() || strings.Count(sent, `"$ref":`) != 1 || !strings.Contains(sent, tc.says) || !strings.Contains(sent, `"$ref":"#/$defs/q"`) {
				t.Errorf("%s: %s is sent as %s", name, tc.in, sent)
			}
			if call := `{"p":{"a":1},"q":"x"}`; !strings.Contains(tc.in, "const") {
				if _, _, problem := plan.Decode(call, ""); problem != nil {
					t.Errorf("%s: %s: %v", name, tc.in, problem)
				}
			}
		}
	}
}

// TestClosedBySilence keeps writable, on engines that close objects of which nothing
// is said, what the server takes by its own schema.
func TestClosedBySilence(t *testing.T) {
	for _, name := range []string{"vllm", "sglang", "llamacpp", "lmstudio"} {
		for _, tc := range []struct{ in, want string }{
			{`{"type":"object","properties":{"a":{"type":"integer"}},"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, `"additionalProperties":{"type":"string"}`},
			{`{"type":"object","patternProperties":{"^x-":{"type":"string"},"^y-":{"type":"string"}}}`, `"additionalProperties":{"type":"string"}`},
			{`{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":{"type":"boolean"}}`, `"additionalProperties":{"anyOf":[{"type":"string"},{"type":"boolean"}]}`},
			{`{"type":"object","patternProperties":{"^x-":{}}}`, `"additionalProperties":true`},
			{`{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":true}`, `"additionalProperties":true`},
			{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["b"]}`, `"b":{`},
			{`{"type":"object","required":["b"],"additionalProperties":{"type":"integer"}}`, `"b":{"type":"integer"}`},
			{`{"type":"object","required":["xb"],"patternProperties":{"^x":{"type":"boolean"}}}`, `"xb":{"type":"boolean"}`},
			{`{"type":"object","required":["b"]}`, `"additionalProperties":true`},
		} {
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+tc.in+`}}`)
			if sent := string(plan.Parameters()); plan.Wide() || !strings.Contains(sent, tc.want) {
				t.Errorf("%s: %s is sent as %s", name, tc.in, sent)
			}
		}
	}
}
