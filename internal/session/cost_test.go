package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
)

// TestHostileResultIsCheap: a server's own result by its own output schema, both made to
// take long and as long as they may be, is answered in the time that reading takes.
func TestHostileResultIsCheap(t *testing.T) {
	defs := `"d0":{"type":"string","pattern":"^(x|y)*$","minLength":1}`
	for i := range 22 {
		defs += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	tool := &dragoman.Tool{OutputSchema: fmt.Appendf(nil, `{"type":"object","properties":{"a":{"$ref":"#/$defs/d22"},"l":{"items":{"$ref":"#/$defs/d22"}}},"$defs":{%s}}`, defs)}
	for name, result := range map[string]string{
		"a long text":       `{"a":"` + strings.Repeat("xy", 8<<20) + `"}`,
		"many texts":        `{"l":[` + strings.Repeat(`"xyxyxyxyxy",`, 400_000) + `"x"]}`,
		"too many to judge": `{"l":[` + strings.Repeat(`"",`, 5_000_000) + `"x"]}`,
	} {
		var o outputs
		var err error
		took := cputime.Of(func() { err = o.check(tool, []byte(result)) })
		if t.Logf("%s, %d bytes: %s, %v", name, len(result), took, err); err != nil || took > cputime.Slower*6*time.Second {
			t.Errorf("%s: %s, %v", name, took, err)
		}
	}
}
