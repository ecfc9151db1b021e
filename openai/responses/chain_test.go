package responses

import (
	"fmt"
	"testing"
)

// TestLongChains: an agent whose client runs the tools makes a response for each of its calls,
// and goes on after a hundred of them.
func TestLongChains(t *testing.T) {
	p, previous := newPlayer(t), ""
	for n := range 130 {
		got := p.say(fmt.Sprintf(`{"model":"m","input":"%d"%s}`, n, previous), spoken("Yes."))
		if got.status != 200 {
			t.Fatalf("the %dth: %d %s", n, got.status, got.body)
		}
		previous = `,"previous_response_id":"` + stringOf(got.response, "id") + `"`
	}
}
