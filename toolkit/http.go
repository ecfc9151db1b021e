package toolkit

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/wire/origin"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/toolcall"
)

const (
	// firstModern is the first revision without sessions; later ones sort after it.
	firstModern = "2026-07-28"

	maxBody     = 4 << 20          // bytes of one POST
	sessionIdle = 10 * time.Minute // after which a legacy session is forgotten
)

// Routes serves everything over HTTP, guarded by [Options.HTTP]:
//
//	/mcp      Streamable HTTP, both eras on the one URL
//	/sse      the HTTP+SSE transport of 2024-11-05, for old clients
//	/healthz  "ok", without authentication
//	/.well-known/oauth-protected-resource  metadata, where there is OAuth
//
// The error is that of [Server.Validate].
func (s *Server) Routes() (http.Handler, error) {
	streamable, err := s.Handler()
	if err != nil {
		return nil, err
	}
	old, err := s.SSE()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", streamable)
	mux.Handle("/sse", old)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	if o := s.opts.HTTP.OAuth; o != nil {
		metadata := o.metadataHandler()
		mux.Handle(metadataPath, metadata)
		mux.Handle(metadataPath+"/mcp", metadata)
	}
	return mux, nil
}

// Handler serves MCP over Streamable HTTP at whatever path it is mounted, in
// both eras on the one URL: the SDK's handler speaks one era each, so two of
// them stand behind a look at the request.
//
// Requests whose Host is neither loopback nor in [HTTP.Hosts], and requests from
// a foreign Origin, get status 403: otherwise any web page could use a server on
// its visitor's machine. Where a token is wanted, requests without get 401.
// After [Server.Close] the answer is 503.
func (s *Server) Handler() (http.Handler, error) {
	built, err := s.SDK()
	if err != nil {
		return nil, err
	}
	server := func(*http.Request) *sdk.Server { return built }
	// The SDK's own check of Host is off: it would refuse the hosts that were listed.
	both := &eras{
		stepUp: s.stepUp,
		legacy: sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{
			SessionTimeout: sessionIdle, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, Logger: s.opts.Logger,
			EventStore: sdk.NewMemoryEventStore(nil),
		}),
		modern: sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true,
			MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, Logger: s.opts.Logger,
		}),
	}
	return s.guard(both), nil
}

// guard lets through what may use the server.
func (s *Server) guard(next http.Handler) http.Handler {
	known := &origin.Guard{
		Hosts: s.opts.HTTP.Hosts, Origins: s.opts.HTTP.Origins,
		Methods: "GET, POST, DELETE",
		Expose:  "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate",
	}
	next = s.opts.HTTP.authenticated(s.counted(next), s.logger())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.ctx.Err() != nil:
			http.Error(w, "the server is closed", http.StatusServiceUnavailable)
		case !known.Host(r):
			http.Error(w, "forbidden: unknown Host", http.StatusForbidden)
		case known.Listed(r):
			if !known.Share(w, r) {
				next.ServeHTTP(w, r)
			}
		case !origin.Own(r):
			http.Error(w, "forbidden: foreign Origin", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// counted counts requests under way until they are answered in full, so that a
// server that stops does not cut an answer off. Streams that last as long as
// their session are not waited for.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Method") != "subscriptions/listen" {
			s.calls.enter()
			defer s.calls.leave()
		}
		next.ServeHTTP(w, r)
	})
}

// eras sends a request to the handler of its era. A request is modern if its
// header or its _meta names a protocol version, or if it asks server/discover;
// see "Dual-era servers" in MCP 2026-07-28.
type eras struct {
	legacy, modern http.Handler
	// stepUp may answer a message itself, and then reports true.
	stepUp func(http.ResponseWriter, *http.Request, envelope) bool
}

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
		if err := checkMessage(body); err != nil {
			answerError(w, http.StatusBadRequest, nil, jsonrpc.CodeParseError, "not valid JSON: "+err.Error())
			return
		}
		m := readEnvelope(body)
		modern = modern || m.version || m.method == "server/discover"
		if modern && m.method == "initialize" {
			answerError(w, http.StatusNotFound, m.id, jsonrpc.CodeMethodNotFound, "initialize does not exist in this protocol version")
			return
		}
		if e.stepUp(w, r, m) {
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

// checkMessage judges a message strictly, so that the SDK cannot read another method than
// we did. The arguments of a call the tool judges, as strictly.
func checkMessage(body []byte) error {
	err := rawjson.Check(body)
	if err != nil {
		if _, _, ok := toolcall.Apart(body); ok {
			return nil
		}
	}
	return err
}

// An envelope is what the era of a JSON-RPC message depends on. What is missing
// or of another type is zero: the SDK will say what is wrong with it.
type envelope struct {
	id      []byte
	method  string
	name    string // of the tool or prompt, or the address of the resource
	version bool   // params._meta names a protocol version
}

func readEnvelope(body []byte) envelope {
	var m envelope
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return m // a batch, which only legacy clients send
	}
	m.id = o.Get("id")
	m.method, _ = rawjson.String(o.Get("method"))
	if params, err := rawjson.ParseObject(o.Get("params")); err == nil {
		named := "name"
		if m.method == "resources/read" {
			named = "uri"
		}
		m.name, _ = rawjson.String(params.Get(named))
		if meta, err := rawjson.ParseObject(params.Get("_meta")); err == nil {
			m.version = meta.Get("io.modelcontextprotocol/protocolVersion") != nil
		}
	}
	return m
}

// answerError writes a JSON-RPC error. A nil id is written as null.
func answerError(w http.ResponseWriter, status int, id []byte, code int, text string) {
	if id == nil {
		id = []byte("null")
	}
	body := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	body = append(body, `,"error":{"code":`...)
	body = append(body, strconv.Itoa(code)...)
	body = append(body, `,"message":`...)
	body = append(rawjson.AppendQuote(body, text), "}}"...)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left needs no answer
}
