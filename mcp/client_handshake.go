package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// The versions that we speak, the preferred one first.
var (
	modernVersions = []string{"2026-07-28"}
	legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
)

const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaTask         = "io.modelcontextprotocol/related-task"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// The extensions of MCP that this package knows something of.
const (
	// TasksExtension are tasks of the modern era (SEP-2663).
	TasksExtension = "io.modelcontextprotocol/tasks"
	// SkillsExtension are skills: skills/list and skills/get (SEP-2640).
	SkillsExtension = "io.modelcontextprotocol/skills"
)

// declared is what a server says it can do, as far as we ask before we use it.
type declared struct {
	tools, prompts, resources, logging          bool
	toolsChange, promptsChange, resourcesChange bool
	toolTasks, cancelTasks                      bool // legacy
	taskExtension, skills                       bool
}

func readDeclared(capabilities json.RawMessage) declared {
	o := object(capabilities)
	changes := func(what string) bool { return string(object(o.Get(what)).Get("listChanged")) == "true" }
	has := func(what string) bool { return rawjson.Kind(o.Get(what)) == '{' }
	tasks, extensions := object(o.Get("tasks")), object(o.Get("extensions"))
	return declared{
		tools: has("tools"), prompts: has("prompts"), resources: has("resources"), logging: has("logging"),
		toolsChange: changes("tools"), promptsChange: changes("prompts"), resourcesChange: changes("resources"),
		toolTasks:   rawjson.Kind(object(object(tasks.Get("requests")).Get("tools")).Get("call")) == '{',
		cancelTasks: rawjson.Kind(tasks.Get("cancel")) == '{',

		taskExtension: rawjson.Kind(extensions.Get(TasksExtension)) == '{',
		skills:        rawjson.Kind(extensions.Get(SkillsExtension)) == '{',
	}
}

// object takes b apart; what is no object is an empty one.
func object(b []byte) *rawjson.Object {
	if o, err := rawjson.ParseObject(b); err == nil {
		return o
	}
	return &rawjson.Object{}
}

// plain returns a transport by value, as it is looked at here; nil where there is
// none.
func plain(t Transport) Transport {
	switch t := t.(type) {
	case *HTTP:
		return valueOf(t)
	case *Command:
		return valueOf(t)
	case *Pipe:
		return valueOf(t)
	}
	return t
}

func valueOf[T Transport](t *T) Transport {
	if t == nil {
		return nil
	}
	return *t
}

// connect opens t and settles the era and the version.
func (c *Client) connect(ctx context.Context, t Transport) error {
	if t == nil {
		return &TransportError{Err: errors.New("there is no Transport")}
	}
	var err error
	if c.link, err = t.open(ctx, c.peer); err != nil {
		return err
	}
	overHTTP, isHTTP := t.(HTTP)
	silent := false
	if !overHTTP.SSE && c.o.Era != Legacy {
		s, err := c.discover(ctx)
		if silent = errors.Is(err, errSilent); !silent && (s != nil || err != nil) {
			return c.settle(ctx, s, err)
		}
	}
	if err := c.openAgain(ctx, t); err != nil {
		return err
	}
	s, err := c.initialize(ctx)
	if isHTTP && !overHTTP.SSE && legacyHTTP(err) {
		if s, err = c.fallBack(ctx, overHTTP, err); errors.As(err, new(*AuthorizationError)) {
			return err
		}
	}
	if err != nil && ctx.Err() == nil && (silent || c.o.Era == Legacy) && undecided(err) == nil {
		// What was remembered is no longer true, or a modern server was slow to
		// start.
		if s, probed := c.discover(ctx); s != nil {
			return c.settle(ctx, s, probed)
		}
	}
	return c.settle(ctx, s, err)
}

// openAgain starts a new process where the probe was too much for the first.
func (c *Client) openAgain(ctx context.Context, t Transport) (err error) {
	select {
	case <-c.link.down():
	default:
		return nil
	}
	if _, ok := t.(Command); !ok {
		return nil
	}
	_ = c.link.close()
	c.link, err = t.open(ctx, c.peer)
	return err
}

// fallBack greets the server over HTTP+SSE, where there is such a thing at its
// address; otherwise the error is still refused. A stream that leads elsewhere is what is wrong.
func (c *Client) fallBack(ctx context.Context, t HTTP, refused error) (*session, error) {
	l, err := t.openSSE(ctx, c.peer)
	if errors.As(err, new(*AuthorizationError)) || errors.Is(err, errNoEndpoint) {
		return nil, err
	}
	if err != nil {
		return nil, refused
	}
	_ = c.link.close()
	c.link.tidy()
	c.link = l
	return c.initialize(ctx)
}

// errSilent: the server did not answer the probe in time.
var errSilent = errors.New("no answer to server/discover")

func (c *Client) settle(ctx context.Context, s *session, err error) error {
	if err != nil {
		return err
	}
	c.adopt(s)
	if s.era == Legacy {
		err = c.greet(ctx)
	}
	c.link.established(s)
	if err == nil && c.o.LogLevel != "" && s.declared.logging && s.era == Legacy {
		c.start(c.setLevel)
	}
	return err
}

func isModern(err error) bool {
	e, ok := errors.AsType[*RPCError](err)
	return ok && e.modern()
}

// legacyHTTP reports whether an initialize that failed with err leaves the
// possibility of a server of 2024-11-05 (MCP 2026-07-28, "Streamable HTTP",
// Backward Compatibility).
func legacyHTTP(err error) bool {
	if isModern(err) {
		return false
	}
	status := 0
	if e, ok := errors.AsType[*StatusError](err); ok {
		status = e.Status
	}
	if e, ok := errors.AsType[*rejected](err); ok {
		status = e.status
	}
	return status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// discover asks the server for its era. A nil session without an error means:
// not modern; errSilent: probably not.
func (c *Client) discover(ctx context.Context) (*session, error) {
	version := modernVersions[0]
	for range 2 {
		s := c.modernSession(version)
		probe, cancel := context.WithTimeout(ctx, c.o.ProbeTimeout)
		a, err := c.attempt(probe, s, &request{method: "server/discover", can: c.o.Can})
		cancel()
		if err == nil {
			return c.discovered(s, a)
		}
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("asking the server for its era: %w", ctx.Err())
		case errors.Is(err, context.DeadlineExceeded):
			return nil, errSilent
		}
		e, ok := errors.AsType[*RPCError](err)
		if !ok || !e.modern() {
			return nil, undecided(err)
		}
		if e.Code != codeUnsupportedVersion {
			return nil, fmt.Errorf("asking the server for its era: %w", err)
		}
		supported := stringList(object(e.Data).Get("supported"))
		if version = mutual(modernVersions, supported); version != "" {
			continue
		}
		if mutual(legacyVersions, supported) != "" {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: it speaks %q", ErrVersion, supported)
	}
	return nil, fmt.Errorf("%w: it refuses the version %s that it offers", ErrVersion, version)
}

// undecided returns err where the failed probe says nothing about the era.
func undecided(err error) error {
	if _, ok := errors.AsType[*AuthorizationError](err); ok {
		return err
	}
	if e, ok := errors.AsType[*StatusError](err); ok {
		if e.Status == http.StatusForbidden || e.Status == http.StatusTooManyRequests || e.Status >= 500 && e.Status != http.StatusNotImplemented {
			return err
		}
	}
	if e, ok := errors.AsType[*TransportError](err); ok && !e.Sent {
		return err
	}
	return nil
}

// discovered reads the answer to server/discover.
func (c *Client) discovered(s *session, a *answer) (*session, error) {
	versions := a.object.Get("supportedVersions")
	if rawjson.Kind(versions) != '[' {
		return nil, nil // it answers, but not like a modern server
	}
	if supported := stringList(versions); !slices.Contains(supported, s.version) {
		if s.version = mutual(modernVersions, supported); s.version == "" {
			if mutual(legacyVersions, supported) != "" {
				return nil, nil
			}
			return nil, fmt.Errorf("%w: it speaks %q", ErrVersion, supported)
		}
	}
	s.capabilities = a.object.Get("capabilities")
	s.declared = readDeclared(s.capabilities)
	s.instructions, _ = rawjson.String(a.object.Get("instructions"))
	if s.server = object(a.object.Get("_meta")).Get(metaServer); s.server == nil {
		s.server = a.object.Get("serverInfo")
	}
	return s, nil
}

// mutual returns the first of ours that is among theirs.
func mutual(ours, theirs []string) string {
	for _, v := range ours {
		if slices.Contains(theirs, v) {
			return v
		}
	}
	return ""
}

func stringList(b json.RawMessage) []string {
	elements, _ := rawjson.Elements(b)
	var list []string
	for _, e := range elements {
		if s, ok := rawjson.String(e); ok {
			list = append(list, s)
		}
	}
	return list
}

// initialize greets a legacy server.
func (c *Client) initialize(ctx context.Context) (*session, error) {
	params := rawjson.Object{}
	params.Set("protocolVersion", rawjson.Quote(legacyVersions[0]))
	params.Set("capabilities", c.capabilities(c.o.Can, false))
	params.Set("clientInfo", c.info())
	s := &session{era: Legacy}
	a, err := c.attempt(ctx, s, &request{method: "initialize", params: params.Bytes()})
	if err != nil {
		return nil, fmt.Errorf("initializing: %w", err)
	}
	s.version, _ = rawjson.String(a.object.Get("protocolVersion"))
	if !slices.Contains(legacyVersions, s.version) {
		return nil, fmt.Errorf("%w: it answers with %q", ErrVersion, bounded(s.version, 40))
	}
	s.server = a.object.Get("serverInfo")
	s.capabilities = a.object.Get("capabilities")
	s.declared = readDeclared(s.capabilities)
	s.instructions, _ = rawjson.String(a.object.Get("instructions"))
	return s, nil
}

// greet completes the handshake with a legacy server. initialized goes before
// any request.
func (c *Client) greet(ctx context.Context) error {
	if err := c.link.send(ctx, notification("notifications/initialized", nil)); err != nil {
		return fmt.Errorf("initializing: %w", err)
	}
	return nil
}

// setLevel sets the level of log messages of a legacy server.
func (c *Client) setLevel() {
	params := append(append([]byte(`{"level":`), rawjson.Quote(c.o.LogLevel)...), '}')
	if _, err := c.request(c.ctx, "logging/setLevel", params); err != nil && c.ctx.Err() == nil {
		c.log.Warn("MCP server refused a log level", "error", err)
	}
}
