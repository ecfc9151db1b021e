package recall

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// TestJoinedIsTheSame: whatever a client makes of several messages of the model's, the model
// is told what it would be told without.
func TestJoinedIsTheSame(t *testing.T) {
	texts := []string{"", "A.", "A.B.", "\n\nA.", "B.\n", "\n", "A. ", "é"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		var apart, calls, results []json.RawMessage
		known, says := map[string]*memory.Turn{}, ""
		n := 2 + r.IntN(4)
		for k := range n {
			text, turn := texts[r.IntN(len(texts))], &memory.Turn{}
			m := &memory.Message{}
			var own, answers []json.RawMessage
			if r.IntN(2) == 0 {
				turn.Hidden = []json.RawMessage{
					json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"h%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, k)),
					json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":"h%d","content":"hidden"}`, k)),
				}
			}
			for c := range 1 + r.IntN(3) {
				id := fmt.Sprintf("%sturn%dcall%d", WroteID, k, c)
				raw := func(id string) json.RawMessage {
					return json.RawMessage(`{"id":"` + id + `","type":"function","function":{"name":"mine","arguments":"{}"}}`)
				}
				m.Calls = append(m.Calls, memory.Call{ID: "up" + id, Client: id, Raw: raw("up" + id)})
				own = append(own, raw(id))
				answers = append(answers, json.RawMessage(`{"role":"tool","tool_call_id":"`+id+`","content":"of `+id+`"}`))
				known[CallKey(id)] = turn
			}
			m.Calls = append(m.Calls, memory.Call{ID: fmt.Sprintf("ours%d", k), Raw: json.RawMessage(fmt.Sprintf(`{"id":"ours%d"}`, k)), Result: json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":"ours%d","content":"ours"}`, k))})
			said := &rawjson.Object{}
			said.Set("role", rawjson.Quote("assistant"))
			said.Set("content", rawjson.Quote(text))
			turn.Text, turn.Open, m.Message = text, m, said.Bytes()
			said.Set("tool_calls", rawjson.AppendArray(nil, own))
			apart = append(append(apart, said.Bytes()), answers...)
			calls, results = append(calls, own...), append(results, answers...)
			if says != "" && text != "" {
				says += []string{"", "\n", "\n\n"}[r.IntN(3)]
			}
			says += text
		}
		o := &rawjson.Object{}
		o.Set("role", rawjson.Quote("assistant"))
		o.Set("content", rawjson.Quote(says))
		o.Set("tool_calls", rawjson.AppendArray(nil, calls))
		if r.IntN(2) == 0 {
			r.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		}
		person := json.RawMessage(`{"role":"user","content":"Go."}`)
		joined := slices.Concat([]json.RawMessage{person, o.Bytes()}, results)
		apart = slices.Concat([]json.RawMessage{person}, apart)
		if r.IntN(2) == 0 {
			joined, apart = append(joined, person), append(apart, person)
		}
		told := func(messages []json.RawMessage) string {
			d := &model.Dialogue{Client: &model.Client{}, Request: model.Request{Object: &rawjson.Object{}}}
			thread := &Thread{Request: Request{Messages: messages, Known: known}, Dialogue: d}
			if err := thread.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, m := range d.History() {
				all = append(all, string(m))
			}
			return strings.Join(all, "\n")
		}
		if want, got := told(apart), told(joined); got != want {
			t.Fatalf("%d: %s is told as\n%s\nwant\n%s", seed, o.Bytes(), got, want)
		}
	}
}
