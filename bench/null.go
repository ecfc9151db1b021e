package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// What the null gateway is told by its environment.
const (
	envTarget = "BENCH_TARGET" // base URL of the upstream
	envServer = "BENCH_SERVER" // base URL of the MCP server; set: a whole conversation
	envTools  = "BENCH_TOOLS"  // file with what takes the place of a request's last brace
	envSecond = "BENCH_SECOND" // file with the second request of the conversation
)

// A nullGateway makes the round trips that the gateway makes for the same work,
// through the same net/http, and looks at nothing: no request is parsed, no name
// looked up, no answer understood. What it costs is what a gateway in Go costs at
// least; what we cost more is our own doing.
type nullGateway struct {
	transport        *http.Transport
	upstream, server string
	tools, second    []byte
}

func newNull() (*nullGateway, error) {
	g := &nullGateway{transport: newTransport(), upstream: os.Getenv(envTarget) + "/v1/chat/completions"}
	g.transport.DisableCompression = true
	if server := os.Getenv(envServer); server != "" {
		g.server = server + "/mcp"
	}
	for name, to := range map[string]*[]byte{envTools: &g.tools, envSecond: &g.second} {
		if path := os.Getenv(name); path != "" {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("what the null gateway sends: %w", err)
			}
			*to = data
		}
	}
	return g, nil
}

// callMessage is the tools/call of benchTool, as the gateway sends it.
const callMessage = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lookup","arguments":{"message":"hi"},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + fakemcp.Modern + `","io.modelcontextprotocol/clientCapabilities":{}}}}`

func (g *nullGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(r.Body, r.ContentLength)
	if err == nil {
		err = g.answer(r.Context(), w, body)
	}
	if err != nil && r.Context().Err() == nil {
		log.Print("null gateway: ", err)
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

func (g *nullGateway) answer(ctx context.Context, w http.ResponseWriter, body []byte) error {
	if g.server != "" {
		for _, send := range []func() (*http.Response, error){
			func() (*http.Response, error) { return g.ask(ctx, body) },
			func() (*http.Response, error) { return g.call(ctx) },
		} {
			res, err := send()
			if err != nil {
				return err
			}
			if _, err := drained(res); err != nil {
				return err
			}
		}
		body = g.second
	}
	res, err := g.ask(ctx, body)
	if err != nil {
		return err
	}
	if res.ContentLength < 0 {
		return relay(w, res)
	}
	data, err := drained(res)
	if err != nil {
		return err
	}
	h := w.Header()
	h["Content-Type"] = res.Header["Content-Type"]
	h["Content-Length"] = []string{strconv.Itoa(len(data))}
	_, err = w.Write(data)
	return err
}

// mostCopied is the size in bytes up to which one piece is cheaper than two:
// net/http sends the header in a packet of its own before a body of a type that
// it does not know.
const mostCopied = 16 << 10

// ask sends a request to the upstream, with tools where there are some.
func (g *nullGateway) ask(ctx context.Context, body []byte) (*http.Response, error) {
	if g.tools == nil || g.server != "" {
		return g.post(ctx, g.upstream, bytes.NewReader(body), len(body), nil)
	}
	body = body[:len(body)-1]
	n := len(body) + len(g.tools)
	if n <= mostCopied {
		return g.post(ctx, g.upstream, bytes.NewReader(slices.Concat(body, g.tools)), n, nil)
	}
	return g.post(ctx, g.upstream, io.MultiReader(bytes.NewReader(body), bytes.NewReader(g.tools)), n, nil)
}

func (g *nullGateway) call(ctx context.Context) (*http.Response, error) {
	return g.post(ctx, g.server, bytes.NewReader([]byte(callMessage)), len(callMessage), func(h http.Header) {
		h.Set("Accept", "application/json, text/event-stream")
		h.Set("Mcp-Protocol-Version", fakemcp.Modern)
		h.Set("Mcp-Method", "tools/call")
		h.Set("Mcp-Name", benchTool.Name)
	})
}

func (g *nullGateway) post(ctx context.Context, url string, body io.Reader, n int, more func(http.Header)) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(n)
	req.Header["Content-Type"] = []string{"application/json"}
	if more != nil {
		more(req.Header)
	}
	return g.transport.RoundTrip(req)
}

// relay passes a stream on as it comes.
func relay(w http.ResponseWriter, res *http.Response) error {
	defer res.Body.Close()
	w.Header()["Content-Type"] = res.Header["Content-Type"]
	control := http.NewResponseController(w)
	buf := make([]byte, 4<<10)
	for {
		n, err := res.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			if err := control.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func drained(res *http.Response) ([]byte, error) {
	defer res.Body.Close()
	return readAll(res.Body, res.ContentLength)
}

// readAll reads a body into memory of its size, and its end, without which the
// connection cannot be used again.
func readAll(r io.Reader, n int64) ([]byte, error) {
	if n < 0 {
		return io.ReadAll(r)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	_, err := io.Copy(io.Discard, r)
	return data, err
}
