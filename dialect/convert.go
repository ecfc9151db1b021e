package dialect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Document is a list of tools after conversion. Its JSON form is what
// `dragoman convert` prints: tools, report and quarantined, of which the first
// and the last, with what was left out, are as many as the tools that came in.
type Document struct {
	// Tools are the function tools, in the order in which they came.
	Tools []json.RawMessage `json:"tools"`
	// Report is what was done to them.
	Report []Reported `json:"report"`
	// Quarantined are the tools that cannot be used, and why.
	Quarantined []Quarantined `json:"quarantined"`
	// LeftOut are the tools for which a request has no room, and why; see
	// [Document.Fit].
	LeftOut []Quarantined `json:"left_out,omitempty"`

	// Plans are the plans behind Tools, in the same order. [Document.Find] finds one
	// by its name.
	Plans []*Plan `json:"-"`

	sources map[string]*dragoman.Tool // the tools that have a plan, by their names as they came
}

// Find returns the tool that a model means by a name, with the plan that brings its
// arguments back; nil for both where there is none, or where [Document.Fit] has left
// it out. As with [dragoman.Tools.Find], a name in the wrong case, the name as it
// came, or the server's own name is understood where only one tool can be meant.
func (doc *Document) Find(name string) (*dragoman.Tool, *Plan) {
	if name == "" {
		return nil, nil
	}
	var found *Plan
	several := false
	for _, p := range doc.Plans {
		if p.name == name {
			return doc.sources[p.tool], p
		}
		if strings.EqualFold(p.name, name) || strings.EqualFold(p.tool, name) || strings.EqualFold(doc.sources[p.tool].Original, name) {
			several, found = several || found != nil, p
		}
	}
	if found == nil || several {
		return nil, nil
	}
	return doc.sources[found.tool], found
}

// Reported is one change to one tool.
type Reported struct {
	// Tool is the tool's name as it came.
	Tool string `json:"tool"`
	Change
}

// Quarantined is one tool that cannot be used.
type Quarantined struct {
	// Tool is the tool's name as it came; empty where it had none.
	Tool string `json:"tool"`
	// Reason says why, and where in its schema.
	Reason string `json:"reason"`
}

// Convert converts a list of tools as MCP's tools/list sends it: an object with
// a member tools, whatever else it holds. One bad tool never keeps another from
// being converted; an error means that there is no list at all.
func (d *Dialect) Convert(list json.RawMessage) (*Document, error) {
	entries, err := toolEntries(list)
	if err != nil {
		return nil, fmt.Errorf("reading a list of tools: %w", err)
	}
	doc := newDocument(d)
	for _, entry := range entries {
		doc.add(readTool(entry))
	}
	return doc.Document, nil
}

// ConvertTools converts tools that were read, and named, before.
func (d *Dialect) ConvertTools(tools []dragoman.Tool) *Document {
	doc := newDocument(d)
	for _, t := range tools {
		doc.add(t, t.Quarantined)
	}
	return doc.Document
}

// ConvertEach converts tools into several dialects, as [Dialect.ConvertTools] does
// into one. It reads and judges each tool once for all of them, which is about a
// third of the work, and keeps no plan in the dialects' caches: for programs that
// look at many tools once.
func ConvertEach(dialects []*Dialect, tools []dragoman.Tool) []*Document {
	docs := make([]*document, len(dialects))
	for i, d := range dialects {
		docs[i] = newDocument(d)
	}
	for _, t := range tools {
		b, refused := admit(t)
		for i, d := range dialects {
			var plan *Plan
			problem := cmp.Or(t.Quarantined, refused)
			if problem == nil {
				b := b
				b.dialect = d
				plan, problem = b.plan()
			}
			docs[i].put(t, plan, problem)
		}
	}
	done := make([]*Document, len(docs))
	for i, doc := range docs {
		done[i] = doc.Document
	}
	return done
}

// A document is a Document that is being made.
type document struct {
	*Document
	dialect *Dialect
	taken   map[string]string // the tools that have a name
}

func newDocument(d *Dialect) *document {
	doc := &Document{Tools: []json.RawMessage{}, Report: []Reported{}, Quarantined: []Quarantined{}, sources: map[string]*dragoman.Tool{}}
	return &document{doc, d, map[string]string{}}
}

func (doc *document) add(tool dragoman.Tool, problem *dragoman.Problem) {
	var plan *Plan
	if problem == nil {
		plan, problem = doc.dialect.Plan(tool)
	}
	doc.put(tool, plan, problem)
}

// put takes in what became of a tool.
func (doc *document) put(tool dragoman.Tool, plan *Plan, problem *dragoman.Problem) {
	if problem == nil {
		if other, ok := doc.taken[plan.Name()]; ok {
			problem = invalidTool(fmt.Sprintf("The name %q is already that of the tool %q.", plan.Name(), other))
		}
	}
	if problem != nil {
		doc.Quarantined = append(doc.Quarantined, Quarantined{Tool: tool.Name, Reason: problem.Message})
		return
	}
	doc.taken[plan.Name()] = tool.Name
	doc.sources[tool.Name] = &tool
	doc.Plans = append(doc.Plans, plan)
	doc.Tools = append(doc.Tools, plan.Function())
	for _, c := range plan.Report() {
		doc.Report = append(doc.Report, Reported{Tool: tool.Name, Change: c})
	}
}

// toolEntries takes the list apart. Only its frame has to be well-formed: what
// is inside an entry is judged for that entry alone.
func toolEntries(list json.RawMessage) ([]json.RawMessage, error) {
	if rawjson.Kind(list) == '[' {
		return rawjson.Elements(list)
	}
	frame, err := rawjson.ParseObject(list)
	if err != nil {
		return nil, err
	}
	tools := frame.Get("tools")
	if tools == nil {
		return nil, fmt.Errorf("there is no member tools")
	}
	return rawjson.Elements(tools)
}

// readTool reads one entry of a list of tools.
func readTool(entry json.RawMessage) (dragoman.Tool, *dragoman.Problem) {
	tool := dragoman.Tool{Definition: entry}
	members, err := rawjson.ParseObject(entry)
	if err != nil {
		return tool, invalidTool("The tool is not a JSON object: " + err.Error() + ".")
	}
	tool.Name, _ = rawjson.String(members.Get("name"))
	tool.Original = tool.Name
	tool.Title, _ = rawjson.String(members.Get("title"))
	tool.Description, _ = rawjson.String(members.Get("description"))
	tool.InputSchema, tool.OutputSchema = members.Get("inputSchema"), members.Get("outputSchema")
	if _, err := schema.Parse(entry); err != nil {
		return tool, invalidTool("The tool is not valid JSON: " + err.Error() + ".")
	}
	return tool, nil
}
