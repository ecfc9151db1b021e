// Package openapi makes tools of the operations in an OpenAPI 3 document, for
// services that have one and no MCP server yet:
//
//	doc, err := openapi.Load(data)
//	…
//	skipped, err := doc.Add(server, openapi.Options{
//		BaseURL:   "https://api.tickets.example/v1",
//		Authorize: openapi.Bearer(key),
//		Select:    func(o openapi.Operation) bool { return o.Method == "GET" },
//	})
//
// Each operation becomes one tool. Its parameters, and the members of its JSON
// body, become the arguments, with the schemas of the document; they are checked
// before a request is made. The result is the status and the JSON of the answer;
// an answer of 4xx is told to the model as an error that it can act on.
//
// A tool for every operation is seldom what a model needs: choose those that
// belong to a task with [Options.Select], say with [Options.Configure] what the
// document cannot (which right an operation requires, whether a POST only adds),
// and write the few that join several requests by hand.
//
// What cannot be called rightly is left out and said so, never guessed: bodies
// that are not JSON, parameters in cookies, styles of parameters that hardly
// anybody uses, operations at servers of their own, references that lead out of the
// document.
package openapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// Limits of documents and answers.
const (
	maxDocument   = 16 << 20 // bytes
	maxTools      = 200      // more is no help to a model
	maxDescribed  = 1000     // characters of a description
	defaultAnswer = 1 << 20  // bytes
)

// A Document is an OpenAPI document, 3.0 or 3.1.
type Document struct {
	doc *openapi3.T
}

// Load reads a document of at most 16 MiB, in JSON or YAML. References to other
// files and addresses are not followed. The error says what is wrong with it.
func Load(data []byte) (*Document, error) {
	if len(data) > maxDocument {
		return nil, fmt.Errorf("openapi: the document has more than %d bytes", maxDocument)
	}
	loader := openapi3.NewLoader()
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, at *url.URL) ([]byte, error) {
		return nil, fmt.Errorf("a reference leads out of the document, to %s", at)
	}
	doc, err := loader.LoadFromData(data)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	// Examples and patterns are written carelessly in many documents that work.
	err = doc.Validate(context.Background(), openapi3.DisableExamplesValidation(), openapi3.DisableSchemaPatternValidation(), openapi3.DisableSchemaDefaultsValidation())
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return &Document{doc}, nil
}

// An Operation is one method of one path.
type Operation struct {
	// ID is the operationId; it may be empty.
	ID string
	// Method is "GET", "POST" and so on; Path is as in the document, such as
	// "/tickets/{id}".
	Method, Path string
	// Tags, Summary and Description are those of the document.
	Tags                 []string
	Summary, Description string
	// Deprecated is what the document says.
	Deprecated bool

	item *openapi3.PathItem
	op   *openapi3.Operation
}

// Operations lists the operations in the order of paths, then methods.
func (d *Document) Operations() []Operation {
	var list []Operation
	paths := d.doc.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := paths[path].Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			op := operations[method]
			list = append(list, Operation{
				ID: op.OperationID, Method: method, Path: path, Tags: op.Tags,
				Summary: op.Summary, Description: op.Description, Deprecated: op.Deprecated,
				item: paths[path], op: op,
			})
		}
	}
	return list
}

// Options say which operations become tools, and how they are called.
type Options struct {
	// BaseURL is where the service is. It may be on a private network. Empty: the
	// first server that the document names, which must have a public address,
	// since whoever wrote the document chose it.
	BaseURL string
	// Select chooses operations. Nil: all that are not deprecated.
	Select func(Operation) bool
	// Name names the tool of an operation, and the empty string means to name it
	// as usual: by the operationId in lower case with underscores, else by method
	// and path, after the server's Service and with a verb at its beginning.
	Name func(Operation) string
	// Configure has the last word on a tool: hints, rights, rates, description.
	// GET and HEAD only read; everything else may overwrite, unless said
	// otherwise here.
	Configure func(Operation, *toolkit.Tool)
	// Authorize adds the credentials of this server to a request: see [Bearer]
	// and [Header]. Nil: none. Never pass on what the caller showed.
	Authorize func(ctx context.Context, r *http.Request) error
	// Timeout of one request. Zero: 30 seconds.
	Timeout time.Duration
	// MaxAnswer is the limit of one answer in bytes; more is refused. Zero: 1 MiB.
	MaxAnswer int64
}

// A Skipped operation did not become a tool.
type Skipped struct {
	Operation Operation
	// Why says what the toolkit cannot do.
	Why string
}

// An Answer is the result of a tool.
type Answer struct {
	Status int `json:"status" desc:"HTTP status of the answer"`
	// Data is the JSON of the answer, or its text; null if there was none.
	Data json.RawMessage `json:"data" desc:"The answer"`
}

// Add adds the tools of the chosen operations to a server, and returns those that
// cannot be called. What is wrong with a tool, such as its name, is reported by
// the server's Validate, as with every tool.
func (d *Document) Add(s *toolkit.Server, o Options) ([]Skipped, error) {
	base, trusted, err := d.base(o)
	if err != nil {
		return nil, err
	}
	c := &caller{base: base, client: newClient(trusted, cmp.Or(o.Timeout, 30*time.Second)), authorize: o.Authorize, limit: cmp.Or(o.MaxAnswer, defaultAnswer)}
	var skipped []Skipped
	added := 0
	for _, op := range d.Operations() {
		if o.Select != nil && !o.Select(op) || o.Select == nil && op.Deprecated {
			continue
		}
		plan, err := newPlan(d.doc, op)
		if err == nil {
			err = d.elsewhere(op, base)
		}
		if err != nil {
			skipped = append(skipped, Skipped{op, err.Error()})
			continue
		}
		if added++; added > maxTools {
			return skipped, fmt.Errorf("openapi: more than %d operations; choose those that a model needs with Select", maxTools)
		}
		toolkit.AddRaw(s, o.tool(s, op), plan.schema, func(ctx context.Context, arguments json.RawMessage) (Answer, error) {
			return c.call(ctx, plan, arguments)
		})
	}
	return skipped, nil
}

// base is where the service is, and whether the author said so.
func (d *Document) base(o Options) (u *url.URL, trusted bool, err error) {
	address, trusted := o.BaseURL, o.BaseURL != ""
	if !trusted {
		if len(d.doc.Servers) == 0 {
			return nil, false, errors.New("openapi: the document names no server; give BaseURL")
		}
		if address, err = d.doc.Servers[0].BasePath(); err == nil {
			address = d.doc.Servers[0].URL
		}
	}
	u, err = url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(address, "{}") {
		return nil, false, fmt.Errorf("openapi: %q is not the address of a service; give BaseURL", address)
	}
	return u, trusted, nil
}

// elsewhere says where an operation is that the document has at another server than the rest,
// which is no place for the credentials of this one.
func (d *Document) elsewhere(op Operation, base *url.URL) error {
	servers := op.item.Servers
	if op.op.Servers != nil && len(*op.op.Servers) > 0 {
		servers = *op.op.Servers
	}
	if len(servers) == 0 {
		return nil
	}
	usual := "/" // what OpenAPI takes for the server of a document that names none
	if len(d.doc.Servers) > 0 {
		usual = d.doc.Servers[0].URL
	}
	for _, here := range []string{usual, base.String()} {
		if strings.TrimSuffix(servers[0].URL, "/") == strings.TrimSuffix(here, "/") {
			return nil
		}
	}
	return fmt.Errorf("it is at a server of its own, %s", servers[0].URL)
}

// tool is what the document says of one, and then the author.
func (o Options) tool(s *toolkit.Server, op Operation) toolkit.Tool {
	name := ""
	if o.Name != nil {
		name = o.Name(op)
	}
	reads := op.Method == http.MethodGet || op.Method == http.MethodHead
	t := toolkit.Tool{
		Name:        cmp.Or(name, toolName(s, op)),
		Description: describe(op),
		Hints: toolkit.Hints{
			ReadOnly:    said(reads),
			Destructive: said(!reads),
			Idempotent:  said(reads || op.Method == http.MethodPut || op.Method == http.MethodDelete),
			OpenWorld:   toolkit.Yes,
		},
	}
	if o.Configure != nil {
		o.Configure(op, &t)
	}
	return t
}

func said(yes bool) toolkit.Hint {
	if yes {
		return toolkit.Yes
	}
	return toolkit.No
}

// describe joins summary and description, and keeps it short: each request of
// each model carries it.
func describe(op Operation) string {
	text := strings.TrimSpace(op.Summary)
	if more := strings.TrimSpace(op.Description); more != "" && more != text {
		if text != "" && !strings.HasSuffix(text, ".") {
			text += "."
		}
		text = strings.TrimSpace(text + " " + more)
	}
	if text == "" {
		text = "Sends " + op.Method + " " + op.Path + "."
	}
	if runes := []rune(text); len(runes) > maxDescribed {
		text = string(runes[:maxDescribed]) + "…"
	}
	return text
}
