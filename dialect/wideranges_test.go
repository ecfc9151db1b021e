package dialect

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Integers are listed for a short range alone: a schema whose bounds are further apart than
// an int is long once had all of them listed, until the memory was full.
func TestOnlyShortRangesAreListed(t *testing.T) {
	for _, name := range Names() {
		for _, low := range []string{`"minimum":-1000`, `"minimum":-2`, `"exclusiveMinimum":-2`, `"minimum":0`} {
			for _, high := range []string{`"maximum"`, `"exclusiveMaximum"`} {
				plan := planFor(t, name, fmt.Sprintf(`{"type":"object","properties":{"n":{"type":"integer",%s,%s:%d}}}`, low, high, int64(math.MaxInt64)))
				if sent := string(plan.Parameters()); strings.Contains(sent, `"enum"`) {
					t.Errorf("%s, %s, %s: sent %s", name, low, high, sent)
				}
			}
		}
	}
	sent := string(planFor(t, "anthropic-strict", `{"type":"object","properties":{"n":{"type":"integer","minimum":-1,"maximum":2}}}`).Parameters())
	if !strings.Contains(sent, `"enum":[-1,0,1,2]`) {
		t.Errorf("the range of four is not listed: %s", sent)
	}
}
