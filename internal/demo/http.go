package demo

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// firstModern is the first revision without sessions; later ones sort after it.
	firstModern = "2026-07-28"

	maxBody     = 4 << 20          // bytes of one POST
	sessionIdle = 10 * time.Minute // after which a legacy session is forgotten
)

// Handler serves MCP over Streamable HTTP at whatever path it is mounted, in
// both eras on the one URL: the SDK's handler speaks one era each, so two of
// them stand behind a look at the request.
//
// Requests whose Host is neither loopback nor in [Options.Hosts], and requests
// from a foreign Origin, get status 403: otherwise any web page could use a
// server on its visitor's machine. After [Demo.Close] the answer is 503.
func (d *Demo) Handler() http.Handler {
	server := func(*http.Request) *sdk.Server { return d.server }
	// The SDK's own check of Host is off: it would refuse the hosts that were listed.
	both := &eras{
		legacy: sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{
			SessionTimeout: sessionIdle, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, Logger: d.log,
		}),
		modern: sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true,
			MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, Logger: d.log,
		}),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case d.ctx.Err() != nil:
			http.Error(w, "the demo server is closed", http.StatusServiceUnavailable)
		case !d.knownHost(r.Host):
			http.Error(w, "forbidden: unknown Host", http.StatusForbidden)
		case !sameOrigin(r):
			http.Error(w, "forbidden: foreign Origin", http.StatusForbidden)
		default:
			both.ServeHTTP(w, r)
		}
	})
}

// knownHost tells whether a Host header names this machine or a host that the
// operator listed, with any port.
func (d *Demo) knownHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(d.hosts, func(known string) bool { return strings.EqualFold(known, host) })
}

// sameOrigin refuses what a browser says comes from another site.
// [http.CrossOriginProtection] lets every GET pass; MCP wants the Origin of
// those checked as well, because a GET opens a stream.
func sameOrigin(r *http.Request) bool {
	if http.NewCrossOriginProtection().Check(r) != nil {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}

// eras sends a request to the handler of its era. A request is modern if its
// header or its _meta names a protocol version, or if it asks server/discover;
// see "Dual-era servers" in MCP 2026-07-28.
type eras struct{ legacy, modern http.Handler }

func (e *eras) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	modern := r.Header.Get("Mcp-Protocol-Version") >= firstModern
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, tooLarge.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "cannot read the request", http.StatusBadRequest)
			return
		}
		// Strict, so that the SDK cannot read another method than we did.
		if !jsontext.Value(body).IsValid() {
			answerError(w, http.StatusBadRequest, nil, jsonrpc.CodeParseError, "not valid JSON, or a name occurs twice")
			return
		}
		m := readEnvelope(body)
		modern = modern || m.version != nil || m.method == "server/discover"
		if modern && m.method == "initialize" {
			answerError(w, http.StatusNotFound, m.id, jsonrpc.CodeMethodNotFound, "initialize does not exist in this protocol version")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if modern {
		e.modern.ServeHTTP(w, r)
		return
	}
	e.legacy.ServeHTTP(w, r)
}

// An envelope is what the era of a JSON-RPC message depends on. What is missing
// or of another type is zero: the SDK will say what is wrong with it.
type envelope struct {
	id      jsontext.Value
	method  string
	version jsontext.Value // in params._meta
}

func readEnvelope(body jsontext.Value) envelope {
	var outer struct {
		ID     jsontext.Value `json:"id"`
		Method jsontext.Value `json:"method"`
		Params jsontext.Value `json:"params"`
	}
	var params struct {
		Meta jsontext.Value `json:"_meta"`
	}
	var meta struct {
		Version jsontext.Value `json:"io.modelcontextprotocol/protocolVersion"`
	}
	var m envelope
	if json.Unmarshal(body, &outer) != nil {
		return m // a batch, which only legacy clients send
	}
	m.id = outer.ID
	if json.Unmarshal(outer.Method, &m.method) != nil {
		m.method = ""
	}
	if json.Unmarshal(outer.Params, &params) == nil && json.Unmarshal(params.Meta, &meta) == nil {
		m.version = meta.Version
	}
	return m
}

// answerError writes a JSON-RPC error. A nil id is written as null.
func answerError(w http.ResponseWriter, status int, id jsontext.Value, code int, text string) {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if id == nil {
		id = jsontext.Value("null")
	}
	body, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Error   failure        `json:"error"`
	}{"2.0", id, failure{code, text}})
	if err != nil {
		http.Error(w, text, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left needs no answer
}
