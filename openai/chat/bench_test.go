package chat

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/transcript"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

type nowhere struct{ header http.Header }

func (w nowhere) Header() http.Header              { return w.header }
func (w nowhere) WriteHeader(int)                  {}
func (w nowhere) Write(b []byte) (int, error)      { return len(b), nil }
func (w nowhere) FlushError() error                { return nil }
func (w nowhere) SetWriteDeadline(time.Time) error { return nil }

// endless is a stream of n chunks with text, made as it is read.
func endless(n int, content string) io.Reader {
	first := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	chunk := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"` + content + `":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	last := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	return io.MultiReader(strings.NewReader(first), &repeated{text: chunk, n: n}, strings.NewReader(last))
}

type repeated struct {
	text string
	n    int
	at   int
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.text[r.at:])
	if r.at += n; r.at == len(r.text) {
		r.at, r.n = 0, r.n-1
	}
	return n, nil
}

// BenchmarkChunk is the cost of one chunk, read, looked at and forwarded: as it
// came in the first round, and with another id in a later one.
func BenchmarkChunk(b *testing.B) {
	for _, round := range []int{1, 2} {
		b.Run("round"+strconv.Itoa(round), func(b *testing.B) {
			chat := newChat(b, nowhere{http.Header{}}, streamBody, Options{Heartbeat: time.Hour,
				Model: asking(func(context.Context, [][]byte) (*http.Response, error) { return streamed(endless(b.N, "content")), nil })})
			chat.out.Begin(nil)
			defer chat.out.Close()
			if round > 1 {
				chat.rounds = make([]json.RawMessage, round-1)
				chat.id, chat.created, chat.model, chat.role = rawjson.Quote("chatcmpl-0"), []byte("1"), rawjson.Quote("m"), true
			}
			b.ReportAllocs()
			b.ResetTimer()
			if _, err := chat.options.Model.Ask(b.Context(), nil, chat.listener()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkCompletion is a whole answer of one chunk, from the request's bytes to
// the last of the answer, with the transcripts' tools offered.
func BenchmarkCompletion(b *testing.B) {
	b.ReportAllocs()
	offers := &model.Offers{}
	for b.Loop() {
		chat := newChat(b, nowhere{http.Header{}}, streamBody, Options{Offers: offers, Memory: &memory.Memory{},
			Model: asking(func(context.Context, [][]byte) (*http.Response, error) {
				return streamed(strings.NewReader(fineStream)), nil
			})})
		_ = chat.Offer(transcript.List)
		if _, err := chat.Next(b.Context(), false); err != nil {
			b.Fatal(err)
		}
		_ = chat.Close(nil)
	}
}
