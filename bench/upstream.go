package main

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An upstream answers chat requests at once. What it answers is told by the
// model's name: "stream-N" streams N chunks as fast as they are read, "paced-N"
// streams them as a fast model does; "hold" opens a stream and leaves it open;
// "tool" calls a tool unless a result is there; others get one text.
type upstream struct {
	keeping atomic.Bool            // from GET /keep to GET /last
	last    atomic.Pointer[[]byte] // the newest body in between
}

const (
	plainBody = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"` + plainText + `","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":60,"total_tokens":80}}`
	plainText = "A dragoman stood between two courts and let each speak its own language. He was trusted by both, and was careful to lose nothing of what was said, to add nothing of his own, and to ask before he did anything that could not be undone."
	callBody  = `{"id":"chatcmpl-2","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bench__lookup","arguments":"{\"message\":\"hi\"}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}}`
	chunkHead = `data: {"id":"chatcmpl-3","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":`
	firstPart = chunkHead + `{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	textPart  = chunkHead + `{"content":" a word"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	lastPart  = chunkHead + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

// requestBodies are used again, so that a large request costs no more than reading
// it takes.
var requestBodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/keep":
		u.keeping.Store(true)
		return
	case "/last":
		u.keeping.Store(false)
		if last := u.last.Load(); last != nil {
			w.Write(*last)
		}
		return
	}
	buf := requestBodies.Get().(*bytes.Buffer)
	defer requestBodies.Put(buf)
	buf.Reset()
	if _, err := buf.ReadFrom(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body := buf.Bytes()
	if u.keeping.Load() {
		kept := bytes.Clone(body)
		u.last.Store(&kept)
	}
	_, model, _ := bytes.Cut(body, []byte(`"model":"`))
	model, _, _ = bytes.Cut(model, []byte(`"`))
	if n, ok := strings.CutPrefix(string(model), "stream-"); ok {
		chunks, _ := strconv.Atoi(n)
		stream(w, chunks, 0)
		return
	}
	if n, ok := strings.CutPrefix(string(model), "paced-"); ok {
		chunks, _ := strconv.Atoi(n)
		stream(w, chunks, pace)
		return
	}
	switch string(model) {
	case "hold":
		stream(w, -1, 0)
		<-r.Context().Done()
	case "tool":
		if bytes.Contains(body, []byte(`"role":"tool"`)) {
			reply(w, plainBody)
		} else {
			reply(w, callBody)
		}
	default:
		reply(w, plainBody)
	}
}

func reply(w http.ResponseWriter, body string) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	io.WriteString(w, body)
}

// pace is the time between two chunks of a fast model: 200 tokens a second.
const pace = 5 * time.Millisecond

// stream sends that many chunks of text, each flushed, with a pause between them;
// a negative number sends one and leaves the stream open.
func stream(w http.ResponseWriter, chunks int, pause time.Duration) {
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	rc := http.NewResponseController(w)
	io.WriteString(w, firstPart)
	rc.Flush()
	if chunks < 0 {
		return
	}
	for range chunks {
		time.Sleep(pause)
		io.WriteString(w, textPart)
		rc.Flush()
	}
	io.WriteString(w, lastPart)
	rc.Flush()
}
