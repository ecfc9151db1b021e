package toolkit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/schema"
)

// DefaultResource is the size limit of one resource in bytes.
const DefaultResource = 1 << 20

// A Resource says what can be read under one address, or under all addresses
// that a template matches. URI and Name must be given.
type Resource struct {
	// URI is absolute, such as "notes://today". For [AddTemplate] it has
	// variables in braces, such as "notes://{folder}/{name}"; {+name} also matches
	// slashes.
	URI string
	// Name is short; Title is what people see; Description helps to choose.
	Name, Title, Description string
	// MIMEType of the contents. Empty: text/plain, or application/octet-stream
	// for data that is no text.
	MIMEType string
	// MaxBytes is the size limit. Zero: 1 MiB.
	MaxBytes int64
	// Requires are the rights that a caller must have, such as "tickets:read". Who
	// lacks one is not shown the resource, and denied if they read it.
	Requires []string
	// Watched lets clients subscribe to the resource; tell them of changes with
	// [Server.Changed].
	Watched bool
	// Complete proposes values for the variables of a template, by their names.
	// A variable with an enum tag completes itself.
	Complete map[string]Completer
}

// Contents are what was read. Text or Data or From is set.
type Contents struct {
	Text string
	Data []byte
	// From is read up to the resource's size limit, and closed if it can be.
	From io.Reader
	// MIMEType, if it differs from the resource's.
	MIMEType string
}

// AddResource adds a resource with a fixed address.
func AddResource(s *Server, r Resource, read func(context.Context) (Contents, error)) {
	u, err := url.Parse(r.URI)
	switch {
	case err != nil, !u.IsAbs():
		err = errors.New("the URI is not absolute, such as notes://today")
	case strings.ContainsAny(r.URI, "{}"):
		err = errors.New("the URI has variables; use AddTemplate")
	case r.Name == "":
		err = errors.New("no Name")
	case read == nil:
		err = errors.New("no function")
	}
	s.registerResource(r, err, func(server *sdk.Server) {
		server.AddResource(&sdk.Resource{
			URI: r.URI, Name: r.Name, Title: r.Title, Description: oneLine(r.Description), MIMEType: r.MIMEType,
		}, func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return s.read(ctx, r, req, read)
		})
	})
}

// AddTemplate adds all resources whose address fits a template. The variables
// are the fields of Vars, strings, numbers or booleans, by their names in JSON;
// tags limit them as they do arguments. An address that does not fit is not
// found.
func AddTemplate[Vars any](s *Server, r Resource, read func(context.Context, Vars) (Contents, error)) {
	t, err := newTemplate(r.URI, reflect.TypeFor[Vars]())
	if err == nil && r.Name == "" {
		err = errors.New("no Name")
	}
	if err == nil && read == nil {
		err = errors.New("no function")
	}
	if err == nil {
		err = s.completers("resource "+r.URI, r.Complete, t.vars)
	}
	s.registerResource(r, err, func(server *sdk.Server) {
		server.AddResourceTemplate(&sdk.ResourceTemplate{
			URITemplate: r.URI, Name: r.Name, Title: r.Title, Description: oneLine(r.Description), MIMEType: r.MIMEType,
		}, func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return s.read(ctx, r, req, func(ctx context.Context) (Contents, error) {
				var vars Vars
				if err := t.match(req.Params.URI, &vars); err != nil {
					return Contents{}, err
				}
				return read(ctx, vars)
			})
		})
	})
}

func (s *Server) registerResource(r Resource, err error, put func(*sdk.Server)) {
	if r.MaxBytes < 0 {
		err = errors.Join(err, errors.New("MaxBytes is negative"))
	}
	root := s.root()
	root.mu.Lock()
	root.watched = root.watched || r.Watched
	root.mu.Unlock()
	s.register(registration{kind: "resource", name: r.URI, requires: r.Requires, put: put}, errors.Join(err, checkRequires(r.Requires)))
}

// Changed tells the clients that subscribed to a resource that it has changed.
func (s *Server) Changed(ctx context.Context, uri string) error {
	server, err := s.root().SDK()
	if err != nil {
		return err
	}
	return server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
}

// read runs an author's function for a resource and makes its contents bounded
// and well-formed.
func (s *Server) read(ctx context.Context, r Resource, req *sdk.ReadResourceRequest, read func(context.Context) (Contents, error)) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	j := job{
		request: newRequest(ctx, "resource", uri, req.ClientInfo(), req.Session, req.Extra), session: req.Session,
		token: req.Params.GetProgressToken(), name: r.Name, arguments: []byte(uri), requires: r.Requires, timeout: s.opts.Timeout,
	}
	contents, err := do(ctx, s, j, func(ctx context.Context) (*sdk.ResourceContents, error) {
		c, err := read(ctx)
		if err != nil {
			return nil, err
		}
		return c.bounded(uri, r)
	})
	if err != nil {
		return nil, protocolError(err, uri)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
}

func (c Contents) bounded(uri string, r Resource) (*sdk.ResourceContents, error) {
	limit := cmp.Or(r.MaxBytes, DefaultResource)
	data := c.Data
	if c.From != nil {
		if closer, ok := c.From.(io.Closer); ok {
			defer closer.Close()
		}
		var err error
		if data, err = readBeyond(c.From, limit); err != nil {
			return nil, err
		}
	}
	if int64(len(data)) > limit || int64(len(c.Text)) > limit {
		return nil, &Refusal{Code: codeTooLarge, Message: fmt.Sprintf("The resource is larger than %d bytes.", limit)}
	}
	out := &sdk.ResourceContents{URI: uri, MIMEType: cmp.Or(c.MIMEType, r.MIMEType)}
	switch {
	case data == nil:
		out.Text = strings.ToValidUTF8(c.Text, "\uFFFD")
		out.MIMEType = cmp.Or(out.MIMEType, "text/plain")
	case textual(out.MIMEType) && utf8.Valid(data) && !bytes.ContainsRune(data, 0):
		out.Text = string(data)
		out.MIMEType = cmp.Or(out.MIMEType, "text/plain")
	default:
		out.Blob = data
		out.MIMEType = cmp.Or(out.MIMEType, "application/octet-stream")
	}
	if out.Text == "" && out.Blob == nil {
		out.Blob = []byte{} // MCP's schema wants one of the two, and the SDK leaves out an empty text
	}
	return out, nil
}

// textual reports whether data of a MIME type is sent as text.
func textual(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	return mime == "" || strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "json") || strings.HasSuffix(mime, "xml") ||
		strings.HasSuffix(mime, "yaml") || mime == "application/javascript"
}

// protocolError is how a refusal looks where there is no result to put it in.
// uri is that of a resource.
func protocolError(err error, uri string) error {
	r, ok := errors.AsType[*Refusal](err)
	switch {
	case !ok:
		return err
	case r.Code == codeNotFound && uri != "":
		return sdk.ResourceNotFoundError(uri)
	case r.Code == codeInvalid, r.Code == codeNotFound, r.Code == codeDenied:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: r.Error()}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: r.Error()}
}

// A template matches addresses and takes their variables out.
type template struct {
	pattern *regexp.Regexp
	names   []string // of the pattern's groups
	vars    *shape
	accepts *schema.Validator
}

var variable = regexp.MustCompile(`\{(\+?)([A-Za-z][A-Za-z0-9_]*)\}`)

func newTemplate(uri string, vars reflect.Type) (*template, error) {
	t := &template{}
	var err error
	if t.vars, err = shapeOf(vars, true); err != nil {
		return nil, fmt.Errorf("variables: %w", err)
	}
	if t.vars.kind != kindObject {
		return nil, fmt.Errorf("variables must be a struct, not %s", vars)
	}
	if err := scalars(t.vars); err != nil {
		return nil, err
	}
	pattern, rest := "^", uri
	for _, m := range variable.FindAllStringSubmatch(uri, -1) {
		before, after, _ := strings.Cut(rest, m[0])
		rest = after
		pattern += regexp.QuoteMeta(before)
		if m[1] == "+" {
			pattern += "(.+)"
		} else {
			pattern += "([^/?#]+)"
		}
		t.names = append(t.names, m[2])
	}
	if len(t.names) == 0 {
		return nil, errors.New("the URI has no variables in braces; use AddResource")
	}
	if strings.ContainsAny(rest, "{}") || !strings.Contains(uri, ":") {
		return nil, errors.New("the URI is not a template such as notes://{folder}/{name}")
	}
	t.pattern = regexp.MustCompile(pattern + regexp.QuoteMeta(rest) + "$")
	for _, f := range t.vars.fields {
		if !slices.Contains(t.names, f.name) {
			return nil, fmt.Errorf("variable %q is not in the URI", f.name)
		}
	}
	for _, name := range t.names {
		if t.vars.field(name) == nil {
			return nil, fmt.Errorf("the URI has {%s}, and %s no such field", name, vars)
		}
	}
	t.accepts = schema.NewValidator(t.vars.schema(true))
	return t, nil
}

// scalars wants fields that a piece of text can be.
func scalars(s *shape) error {
	for _, f := range s.fields {
		switch f.at.of.kind {
		case kindText, kindInteger, kindNumber, kindBoolean, kindTime:
		default:
			return fmt.Errorf("%s: only texts, numbers, booleans and times can be given here, not %s", f.goName, f.at.of.goType)
		}
	}
	return nil
}

// match reads the variables of an address. One that does not fit is not found.
func (t *template) match(uri string, into any) error {
	groups := t.pattern.FindStringSubmatch(uri)
	if groups == nil {
		return NotFound("There is no resource %q.", uri)
	}
	given := map[string]string{}
	for i, name := range t.names {
		value, err := url.PathUnescape(groups[i+1])
		if err != nil || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return NotFound("There is no resource %q.", uri)
		}
		given[name] = value
	}
	if err := t.vars.fromText(given, t.accepts, into); err != nil {
		return NotFound("There is no resource %q: %v.", uri, err)
	}
	return nil
}

// fromText reads arguments that come as texts into a struct.
func (s *shape) fromText(given map[string]string, accepts *schema.Validator, into any) error {
	b := binding{in: s, accepts: accepts}
	n := schema.NewObject()
	for _, f := range s.fields {
		text, ok := given[f.name]
		if !ok || text == "" && !f.required {
			continue
		}
		value := schema.NewString(text)
		switch f.at.of.kind {
		case kindInteger, kindNumber, kindBoolean:
			if parsed, err := schema.Parse([]byte(text)); err == nil {
				value = parsed
			}
		}
		n.Set(f.name, value)
	}
	for name := range given {
		if s.field(name) == nil {
			n.Set(name, schema.NewString(given[name]))
		}
	}
	// Read again: a number such as 1e999 has limits of its own.
	n, err := readArguments(n.Bytes())
	if err != nil {
		return err
	}
	if err := b.fit(n); err != nil {
		return err
	}
	s.fill(n)
	return arguments{node: n, in: s}.decode(into)
}
