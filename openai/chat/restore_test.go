package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// Making a history whole costs what it is long, also where every turn of it was a
// mixed one, and where all are the same one.
func TestRestoreIsLinear(t *testing.T) {
	cost := func(turns, different int) uint64 {
		store := &memory.Memory{}
		var body strings.Builder
		body.WriteString(`{"model":"m","stream":true,"messages":[{"role":"user","content":"Go."}`)
		first := newChat(t, &client{}, streamBody, Options{Caller: "alice"})
		for i := range turns {
			id := fmt.Sprintf("%s%022d", recall.ReadID, i%different)
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
	cost(10, 10)
	for _, different := range []int{400, 1} {
		few, many := cost(100, different), cost(400, different)
		if many > 8*few {
			t.Errorf("of %d turns that differ, 100 allocate %d bytes, 400 allocate %d", different, few, many)
		}
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

// A keeper is a memory that shows what it was given.
type keeper struct {
	memory.Memory
	turns []*memory.Turn
}

func (k *keeper) Keep(ctx context.Context, owner string, keys []string, t *memory.Turn) error {
	k.turns = append(k.turns, t)
	return k.Memory.Keep(ctx, owner, keys, t)
}

// TestUndeliveredIsKeptOnce: an answer that is kept for the request when it comes again
// has the model's message, which may be long, in one place.
func TestUndeliveredIsKeptOnce(t *testing.T) {
	store := &keeper{}
	const message = `{"role":"assistant","content":"Long text.","tool_calls":[{"id":"a","type":"function","function":{"name":"files__save","arguments":"{\"path\":\"/a\"}"}},{"id":"b","type":"function","function":{"name":"mine","arguments":"{}"}}]}`
	body := strings.Replace(strings.TrimSuffix(streamBody, "}")+`,"tools":[{"type":"function","function":{"name":"mine","parameters":{"type":"object","properties":{}}}}]}`, `"stream":true,`, "", 1)
	chat := newChat(t, &client{}, body, Options{Caller: "alice", Memory: store, Model: asking(func(context.Context, [][]byte) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(
			`{"id":"x","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"tool_calls"}]}`))}, nil
	})})
	tools := calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return done, nil })
	if err := (&dragoman.Loop{Tools: tools}).Run(t.Context(), chat); err != nil {
		t.Fatal(err)
	}
	kept := ""
	for _, turn := range store.turns {
		kept += string(turn.Undelivered)
	}
	if n := strings.Count(kept, "Long text."); n != 2 { // the message, and the text that the client sees
		t.Errorf("the text stands %d times in %s", n, kept)
	}
	if !strings.Contains(kept, `"message":null`) || !strings.Contains(kept, `"choices":null`) {
		t.Errorf("no place is kept in %s", kept)
	}
}

// remembering plays a request of Alice's, whose tools say what result does, and returns what the
// model was sent last.
func remembering(t *testing.T, store memory.Store, members, messages string, result dragoman.Result, streams ...string) (sent string) {
	t.Helper()
	post := answers(streams...)
	chat := newChat(t, &client{}, `{"model":"m","stream":true`+members+`,"messages":[`+messages+`]}`, Options{
		Caller: "alice", Memory: store, Model: asking(func(ctx context.Context, parts [][]byte) (*http.Response, error) {
			sent = string(bytes.Join(parts, nil))
			return post(ctx, parts)
		})})
	tools := calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return result, nil })
	if err := (&dragoman.Loop{Tools: tools}).Run(t.Context(), chat); err != nil {
		t.Fatal(err)
	}
	return sent
}

// TestSystemMessageThatChanges: agents write into the system message in front what is
// different with each turn, such as the time. Where the request names its conversation, or
// an id of ours in it does, what tools said is put back all the same; where nothing does,
// it is what tells apart two people behind one key who say the same.
func TestSystemMessageThatChanges(t *testing.T) {
	const (
		at    = `{"role":"system","content":"It is %s."},`
		go1   = `{"role":"user","content":"%s"}`
		own   = `,{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"mine","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"one"}`
		fine  = `,{"role":"assistant","content":"Fine."}`
		again = `,{"role":"user","content":"And now?"}`
	)
	long, id := strings.Repeat("Go on. ", 40), recall.ReadID+strings.Repeat("A", 22)
	for _, tc := range []struct {
		name, members, turn, next string
		back                      bool
	}{
		{"the same", ``, fmt.Sprintf(go1, long), "10:01", true},
		{"nothing names it", ``, fmt.Sprintf(go1, long), "10:02", false},
		{"a person", `,"user":"ada"`, fmt.Sprintf(go1, "Go."), "10:02", true},
		{"a conversation", `,"prompt_cache_key":"one"`, fmt.Sprintf(go1, long), "10:02", true},
		{"an id of ours", ``, fmt.Sprintf(go1, "Go.") + fmt.Sprintf(own, id, id), "10:02", true},
		{"an id of the client's", ``, fmt.Sprintf(go1, long) + fmt.Sprintf(own, "call_dragoman0", "call_dragoman0"), "10:02", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := &memory.Memory{}
			ask := func(messages string, streams ...string) string {
				t.Helper()
				return remembering(t, store, tc.members, messages, done, streams...)
			}
			ask(fmt.Sprintf(at, "10:01")+tc.turn, getStream, fineStream)
			sent := ask(fmt.Sprintf(at, tc.next)+tc.turn+fine+again, fineStream)
			if back := strings.Contains(sent, "weather__get\",\"arguments"); back != tc.back {
				t.Errorf("what the tool said was put back: %v: %s", back, sent)
			}
		})
	}
}

// TestPastThatChanges: agents change what is long past of a conversation: they say in the first
// message where they run now, clear old results, or put a summary in the place of all that.
// What tools said since is put back where an id of ours is between the two, and all behind it
// is the same.
func TestPastThatChanges(t *testing.T) {
	id := recall.ReadID + strings.Repeat("A", 22)
	first, call := `{"role":"user","content":"%s"}`, `,{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"mine","arguments":"{}"}}]}`
	result := `,{"role":"tool","tool_call_id":%q,"content":"%s"}`
	past := func(said, id, got string) string {
		return fmt.Sprintf(first, said) + fmt.Sprintf(call, id) + fmt.Sprintf(result, id, got)
	}
	long := strings.Repeat("Go on. ", 40)
	for _, tc := range []struct {
		name, members, was, is string
		back                   bool
	}{
		{"another folder", ``, past("In /a.", id, "one"), past("In /b.", id, "one"), true},
		{"another folder of a person", `,"user":"ada"`, past("In /a.", id, "one"), past("In /b.", id, "one"), true},
		{"a summary", ``, past(long, "call_1", "one") + `,` + past("Go.", id, "two"), fmt.Sprintf(first, "So far: all is well.") + `,` + past("Go.", id, "two"), true},
		{"an old result is cleared", ``, past("Go.", "call_dragoman0"+strings.Repeat("B", 22), "one") + `,` + past("Go.", id, "two"), past("Go.", "call_dragoman0"+strings.Repeat("B", 22), "[cleared]") + `,` + past("Go.", id, "two"), true},
		{"what is behind the id", ``, past("Go.", id, "one"), past("Go.", id, "[cleared]"), false},
		{"an id of the client's", ``, past("In /a. "+long, "call_dragoman0", "one"), past("In /b. "+long, "call_dragoman0", "one"), false},
		{"a person alone", `,"user":"ada"`, fmt.Sprintf(first, "In /a."), fmt.Sprintf(first, "In /b."), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := &memory.Memory{}
			remembering(t, store, tc.members, tc.was, done, getStream, fineStream)
			sent := remembering(t, store, tc.members, tc.is+`,{"role":"assistant","content":"Fine."},{"role":"user","content":"And now?"}`, done, fineStream)
			if back := strings.Contains(sent, "weather__get\",\"arguments"); back != tc.back {
				t.Errorf("what the tool said was put back: %v: %s", back, sent)
			}
		})
	}
}

// TestAgentsOfOneConversation: what tools said to one of several agents that were asked the same
// and answered the same is put back for that one alone, though the conversation that they share is
// named. What tells them apart is their system message; where they have the same one, nothing does.
func TestAgentsOfOneConversation(t *testing.T) {
	long, id := strings.Repeat("Go on. ", 40), recall.ReadID+strings.Repeat("A", 22)
	own := fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"mine","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"one"}`, id, id)
	for _, tc := range []struct {
		name, members, turn string
		systems             [2]string
		back                [2]string // what is put back for each
	}{
		{"nothing names it", ``, ``, [2]string{"You bill.", "You forecast."}, [2]string{"0", "1"}},
		{"a person", `,"user":"ada"`, ``, [2]string{"You bill.", "You forecast."}, [2]string{"0", "1"}},
		{"an id of ours", ``, own, [2]string{"You bill.", "You forecast."}, [2]string{"0", "1"}},
		{"an id of ours, the same agent", ``, own, [2]string{"You bill.", "You bill."}, [2]string{"", ""}},
		{"an id of ours, no system message", ``, own, [2]string{}, [2]string{"", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := &memory.Memory{}
			ask := func(agent int, rest string, streams ...string) string {
				t.Helper()
				messages := fmt.Sprintf(`{"role":"user","content":%q}`, long) + tc.turn + rest
				if system := tc.systems[agent]; system != "" {
					messages = fmt.Sprintf(`{"role":"system","content":%q},`, system) + messages
				}
				result := dragoman.Result{Content: fmt.Appendf(nil, `{"content":[],"structuredContent":"secret of %d"}`, agent)}
				return remembering(t, store, tc.members, messages, result, streams...)
			}
			for agent := range tc.systems {
				ask(agent, "", getStream, fineStream)
			}
			for agent, want := range tc.back {
				sent := ask(agent, `,{"role":"assistant","content":"Fine."},{"role":"user","content":"And now?"}`, fineStream)
				got := ""
				for other := range tc.systems {
					if strings.Contains(sent, fmt.Sprintf("secret of %d", other)) {
						got += fmt.Sprint(other)
					}
				}
				if got != want {
					t.Errorf("agent %d has what tools said to %q, want %q", agent, got, want)
				}
			}
		})
	}
}

// TestBrokenOff: a person who stops an answer and says something else goes on behind what tools
// did for it, where the request names its conversation, or an id of ours in it does. Where the
// same is asked again, what was stopped is over; so is it for another conversation that begins
// with the same words.
func TestBrokenOff(t *testing.T) {
	const (
		front    = `{"role":"system","content":"It is %s."},`
		asked    = `{"role":"user","content":"Go."}`
		next     = `,{"role":"user","content":"And now?"}`
		weStream = `data: {"id":"up2","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"We will"},"finish_reason":null}]}` + "\n\n"
		part     = `,{"role":"assistant","content":"We"}`
		fine     = `,{"role":"assistant","content":"Fine."}`
		named    = `,"prompt_cache_key":"one"`
		called   = `weather__get","arguments`
	)
	id := recall.ReadID + strings.Repeat("A", 22)
	own := fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"mine","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"one"}`, id, id)
	long := `{"role":"user","content":"` + strings.Repeat("Go on. ", 40) + `"}`
	for _, tc := range []struct {
		name, members, turn, said, next string
		again, back                     bool
	}{
		{"nothing was said", named, asked, "", next, false, true},
		{"something was said", named, asked, weStream, part + next, false, true},
		{"what was said is not kept", named, asked, weStream, next, false, true},
		{"something said since", named, asked, weStream, part + next + fine + next, false, true},
		{"behind a result of the client's", ``, asked + own, "", next, false, true},
		{"nothing names it", ``, long, "", next, false, false},
		{"asked again", named, asked, "", fine + next, true, false},
		{"another's, which was answered", named, asked, "", fine + next, false, false},
		{"another's, which was answered otherwise", named, asked, weStream, fine + next, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := &memory.Memory{}
			first := answers(getStream)
			asks := 0
			chat := newChat(t, &client{}, `{"model":"m","stream":true`+tc.members+`,"messages":[`+fmt.Sprintf(front, "10:01")+tc.turn+`]}`, Options{
				Caller: "alice", Memory: store, Model: asking(func(ctx context.Context, parts [][]byte) (*http.Response, error) {
					if asks++; asks == 1 {
						return first(ctx, parts)
					}
					return streamed(io.MultiReader(strings.NewReader(tc.said), iotest.ErrReader(context.Canceled))), nil
				})})
			tools := calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return done, nil })
			if err := (&dragoman.Loop{Tools: tools}).Run(t.Context(), chat); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if tc.again {
				if sent := remembering(t, store, tc.members, fmt.Sprintf(front, "10:02")+tc.turn, done, fineStream); strings.Contains(sent, called) {
					t.Errorf("a request that is new goes on with another one: %s", sent)
				}
			}
			sent := remembering(t, store, tc.members, fmt.Sprintf(front, "10:03")+tc.turn+tc.next, done, fineStream)
			if n := strings.Count(sent, called); n != map[bool]int{true: 1}[tc.back] {
				t.Errorf("what the tool said was put back %d times: %s", n, sent)
			}
		})
	}
}
