package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestLongHistories: what a request allocates grows with its history and no faster, at each
// door at which a model is asked, whatever stands in it. Agents send all of it each time.
func TestLongHistories(t *testing.T) {
	h := gatewayOver(t, weather())
	shapes := map[string]map[string]func(rounds int) string{"chat": {}, "responses": {
		// Calls that have no result before somebody speaks again, and their results long after.
		"open calls": func(rounds int) string {
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
		"calls in a row": func(rounds int) string {
			var b strings.Builder
			for n := range rounds {
				fmt.Fprintf(&b, `{"type":"function_call","call_id":"call_%d","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"call_%d","output":"It is"},`, 2*n, 2*n)
				fmt.Fprintf(&b, `{"type":"function_call","call_id":"call_%d","name":"look","arguments":"{}"},`, 2*n+1)
			}
			return b.String()
		},
		// What a tool that runs on tells of again and again.
		"further results": func(rounds int) string {
			return `{"type":"function_call","call_id":"call_1","name":"look","arguments":"{}"},` +
				strings.Repeat(`{"type":"function_call_output","call_id":"call_1","output":"It is sunny, and somewhat warm."},`, rounds)
		},
	}, "messages": {
		// What a client says to the model between two messages of a person's.
		"between": func(rounds int) string {
			return strings.Repeat(`{"role":"user","content":"What is the weather in this town?"},{"role":"system","content":"It is getting late in this town."},`, rounds)
		},
		"calls in a row": func(rounds int) string {
			var calls, results []string
			for n := range rounds {
				calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":"call_%d","name":"look","input":{}}`, n))
				results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"call_%d","content":[{"type":"text","text":"It is sunny."}]}`, n))
			}
			return `{"role":"assistant","content":[` + strings.Join(calls, ",") + `]},{"role":"user","content":[` + strings.Join(results, ",") + `]},`
		},
	}}
	for _, door := range benchDoors {
		of := shapes[door.name]
		of["an agent's"] = func(rounds int) string { return history(rounds, door.name) }
		for what, shape := range of {
			for _, model := range []string{"m", "responses"} {
				t.Run(door.name+", "+what+", to "+model, func(t *testing.T) {
					linear(t, 100, func(rounds int) {
						askDoor(t, h, door.path, `{"model":"`+model+`",`+strings.Replace(door.members, `[`, `[`+shape(rounds), 1)+`}`)
					})
				})
			}
		}
	}
}

// TestLongAnswers: what an answer in a stream takes grows with its pieces and no faster,
// whatever they are pieces of.
func TestLongAnswers(t *testing.T) {
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"
	deltas := map[string]string{
		"text":      `{"content":"sunny \"and\" warm "}`,
		"thoughts":  `{"reasoning_content":"sunny \"and\" warm "}`,
		"arguments": `{"tool_calls":[{"index":0,"function":{"arguments":"sunny and warm "}}]}`,
		"calls":     `{"tool_calls":[{"index":%[1]d,"id":"call_%[1]d","type":"function","function":{"name":"look","arguments":"{}"}}]}`,
	}
	h := gatewayOver(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Model string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		what, count, _ := strings.Cut(asked.Model, "-")
		pieces, _ := strconv.Atoi(count)
		w.Header().Set("Content-Type", "text/event-stream")
		out := bufio.NewWriter(w)
		end := "stop"
		if what == "arguments" {
			fmt.Fprintf(out, chunk, `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"town\":\""}}]}`, "null")
			end = "tool_calls"
		}
		for n := range pieces {
			delta := deltas[what]
			if what == "calls" {
				delta, end = fmt.Sprintf(delta, n), "tool_calls"
			}
			fmt.Fprintf(out, chunk, delta, "null")
		}
		if what == "arguments" {
			fmt.Fprintf(out, chunk, `{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}`, "null")
		}
		fmt.Fprintf(out, chunk, `{}`, `"`+end+`"`)
		fmt.Fprint(out, "data: [DONE]\n\n")
		out.Flush()
	}))
	tools := map[string]string{
		"chat":      `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}],`,
		"responses": `"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}],`,
		"messages":  `"thinking":{"type":"adaptive"},"tools":[{"name":"look","input_schema":{"type":"object"}}],`,
	}
	for _, door := range benchDoors {
		for what := range deltas {
			t.Run(door.name+" "+what, func(t *testing.T) {
				few := 100
				if what == "calls" {
					few = 15 // of which a message may have some hundred
				}
				linear(t, few, func(pieces int) {
					for _, stream := range []bool{true, false} {
						askDoor(t, h, door.path, fmt.Sprintf(`{"model":"%s-%d","stream":%t,%s%s}`, what, pieces, stream, tools[door.name], door.members))
					}
				})
			})
		}
	}
}

// linear fails the test where eight times as much of something takes more than twelve times
// the memory, in objects or in bytes.
func linear(t *testing.T, few int, do func(n int)) {
	t.Helper()
	allocated := func(n int) (objects, size uint64) {
		for i := range 3 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			do(n)
			runtime.ReadMemStats(&after)
			o, s := after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
			if i == 0 {
				objects, size = o, s
			}
			objects, size = min(objects, o), min(size, s)
		}
		return objects, size
	}
	objects, size := allocated(few)
	many, large := allocated(8 * few)
	says := fmt.Sprintf("%d objects and %d KiB; eight times as much: %d and %d", objects, size>>10, many, large>>10)
	if many > 12*objects || large > 12*size {
		t.Error(says)
	}
	t.Log(says)
}
