package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
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
		target, err := url.Parse(os.Getenv(envTarget))
		if err != nil {
			log.Fatal(err)
		}
		handler = newProxy(target)
	case "null":
		gateway, err := newNull()
		if err != nil {
			log.Fatal(err)
		}
		handler = gateway
	case "mcp":
		handler = fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{benchTool}})
	case "mcpcorpus":
		tools, err := corpusTools(os.Getenv(envCorpus))
		if err != nil {
			log.Fatal(err)
		}
		handler = fakemcp.New(fakemcp.Config{Keep: -1, Tools: tools})
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
	reverse := &httputil.ReverseProxy{
		Transport: newTransport(),
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An upstream that answers at once can be faster than the transport is in
		// noticing the end of the request's body. Without this the server then
		// closes the body, which the transport takes for an error, and breaks the
		// stream.
		http.NewResponseController(w).EnableFullDuplex()
		reverse.ServeHTTP(w, r)
	})
}

// newTransport keeps as many idle connections as there are clients.
func newTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 4096
	return transport
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

// patience is how long anything may take to start.
const patience = 30 * time.Second
