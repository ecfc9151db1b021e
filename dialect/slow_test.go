package dialect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
)

// adversarial are schemas that once took an engine of ours seconds, or for ever.
var adversarial = map[string]string{
	"references that fan out": func() string {
		var b strings.Builder
		for i := range 12 {
			fmt.Fprintf(&b, `"a%d":{"type":"object","properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"$ref":"#/$defs/a%d"},"z":{"$ref":"#/$defs/a%d"}}},`, i, i+1, i+1, i+1)
		}
		return `{"type":"object","properties":{"p":{"$ref":"#/$defs/a0"}},"$defs":{` + b.String() + `"a12":{"type":"string"}}}`
	}(),
	"recursive unions": func() string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, `"u%d":{"anyOf":[`, i)
			for j := range 12 {
				fmt.Fprintf(&b, `{"type":"object","properties":{"k":{"const":"%d_%d"},"n":{"$ref":"#/$defs/u%d"}},"required":["k"]},`, i, j, (i*7+j)%40)
			}
			b.WriteString(`{"type":"string"}]},`)
		}
		return `{"type":"object","properties":{"p":{"$ref":"#/$defs/u0"}},"$defs":{` + b.String() + `"z":{}}}`
	}(),
	"alternatives of alternatives": func() string {
		several := func(name string) string {
			var b strings.Builder
			for i := range 950 {
				fmt.Fprintf(&b, `,{"required":["%s%d"]}`, name, i)
			}
			return b.String()[1:]
		}
		return `{"type":"object","properties":{"p":{"type":"object","anyOf":[` + several("a") + `],"oneOf":[` + several("b") + `]}}}`
	}(),
	"required members of which patterns speak": func() string {
		var names, patterns strings.Builder
		for i := range 1900 {
			fmt.Fprintf(&names, `,"p%d"`, i)
			fmt.Fprintf(&patterns, `,"^p%d$":{"type":"string"}`, i)
		}
		return `{"type":"object","properties":{"p":{"type":"object","required":[` + names.String()[1:] + `],"patternProperties":{` + patterns.String()[1:] + `}}}}`
	}(),
	"many properties": func() string {
		var b strings.Builder
		for i := range 900 {
			fmt.Fprintf(&b, `,"p%d":{"type":"string","enum":["a","b"]}`, i)
		}
		return `{"type":"object","properties":{` + b.String()[1:] + `}}`
	}(),
	"patterns that are hard to compare and to count": func() string {
		var b strings.Builder
		for i := range 900 {
			fmt.Fprintf(&b, `,"p%d":{"type":"string","format":"date-time","minLength":1,"maxLength":%d,"pattern":"^(?:[0-9]|[0-5])*[0-%d](?:[0-9T:Z.-]|[a-z]){%d}.*$"}`, i, i+40, i%10, i%60)
			fmt.Fprintf(&b, `,"q%d":{"type":"string","minLength":%d,"pattern":"^(?:(?:a*|b)*(?:c*|d%d)*)*e{0,%d}$"}`, i, i%3, i, i)
		}
		return `{"type":"object","properties":{` + b.String()[1:] + `}}`
	}(),
	"definitions that nothing uses": func() string {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, `,"d%d":{"type":"string"}`, i)
		}
		return `{"type":"object","properties":{"a":{"$ref":"#/$defs/d1"},"b":{"$ref":"#/$defs/d1"}},"$defs":{` + b.String()[1:] + `}}`
	}(),
}

// TestPlansAreBounded converts them into every dialect. The limit, of processor time, is far above
// what a quiet machine needs, and far below what a pass takes whose work grows
// with more than the size of the schema.
func TestPlansAreBounded(t *testing.T) {
	for what, input := range adversarial {
		for _, name := range Names() {
			var problem *dragoman.Problem
			took := cputime.Of(func() {
				_, problem = mustFor(t, name).convert(dragoman.Tool{Name: "t", InputSchema: []byte(input)})
			})
			if problem != nil || took > 5*time.Second {
				t.Errorf("%s in %s: %v, %v", what, name, took, problem)
			}
		}
	}
}
