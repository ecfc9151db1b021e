package gateway

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestLongHistories: what a request allocates grows with its history and no faster, at each
// door at which a model is asked, whatever stands in it. Agents send all of it each time.
func TestLongHistories(t *testing.T) {
	h := gatewayOfDoors(t)
	shapes := map[string]func(rounds int) string{
		// Calls that have no result before somebody speaks again, and their results long after.
		"responses, open calls": func(rounds int) string {
			var b strings.Builder
			for n := range rounds {
				fmt.Fprintf(&b, `{"type":"function_call","call_id":"call_%d","name":"look","arguments":"{}"},{"role":"user","content":"And then, in the end?"},`, n)
			}
			for n := range rounds {
				fmt.Fprintf(&b, `{"type":"function_call_output","call_id":"call_%d","output":"It is sunny."},`, n)
			}
			return b.String()
		},
		// Results that come in a row behind all of their calls.
		"responses, calls in a row": func(rounds int) string {
			var b strings.Builder
			for n := range rounds {
				fmt.Fprintf(&b, `{"type":"function_call","call_id":"call_%d","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"call_%d","output":"It is"},`, 2*n, 2*n)
				fmt.Fprintf(&b, `{"type":"function_call","call_id":"call_%d","name":"look","arguments":"{}"},`, 2*n+1)
			}
			return b.String()
		},
		// What a client says to the model between two messages of a person's.
		"messages, between": func(rounds int) string {
			return strings.Repeat(`{"role":"user","content":"What is the weather in this town?"},{"role":"system","content":"It is getting late in this town."},`, rounds)
		},
		"messages, calls in a row": func(rounds int) string {
			var calls, results []string
			for n := range rounds {
				calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":"call_%d","name":"look","input":{}}`, n))
				results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"call_%d","content":[{"type":"text","text":"It is sunny."}]}`, n))
			}
			return `{"role":"assistant","content":[` + strings.Join(calls, ",") + `]},{"role":"user","content":[` + strings.Join(results, ",") + `]},`
		},
	}
	for _, door := range benchDoors {
		shapes[door.name] = func(rounds int) string { return history(rounds, door.name) }
	}
	for what, shape := range shapes {
		t.Run(what, func(t *testing.T) {
			name, _, _ := strings.Cut(what, ",")
			door := benchDoors[0]
			for _, each := range benchDoors {
				if each.name == name {
					door = each
				}
			}
			allocated := func(rounds int) (objects, size uint64) {
				body := `{"model":"m",` + strings.Replace(door.members, `[`, `[`+shape(rounds), 1) + `}`
				for i := range 3 {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					askDoor(t, h, door.path, body)
					runtime.ReadMemStats(&after)
					if n, m := after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc; i == 0 {
						objects, size = n, m
					} else {
						objects, size = min(objects, n), min(size, m)
					}
				}
				return objects, size
			}
			few, small := allocated(100)
			many, large := allocated(800)
			if many > 12*few || large > 12*small {
				t.Errorf("eight times as much takes %d objects and %d KiB, not %d and %d", many, large>>10, few, small>>10)
			}
			t.Logf("%d objects and %d KiB; eight times as much: %d and %d", few, small>>10, many, large>>10)
		})
	}
}
