package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Server is what rules see of one server.
type Server struct {
	// Label is its name in the configuration, or one made from the target.
	Label string
	// Name, Title and Version are what it calls itself; empty where it did not
	// say, as in a saved list.
	Name, Title, Version string
	// Info is all that it says of itself, as it came; nil where it did not.
	Info json.RawMessage
	// Instructions is its text on how to use it.
	Instructions string
	// Tools are its tools, in its order.
	Tools []*Tool
	// Prompts, Resources and Templates are its other lists, as they came.
	Prompts, Resources, Templates []json.RawMessage
	// Config is how it is configured; nil where nothing is known.
	Config *Config
	// Author is what its author says of it; nil for a server seen from outside.
	Author *Author
	// Live is how it behaved; nil for a saved list.
	Live *Live

	// File is the path of a saved list, and Source its text; empty otherwise.
	File   string
	Source []byte

	starts  *Config   // the command that starts it, with variables filled in; nil for none
	command *exec.Cmd // what starts it; nil for none
	refused bool      // it is known to be malicious, and was not started
	unseen  bool      // nothing is known of it but its configuration

	converted conversions
	pins      *pin.Lock
	mask      secret.Mask // hides what it was given in what it says
}

// A Tool is what rules see of one tool.
type Tool struct {
	// Server is the server that lists it.
	Server *Server
	// Index is its place in the list.
	Index int
	// Name, Title and Description are as the server wrote them.
	Name, Title, Description string
	// Definition is its whole entry, byte for byte.
	Definition json.RawMessage
	// Root is Definition as a tree; nil where it is not strict JSON, and
	// Malformed then says why.
	Root      *schema.Node
	Malformed error
	// Input and Output are its schemas as the server wrote them; nil where there
	// are none.
	Input, Output *schema.Node
	// Admitted is the input schema after admission, or nil, and Refusal then
	// says why.
	Admitted *schema.Document
	Refusal  *schema.Refusal
	// Hints are its annotations.
	Hints Hints

	start    start    // of Definition in the server's Source
	words    []string // of the name
	params   []Param
	folded   map[string]int // index in params by folded name
	prose    func() prose   // the description taken apart
	passages func() []passage
	poison   func() *poisoned // what is poisonous about its passages; nil for nothing
}

// Hints are the four behaviour hints of a tool's annotations, each nil where it
// is not stated.
type Hints struct{ ReadOnly, Destructive, Idempotent, OpenWorld *bool }

// stated reports how many hints are.
func (h Hints) stated() int { return 4 - len(h.unsaid()) }

// unsaid names the hints that are not stated.
func (h Hints) unsaid() (names []string) {
	for _, hint := range []struct {
		name string
		said *bool
	}{{"readOnlyHint", h.ReadOnly}, {"destructiveHint", h.Destructive}, {"idempotentHint", h.Idempotent}, {"openWorldHint", h.OpenWorld}} {
		if hint.said == nil {
			names = append(names, hint.name)
		}
	}
	return names
}

func said(hint *bool, value bool) bool { return hint != nil && *hint == value }

// Config is how a server is configured, as far as rules look at it: before
// variables are filled in, so that what is written can be told from what is
// taken from the environment.
type Config struct {
	// Command and Args start it.
	Command string   `yaml:"command"`
	Args    []string `yaml:"args"`
	// Env and Headers are what it is given.
	Env     map[string]string `yaml:"env"`
	Headers map[string]string `yaml:"headers"`
	// URL is its address.
	URL string `yaml:"url"`
	// File is where this stands, and Line where the server's name does, from 1; empty and
	// 0 where that is not known.
	File string `yaml:"-"`
	Line int    `yaml:"-"`
}

// errNotAList says that a document is not a list of tools.
var errNotAList = errors.New("this is not a list of tools")

// readList reads an answer to tools/list: the result object, the whole response
// around it, or the bare array.
func readList(s *Server, list json.RawMessage) error {
	if !json.Valid(list) {
		_, err := schema.Parse(list)
		return fmt.Errorf("%w: %w", errNotAList, err)
	}
	entries := list
	if rawjson.Kind(list) == '{' {
		o, err := rawjson.ParseObject(list)
		if err != nil {
			return fmt.Errorf("%w: %w", errNotAList, err)
		}
		if inner, err := rawjson.ParseObject(o.Get("result")); err == nil && o.Get("tools") == nil {
			o = inner
		}
		if entries = o.Get("tools"); entries == nil {
			return fmt.Errorf("%w: it has no member \"tools\"", errNotAList)
		}
		s.describe(o.Get("serverInfo"))
	}
	items, err := rawjson.Elements(entries)
	if err != nil {
		return fmt.Errorf("%w: \"tools\" is not an array", errNotAList)
	}
	s.setTools(items)
	return nil
}

// describe reads what a server calls itself.
func (s *Server) describe(info json.RawMessage) {
	o, err := rawjson.ParseObject(info)
	if err != nil {
		return
	}
	s.Info = info
	s.Name, _ = rawjson.String(o.Get("name"))
	s.Title, _ = rawjson.String(o.Get("title"))
	s.Version, _ = rawjson.String(o.Get("version"))
}

func (s *Server) setTools(items []json.RawMessage) {
	s.Tools = make([]*Tool, len(items))
	at := start{0, 1, 1}
	for i, item := range items {
		s.Tools[i] = readTool(s, i, item)
		if skip := bytes.Index(s.Source[at.offset:], item); skip >= 0 { // always, in a saved list
			at = at.after(s.Source[at.offset : at.offset+skip])
			s.Tools[i].start = at
			at = at.after(item)
		}
	}
}

func readTool(s *Server, index int, definition json.RawMessage) *Tool {
	t := &Tool{Server: s, Index: index, Definition: definition}
	t.prose = sync.OnceValue(func() prose { return readProse(t.Description) })
	t.passages = sync.OnceValue(t.readPassages)
	t.poison = sync.OnceValue(func() *poisoned { return judgePassages(t.passages()) })
	if t.Root, t.Malformed = schema.Parse(definition); t.Malformed != nil {
		t.readLoosely()
		return t
	}
	text := func(n *schema.Node) string {
		if n.Kind() != schema.String {
			return ""
		}
		return n.Text()
	}
	t.Name, t.Description = text(t.Root.Get("name")), text(t.Root.Get("description"))
	notes := t.Root.Get("annotations")
	if t.Title = text(t.Root.Get("title")); t.Title == "" {
		t.Title = text(notes.Get("title"))
	}
	t.Hints = Hints{hint(notes, "readOnlyHint"), hint(notes, "destructiveHint"), hint(notes, "idempotentHint"), hint(notes, "openWorldHint")}
	if in := t.Root.Get("inputSchema"); in != nil {
		t.Input = in
		t.Admitted, t.Refusal = schema.AdmitNode(in)
	}
	if out := t.Root.Get("outputSchema"); out != nil && out.Kind() != schema.Null {
		t.Output = out
	}
	t.words = splitWords(t.Name)
	t.readParams()
	return t
}

// readLoosely finds at least the name of a tool whose definition is not strict
// JSON.
func (t *Tool) readLoosely() {
	var loose struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	if json.Unmarshal(t.Definition, &loose) == nil {
		t.Name, t.Description = loose.Name, loose.Description
	}
	t.words = splitWords(t.Name)
}

func hint(notes *schema.Node, name string) *bool {
	switch n := notes.Get(name); {
	case n.IsBool(true):
		return new(true)
	case n.IsBool(false):
		return new(false)
	}
	return nil
}

// A Param is one argument of a tool.
type Param struct {
	// Name is the property's name, Pointer where it is in the definition.
	Name, Pointer string
	// Schema is its schema as written.
	Schema *schema.Node
	// Required reports that the tool wants it.
	Required bool
}

// Params returns the tool's arguments, in order. The slice is shared and must
// not be changed.
func (t *Tool) Params() []Param { return t.params }

func (t *Tool) readParams() {
	required := map[string]bool{}
	for _, name := range t.Input.Get("required").Items() {
		required[name.Text()] = true
	}
	t.folded = map[string]int{}
	for i, m := range t.Input.Get("properties").Members() {
		t.params = append(t.params, Param{m.Name, "/inputSchema" + schema.Pointer("properties", m.Name), m.Value, required[m.Name]})
		t.folded[fold(m.Name)] = i
	}
}

// param returns the argument with one of the given names, folded.
func (t *Tool) param(names ...string) *Param {
	for _, name := range names {
		if i, ok := t.folded[name]; ok {
			return &t.params[i]
		}
	}
	return nil
}

// fold makes names comparable: limit, maxResults and max_results.
func fold(name string) string {
	folded := make([]byte, 0, len(name))
	for _, r := range name {
		if r != '_' && r != '-' && r != '.' && r != ' ' {
			folded = utf8.AppendRune(folded, unicode.ToLower(r))
		}
	}
	return string(folded)
}

// walk calls visit for a schema and every schema inside it, with their pointers
// in the definition. It goes no deeper than a reasonable schema does.
func walk(n *schema.Node, pointer string, visit func(n *schema.Node, pointer string, depth int)) {
	walkDeep(n, pointer, 0, visit)
}

func walkDeep(n *schema.Node, pointer string, depth int, visit func(*schema.Node, string, int)) {
	if n == nil || depth > schema.MaxDepth {
		return
	}
	visit(n, pointer, depth)
	for sub := range n.Subschemas() {
		walkDeep(sub.Node, pointer+sub.Pointer(), depth+1, visit)
	}
}

// property returns the name of the property that a schema's pointer ends with.
func property(pointer string) (name string, ok bool) {
	parent, last := cutLast(pointer)
	_, keyword := cutLast(parent)
	if keyword != "properties" {
		return "", false
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(last), true
}

func cutLast(pointer string) (before, last string) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return "", pointer
	}
	return pointer[:i], pointer[i+1:]
}
