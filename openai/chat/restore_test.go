package chat

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// Making a history whole costs what it is long, also where every turn of it was a
// mixed one.
func TestRestoreIsLinear(t *testing.T) {
	cost := func(turns int) uint64 {
		store := &memory.Memory{}
		var body strings.Builder
		body.WriteString(`{"model":"m","stream":true,"messages":[{"role":"user","content":"Go."}`)
		first := newChat(t, &client{}, streamBody, Options{Caller: "alice"})
		for i := range turns {
			id := fmt.Sprintf("%s%022d", recall.ReadID, i)
			fmt.Fprintf(&body, `,{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"mine","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"one"}`, id, id)
			_ = store.Keep(t.Context(), first.thread.Request.Owner, []string{recall.CallKey(id)}, &memory.Turn{Open: &memory.Message{
				Message: []byte(`{"role":"assistant","content":null}`),
				Calls: []memory.Call{
					{ID: "call_a", Raw: []byte(`{"id":"call_a","type":"function","function":{"name":"weather__get","arguments":"{}"}}`), Result: []byte(`{"role":"tool","tool_call_id":"call_a","content":"hidden"}`)},
					{ID: "call_b", Client: id, Raw: []byte(`{"id":"call_b","type":"function","function":{"name":"mine","arguments":"{}"}}`)},
				},
			}})
		}
		body.WriteString(`]}`)
		hidden := 0
		chat := newChat(t, &client{}, body.String(), Options{Caller: "alice", Memory: store, Model: asking(func(_ context.Context, parts [][]byte) (*http.Response, error) {
			for _, p := range parts {
				hidden += strings.Count(string(p), `"hidden"`)
			}
			return streamed(strings.NewReader(fineStream)), nil
		})})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := (&dragoman.Loop{Tools: calling(nil)}).Run(t.Context(), chat)
		runtime.ReadMemStats(&after)
		if err != nil || hidden != turns {
			t.Fatalf("%d of %d turns were restored: %v", hidden, turns, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	cost(10)
	few, many := cost(100), cost(400)
	if many > 8*few {
		t.Errorf("100 turns allocate %d bytes, 400 allocate %d", few, many)
	}
}

// What a turn may use holds over all the requests that it takes.
func TestLimit(t *testing.T) {
	store := &memory.Memory{}
	first := newChat(t, &client{}, streamBody, Options{Caller: "alice"})
	id := recall.ReadID + "x"
	_ = store.Keep(t.Context(), first.thread.Request.Owner, []string{recall.CallKey(id)}, &memory.Turn{
		Spent: memory.Spent{Rounds: 3, Calls: 7, Bytes: 100},
		Open: &memory.Message{Message: []byte(`{"role":"assistant","content":null}`), Calls: []memory.Call{
			{ID: "call_b", Client: id, Raw: []byte(`{"id":"call_b","type":"function","function":{"name":"mine","arguments":"{}"}}`)},
		}},
	})
	next := strings.Replace(streamBody, `"Go."}`, `"Go."},{"role":"assistant","content":null,"tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"mine","arguments":"{}"}}]},{"role":"tool","tool_call_id":"`+id+`","content":"one"}`, 1)
	for _, tc := range []struct {
		limit memory.Spent
		ends  bool
	}{
		{memory.Spent{}, false},
		{memory.Spent{Rounds: 3}, true},
		{memory.Spent{Rounds: 4}, false},
		{memory.Spent{Calls: 7}, true},
		{memory.Spent{Bytes: 100}, true},
	} {
		sent := ""
		chat := newChat(t, &client{}, next, Options{Caller: "alice", Memory: store, Limit: tc.limit, Model: asking(func(_ context.Context, parts [][]byte) (*http.Response, error) {
			for _, p := range parts {
				sent += string(p)
			}
			return streamed(strings.NewReader(fineStream)), nil
		})})
		if err := (&dragoman.Loop{Tools: calling(nil)}).Run(t.Context(), chat); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(sent, `"tool_choice":"none"`); got != tc.ends {
			t.Errorf("limit %+v: last %v: %s", tc.limit, got, sent)
		}
	}
}
