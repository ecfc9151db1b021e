package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/fakemcp"
)

// envRole makes this program one of the processes that the gateway is measured
// with, in place of the measurement.
const envRole = "BENCH_ROLE"

// serveRole serves a role on a free port, which it prints, until it is killed.
func serveRole(role string) {
	var handler http.Handler
	switch role {
	case "upstream":
		handler = new(upstream)
	case "proxy":
		target, err := url.Parse(os.Getenv("BENCH_TARGET"))
		if err != nil {
			log.Fatal(err)
		}
		handler = newProxy(target)
	case "mcp":
		handler = fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{benchTool}})
	case "mcp300":
		handler = fakemcp.New(fakemcp.Config{Keep: -1, Tools: manyTools(300)})
	default:
		log.Fatalf("no role %q", role)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, handler))
}

// newProxy is what the gateway is compared with: httputil.ReverseProxy as
// anybody would set it up, with as many idle connections as there are clients.
func newProxy(target *url.URL) http.Handler {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 4096
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An upstream that answers at once can be faster than the transport is in
		// noticing the end of the request's body. Without this the server then
		// closes the body, which the transport takes for an error, and breaks the
		// stream.
		http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})
}

// benchTool answers 1 KB of text at once.
var benchTool = fakemcp.Tool{Name: "lookup", Do: fakemcp.Big, Size: 1024}

// manyTools are n tools of the size that real ones have: about 1 KB each.
func manyTools(n int) []fakemcp.Tool {
	tools := make([]fakemcp.Tool, n)
	for i := range tools {
		var properties []string
		for p := range 8 {
			properties = append(properties, fmt.Sprintf(`"field_%d":{"type":"string","description":"What field %d of tool %d stands for, in a few words"}`, p, p, i))
		}
		tools[i] = fakemcp.Tool{
			Name:        fmt.Sprintf("action_%03d", i),
			Description: fmt.Sprintf("Does action number %d on the things that its fields name, and tells what came of it.", i),
			InputSchema: []byte(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":["field_0","field_1"]}`),
		}
	}
	return tools
}

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

// patience is how long anything may take to start.
const patience = 30 * time.Second
