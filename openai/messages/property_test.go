package messages

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// round writes a message of the model's as a stream: thoughts, text and calls, each of
// them or not. The last one has no call of ours.
func round(random *rand.Rand, n int, last bool) string {
	var b strings.Builder
	chunk := func(delta, finish string) {
		fmt.Fprintf(&b, `data: {"id":"c%d","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", n, delta, finish)
	}
	for range random.IntN(3) {
		chunk(`{"reasoning_content":"hm "}`, "null")
	}
	for range random.IntN(3) {
		chunk(`{"content":"word "}`, "null")
	}
	calls := random.IntN(3)
	if !last {
		calls++
	}
	for i := range calls {
		name := "weather__time"
		if last {
			name = "mine"
		} else if random.IntN(4) == 0 {
			name = "files__save"
		}
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":"{\"path\":\"a\"}"}}]}`, i, i, name), "null")
	}
	finish := `"stop"`
	if calls > 0 {
		finish = `"tool_calls"`
	}
	chunk("{}", finish)
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

// TestOneMessage: however many rounds an answer takes, its stream is one message, of
// blocks one behind the other with indexes without gaps, each begun and ended once.
func TestOneMessage(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		rounds, asked := random.IntN(6), 0
		client := &model.Client{Dialect: mustDialect(t, "deepseek"), Post: func(context.Context, [][]byte) (*http.Response, error) {
			body := round(random, asked, asked == rounds)
			asked++
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}}
		servers := ""
		if random.IntN(2) == 0 {
			servers = `,"mcp_servers":[{"name":"files"}]`
		}
		request, err := Parse([]byte(`{"model":"m","max_tokens":9,"stream":true,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"Go."}],` +
			`"tools":[{"name":"mine","input_schema":{"type":"object"}}]` + servers + `}`))
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		c, err := New(request, w, Options{Options: chat.Options{Model: client, Memory: &memory.Memory{}}})
		if err != nil {
			t.Fatal(err)
		}
		loop := dragoman.Loop{Tools: new(shop)}
		if err := loop.Run(t.Context(), c); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := oneMessage(w.Body.String()); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w.Body)
		}
	}
}

// oneMessage says what is wrong with a stream.
func oneMessage(stream string) error {
	const before, inside, over = 0, 1, 2
	state, next, open, ids := before, 0, false, map[string]bool{}
	for event := range strings.SplitSeq(strings.TrimSpace(stream), "\n\n") {
		name, data, ok := strings.Cut(event, "\ndata: ")
		var e struct {
			Type         string
			Index        int
			ContentBlock struct{ Type, ID string } `json:"content_block"`
			Delta        json.RawMessage
		}
		if !ok || json.Unmarshal([]byte(data), &e) != nil || name != "event: "+e.Type {
			return fmt.Errorf("no event: %s", event)
		}
		wrong := false
		switch e.Type {
		case "message_start":
			wrong, state = state != before, inside
		case "content_block_start":
			wrong, open = state != inside || open || e.Index != next || ids[e.ContentBlock.ID], true
			ids[e.ContentBlock.ID] = e.ContentBlock.ID != ""
		case "content_block_delta":
			wrong = !open || e.Index != next
		case "content_block_stop":
			wrong, open = !open || e.Index != next, false
			next++
		case "message_delta":
			wrong, state = state != inside || open, over
		case "message_stop":
			wrong, state = state != over, over+1
		default:
			wrong = true
		}
		if wrong {
			return fmt.Errorf("out of place: %s", event)
		}
	}
	if state != over+1 {
		return fmt.Errorf("the message has no end")
	}
	return nil
}

// FuzzParse: no body of a request brings the half down, or its history.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]}`))
	f.Add([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"mcp_tool_use","id":"a","name":"b","server_name":"c","input":{}},{"type":"mcp_tool_result","tool_use_id":"a","content":"x"}]}],"mcp_servers":[{"name":"c"}]}`))
	f.Add([]byte(`{"model":"m","max_tokens":1,"system":[{"type":"text","text":"a"}],"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{}}]}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		request, err := Parse(body)
		if err != nil {
			return
		}
		_ = request.Count()
		c, err := New(request, httptest.NewRecorder(), Options{Options: chat.Options{Model: &model.Client{}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Offer(shopList); err != nil {
			if _, ok := model.AsError(err); !ok {
				t.Fatal(err)
			}
			return
		}
		for _, m := range c.thread.Request.Messages {
			if !json.Valid(m) {
				t.Fatalf("%s", m)
			}
		}
	})
}
