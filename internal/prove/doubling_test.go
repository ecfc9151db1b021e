package prove

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
)

// TestProvingADoublingSchema: definitions that use the one before twice have 2^22 ways
// through them, and a search does not take them all.
func TestProvingADoublingSchema(t *testing.T) {
	defs := []string{`"d0":{"type":"string","pattern":"^x*$"}`}
	for i := range 22 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i))
	}
	input := `{"type":"object","properties":{"text":{"$ref":"#/$defs/d22"}},"$defs":{` + strings.Join(defs, ",") + `}}`
	for _, name := range []string{"openai", "openai-strict"} {
		var proof *Proof
		took := cputime.Of(func() { proof = proveTool(t, &Prover{Dialect: in(t, name)}, input) })
		if took > slower*15*time.Second || proof.Looked.Taken == 0 {
			t.Errorf("%s: %s, %+v", name, took, proof.Looked)
		}
	}
}
