// Bare is the tickets server beside it, written with the official SDK alone, to
// see what the toolkit saves. README.md says what both do and what this one
// leaves out all the same.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/dragoman-mcp/dragoman/examples/tickets/tracker"
)

func main() {
	file := flag.String("db", "tickets.db", "`file` of the tracker")
	address := flag.String("http", "", "serve over HTTP at this `address`")
	keyFile := flag.String("keys", "", "`file` of API keys")
	newKey := flag.String("new-key", "", "make a key for this `user`")
	rights := flag.String("rights", "", "what the new key may do")
	flag.Parse()
	if *newKey != "" {
		if err := makeKey(*keyFile, *newKey, strings.Split(*rights, ",")); err != nil {
			log.Fatal(err)
		}
		return
	}
	db, err := tracker.Open(context.Background(), *file)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := &server{db: db, limits: map[string]*rate.Limiter{}, trail: os.Stderr}
	if *address != "" {
		err = s.listen(ctx, *address, *keyFile)
	} else {
		s.local = true
		err = s.build().Run(ctx, &mcp.StdioTransport{})
	}
	stop()
	if err := errors.Join(err, db.Close()); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
		log.Fatal(err)
	}
}

// A server holds what the calls share.
type server struct {
	db     *tracker.Tracker
	local  bool
	mu     sync.Mutex
	limits map[string]*rate.Limiter
	trail  io.Writer
}

type (
	ticketID struct {
		ID int64 `json:"id" jsonschema:"Number of the ticket"`
	}
	draft struct {
		Title string `json:"title" jsonschema:"What is to be done, in a few words"`
		Body  string `json:"body,omitempty" jsonschema:"Details"`
		Due   string `json:"due,omitempty" jsonschema:"Day it must be done"`
	}
	query struct {
		Words  string `json:"words,omitempty" jsonschema:"Part of the title or the body"`
		Status string `json:"status,omitempty" jsonschema:"Only tickets with this status"`
		Limit  int    `json:"limit,omitempty" jsonschema:"Items to return at most"`
		Offset int    `json:"offset,omitempty" jsonschema:"Items to skip, the next_offset of the page before"`
	}
	change struct {
		ID     int64           `json:"id" jsonschema:"Number of the ticket"`
		Title  *string         `json:"title,omitempty" jsonschema:"New title"`
		Body   *string         `json:"body,omitempty" jsonschema:"New details"`
		Status *string         `json:"status,omitempty" jsonschema:"New status"`
		Due    json.RawMessage `json:"due,omitempty" jsonschema:"New day it must be done; null: none any more"`
	}
	remark struct {
		ID   int64  `json:"id" jsonschema:"Number of the ticket"`
		Text string `json:"text" jsonschema:"The comment"`
	}
	comment struct {
		Author string    `json:"author"`
		Text   string    `json:"text"`
		At     time.Time `json:"at"`
	}
	ticket struct {
		ID       int64     `json:"id"`
		Title    string    `json:"title"`
		Status   string    `json:"status"`
		Due      string    `json:"due,omitempty"`
		Author   string    `json:"author"`
		Created  time.Time `json:"created"`
		Body     string    `json:"body,omitempty"`
		Comments []comment `json:"comments,omitempty"`
	}
	page struct {
		Total      int      `json:"total"`
		Count      int      `json:"count"`
		Offset     int      `json:"offset"`
		Items      []ticket `json:"items"`
		HasMore    bool     `json:"has_more"`
		NextOffset *int     `json:"next_offset,omitempty"`
		Truncated  bool     `json:"truncated,omitempty"`
		Message    string   `json:"truncation_message,omitempty"`
	}
	deleted struct {
		ID int64 `json:"id"`
	}
)

const (
	read, write, admin = "tickets:read", "tickets:write", "tickets:admin"
	characters         = 25_000
	timeout            = 30 * time.Second
)

// A refusal is an error that the model reads.
type refusal struct{ code, text string }

func (r *refusal) Error() string { return r.text }

func invalid(format string, args ...any) error {
	return &refusal{"invalid_arguments", fmt.Sprintf(format, args...)}
}

// requires are the rights of each tool.
var requires = map[string]string{
	"tickets_search_tickets": read, "tickets_get_ticket": read, "tickets_create_ticket": write,
	"tickets_update_ticket": write, "tickets_add_comment": write, "tickets_delete_ticket": admin,
}

func (s *server) build() *mcp.Server {
	m := mcp.NewServer(&mcp.Implementation{Name: "tickets-mcp-server", Title: "Tickets", Version: "1.0.0"},
		&mcp.ServerOptions{
			Instructions: "A ticket tracker. Search before you create.", Capabilities: &mcp.ServerCapabilities{},
			SetCacheable: func(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
				if _, reads := req.GetParams().(*mcp.ReadResourceParams); reads || !s.local {
					c.CacheScope = "private"
				}
			},
		})
	m.AddReceivingMiddleware(s.listed)
	reads := mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: new(false), IdempotentHint: true}
	adds := mcp.ToolAnnotations{DestructiveHint: new(false)}
	changes := mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true}
	id := bound{low: 1}
	states := bound{enum: []any{"open", "doing", "done"}}

	add(s, m, "search_tickets", "Search", "Searches tickets, newest first, without their bodies.", "What is open?", `{"status":"open"}`, reads,
		map[string]bound{"words": {long: 100}, "status": states, "limit": {low: 1, high: 50, fallback: "20"}, "offset": {fallback: "0"}},
		func(ctx context.Context, _ string, q query) (page, error) { return s.search(ctx, q) })
	add(s, m, "get_ticket", "Ticket", "Returns one ticket with its comments.", "What is ticket 7 about?", `{"id":7}`, reads,
		map[string]bound{"id": id},
		func(ctx context.Context, _ string, in ticketID) (ticket, error) { return one(s.db.Get(ctx, in.ID)) })
	add(s, m, "create_ticket", "Create", "Creates a ticket and returns it.", "The printer is on fire", `{"title":"Printer is on fire","due":"2026-05-01"}`, adds,
		map[string]bound{"title": {short: 1, long: 200}, "body": {long: 20_000, fallback: `""`}, "due": {format: "date"}},
		func(ctx context.Context, user string, in draft) (ticket, error) {
			if err := day("due", in.Due); err != nil {
				return ticket{}, err
			}
			return one(s.db.Create(ctx, in.Title, in.Body, in.Due, user))
		})
	add(s, m, "update_ticket", "Change", "Changes a ticket and returns it. What is left out stays.", "Ticket 7 is done", `{"id":7,"status":"done"}`, changes,
		map[string]bound{"id": id, "title": {short: 1, long: 200, types: "string"}, "body": {long: 20_000, types: "string"}, "status": {enum: states.enum, types: "string"}, "due": {format: "date", types: "string null"}},
		func(ctx context.Context, _ string, in change) (ticket, error) {
			c := tracker.Change{Title: in.Title, Body: in.Body, Status: in.Status}
			if in.Due != nil {
				c.Due = new(string)
				if err := json.Unmarshal(in.Due, c.Due); err != nil {
					return ticket{}, invalid("due: expected string")
				}
				if err := day("due", *c.Due); err != nil {
					return ticket{}, err
				}
			}
			return one(s.db.Update(ctx, in.ID, c))
		})
	add(s, m, "add_comment", "Comment", "Adds a comment to a ticket and returns the ticket.", "Tell them that I am on it", `{"id":7,"text":"I am on it."}`, adds,
		map[string]bound{"id": id, "text": {short: 1, long: 5000}},
		func(ctx context.Context, user string, in remark) (ticket, error) {
			return one(s.db.Comment(ctx, in.ID, user, in.Text))
		})
	add(s, m, "delete_ticket", "Delete", "Deletes a ticket and its comments for good.", "Throw ticket 7 away", `{"id":7}`, changes,
		map[string]bound{"id": id},
		func(ctx context.Context, _ string, in ticketID) (deleted, error) {
			_, err := one(tracker.Ticket{}, s.db.Delete(ctx, in.ID))
			return deleted(in), err
		})
	m.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "tickets://{id}", Name: "ticket", Description: "One ticket.", MIMEType: "text/plain"}, s.resource)
	return m
}

func (s *server) search(ctx context.Context, q query) (page, error) {
	found, total, err := s.db.Search(ctx, q.Words, q.Status, q.Limit, q.Offset)
	if err != nil {
		return page{}, err
	}
	p := page{Total: total, Offset: q.Offset, Items: []ticket{}}
	for _, k := range found {
		k.Body = ""
		p.Items = append(p.Items, show(k))
	}
	for {
		p.Count = len(p.Items)
		next := p.Offset + p.Count
		p.HasMore, p.NextOffset = p.Count > 0 && next < total, nil
		if p.HasMore {
			p.NextOffset = &next
		}
		text, err := json.Marshal(p)
		if err != nil || len(text) <= characters || p.Count <= 1 {
			return p, err
		}
		p.Truncated, p.Items = true, p.Items[:p.Count-1]
		p.Message = fmt.Sprintf("At most %d characters are sent. Use 'offset' and a smaller 'limit' for the rest.", characters)
	}
}

// A bound is what a field's schema says beside its type.
type bound struct {
	low, high   float64
	short, long int
	enum        []any
	format      string
	fallback    string
	types       string
}

func (b bound) set(p *jsonschema.Schema) {
	if b.low != 0 {
		p.Minimum = &b.low
	}
	if b.high != 0 {
		p.Maximum = &b.high
	}
	if b.short != 0 {
		p.MinLength = &b.short
	}
	if b.long != 0 {
		p.MaxLength = &b.long
	}
	if b.types != "" {
		p.Type, p.Types = "", strings.Fields(b.types)
	}
	if b.fallback != "" {
		p.Default = json.RawMessage(b.fallback)
	}
	p.Enum, p.Format = b.enum, b.format
}

// add adds a tool with all that surrounds a call.
func add[In, Out any](s *server, m *mcp.Server, name, title, description, ask, arguments string, hints mcp.ToolAnnotations, bounds map[string]bound, f func(context.Context, string, In) (Out, error)) {
	name = "tickets_" + name
	in, err := jsonschema.For[In](nil)
	if err != nil {
		log.Fatal(err)
	}
	for field, b := range bounds {
		b.set(in.Properties[field])
	}
	resolved, err := in.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		log.Fatal(err)
	}
	var example map[string]any
	if err := json.Unmarshal([]byte(arguments), &example); err != nil {
		log.Fatal(err)
	}
	if err := resolved.Validate(example); err != nil {
		log.Fatalf("%s: example: %v", name, err)
	}
	hints.Title, hints.OpenWorldHint = title, new(false)
	tool := &mcp.Tool{
		Name: name, Title: title, Annotations: &hints, InputSchema: in,
		Description: fmt.Sprintf("%s Examples: %q → %s.", description, ask, arguments),
	}
	mcp.AddTool(m, tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (res *mcp.CallToolResult, out Out, err error) {
		start := time.Now()
		user, rights := s.caller(req.Extra)
		outcome := "ok"
		defer func() {
			if p := recover(); p != nil {
				outcome, err = "panic", internal(name, fmt.Errorf("panic: %v", p))
			}
			s.audit("tool", name, outcome, user, req.Params.Arguments, time.Since(start))
		}()
		if err := s.permit(name, user, rights, requires[name]); err != nil {
			outcome = code(err)
			return nil, out, err
		}
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if out, err = f(bounded, user, in); err == nil {
			return nil, out, nil
		}
		if outcome = code(err); outcome == "internal_error" && bounded.Err() != nil && ctx.Err() == nil {
			outcome = "timeout"
			return nil, out, fmt.Errorf("%s did not finish within %v; it may have been carried out all the same", name, timeout)
		} else if outcome == "internal_error" {
			err = internal(name, err)
		}
		return nil, out, err
	})
}

func code(err error) string {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.code
	}
	return "internal_error"
}

// internal hides an error behind an id.
func internal(name string, err error) error {
	id := rand.Text()[:10]
	log.Printf("%s failed, id %s: %v", name, id, err)
	return fmt.Errorf("internal error in %s, id %s", name, id)
}

// caller is who asks, and what they may do.
func (s *server) caller(extra *mcp.RequestExtra) (user string, rights []string) {
	switch {
	case s.local:
		return "owner", []string{"*"}
	case extra != nil && extra.TokenInfo != nil:
		return extra.TokenInfo.UserID, extra.TokenInfo.Scopes
	}
	return "", nil
}

func may(rights []string, needed string) bool {
	return needed == "" || slices.ContainsFunc(rights, func(r string) bool {
		prefix, pattern := strings.CutSuffix(r, "*")
		return r == needed || pattern && strings.HasPrefix(needed, prefix)
	})
}

// permit checks the right and the rate.
func (s *server) permit(name, user string, rights []string, needed string) error {
	if !may(rights, needed) {
		return &refusal{"denied", fmt.Sprintf("%s needs the right %q, which %s does not have.", name, needed, user)}
	}
	s.mu.Lock()
	l := s.limits[user]
	if l == nil {
		l = rate.NewLimiter(5, 20)
		s.limits[user] = l
	}
	s.mu.Unlock()
	if !l.Allow() {
		return &refusal{"retry_later", "Too many calls. Try again in 1 second."}
	}
	return nil
}

// listed hides what a caller has no right to.
func (s *server) listed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		_, rights := s.caller(req.GetExtra())
		switch list := res.(type) {
		case *mcp.ListToolsResult:
			list.Tools = slices.DeleteFunc(slices.Clone(list.Tools), func(t *mcp.Tool) bool { return !may(rights, requires[t.Name]) })
		case *mcp.ListResourceTemplatesResult:
			if !may(rights, read) {
				list.ResourceTemplates = []*mcp.ResourceTemplate{}
			}
		}
		return res, nil
	}
}

func (s *server) resource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	start := time.Now()
	user, rights := s.caller(req.Extra)
	outcome := "ok"
	defer func() { s.audit("resource", "ticket", outcome, user, []byte(req.Params.URI), time.Since(start)) }()
	if err := s.permit(req.Params.URI, user, rights, read); err != nil {
		outcome = code(err)
		return nil, err
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(req.Params.URI, "tickets://"), 10, 64)
	if err != nil || id < 1 {
		outcome = "not_found"
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	k, err := s.db.Get(bounded, id)
	if errors.Is(err, tracker.ErrNotFound) {
		outcome = "not_found"
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if err != nil {
		outcome = "internal_error"
		return nil, internal("ticket", err)
	}
	text := fmt.Sprintf("%s (%s)\n\n%s", k.Title, k.Status, k.Body)
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Text: text}}}, nil
}

func (s *server) audit(kind, name, outcome, user string, arguments []byte, took time.Duration) {
	sum := sha256.Sum256(arguments)
	line, err := json.Marshal(map[string]any{
		"time": time.Now().UTC().Format(time.RFC3339Nano), "server": "tickets-mcp-server", kind: name, "outcome": outcome, "user": user,
		"arguments_sha256": hex.EncodeToString(sum[:]), "duration_ms": float64(took.Microseconds()) / 1000,
	})
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trail.Write(append(line, '\n'))
}

// A key is a line in the file of keys.
type key struct {
	Hash   string   `json:"hash"`
	User   string   `json:"user"`
	Rights []string `json:"rights"`
}

func makeKey(file, user string, rights []string) error {
	text := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(text))
	line, err := json.Marshal(key{hex.EncodeToString(sum[:]), user, rights})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	fmt.Println(text)
	return errors.Join(err, f.Close())
}

// verify finds a key in the file, which is read anew each time.
func verify(file string) auth.TokenVerifier {
	return func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		data, err := os.ReadFile(file)
		if err != nil {
			log.Print(err)
			return nil, errors.New("keys cannot be read")
		}
		sum := sha256.Sum256([]byte(token))
		for line := range strings.Lines(string(data)) {
			var k key
			if err := json.Unmarshal([]byte(line), &k); err != nil {
				log.Print(err)
				return nil, errors.New("keys cannot be read")
			}
			if subtle.ConstantTimeCompare([]byte(k.Hash), []byte(hex.EncodeToString(sum[:]))) == 1 {
				return &auth.TokenInfo{UserID: k.User, Scopes: k.Rights}, nil
			}
		}
		return nil, auth.ErrInvalidToken
	}
}

func (s *server) listen(ctx context.Context, address, keyFile string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); keyFile == "" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("refusing to serve beyond this machine without keys")
	}
	m := s.build()
	get := func(*http.Request) *mcp.Server { return m }
	legacy := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{SessionTimeout: 10 * time.Minute})
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})
	if keyFile != "" {
		handler = auth.RequireBearerToken(verify(keyFile), &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(handler)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(handler))
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "serving MCP at http://%s/mcp\n", l.Addr())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := web.Shutdown(bounded); err != nil {
		return web.Close()
	}
	return nil
}

func day(field, text string) error {
	if _, err := time.Parse(time.DateOnly, text); text != "" && err != nil {
		return invalid("%s: expected a date such as 2024-01-15", field)
	}
	return nil
}

func one(k tracker.Ticket, err error) (ticket, error) {
	if errors.Is(err, tracker.ErrNotFound) {
		err = &refusal{"not_found", "There is no such ticket. Find its number with tickets_search_tickets."}
	}
	return show(k), err
}

func show(k tracker.Ticket) ticket {
	out := ticket{ID: k.ID, Title: k.Title, Status: k.Status, Due: k.Due, Author: k.Author, Created: k.Created, Body: k.Body}
	for _, c := range k.Comments {
		out.Comments = append(out.Comments, comment(c))
	}
	return out
}
