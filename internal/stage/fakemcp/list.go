package fakemcp

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
)

// A toolList is one state of a server's tools; immutable.
type toolList struct {
	tools  []Tool
	byName map[string]*offered
	// pages are the "tools" arrays and cursors of tools/list as ready members of
	// a result object, by cursor; the first page has the cursor "".
	pages map[string][]byte
}

// offered is a tool and how often it ran. The count outlives changes of the
// list.
type offered struct {
	Tool
	ran *atomic.Int64
}

// define returns the tool's entry in tools/list.
func (t *Tool) define() []byte {
	if t.Definition != nil {
		return t.Definition
	}
	schema := t.InputSchema
	if schema == nil {
		schema = json.RawMessage(`{"type":"object","properties":{"message":{"type":"string","description":"Any text"}}}`)
	}
	description := t.Description
	if description == "" {
		description = "The tool " + t.Name + " of a fake server"
	}
	b := append([]byte(nil), `{"name":`...)
	b = quote(b, t.Name)
	b = append(b, `,"description":`...)
	b = quote(b, description)
	b = append(b, `,"inputSchema":`...)
	b = append(b, schema...)
	return append(b, '}')
}

// quote appends s as a JSON string.
func quote[S ~string | ~[]byte](b []byte, s S) []byte {
	// The only error is about invalid UTF-8, which is replaced all the same.
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// generated returns n Echo tools.
func generated(n int) []Tool {
	tools := make([]Tool, n)
	for i := range tools {
		tools[i].Name = fmt.Sprintf("tool_%05d", i)
	}
	return tools
}

// invalidEntries are entries of tools/list that are no tools.
var invalidEntries = []string{
	`"not an object"`,
	`null`,
	`{"description":"no name","inputSchema":{"type":"object"}}`,
	`{"name":"","inputSchema":{"type":"object"}}`,
	`{"name":7,"inputSchema":{"type":"object"}}`,
	`{"name":"no_schema"}`,
	`{"name":"schema_is_an_array","inputSchema":[]}`,
	`{"name":"schema_of_unknown_type","inputSchema":{"type":"unknown"}}`,
}

// publish makes a list of the tools and puts it in the place of the last one.
func (s *Server) publish(tools []Tool) {
	list := &toolList{tools: tools, byName: make(map[string]*offered, len(tools)), pages: make(map[string][]byte)}
	for _, t := range tools {
		ran, _ := s.ran.LoadOrStore(t.Name, new(atomic.Int64))
		if _, taken := list.byName[t.Name]; !taken {
			list.byName[t.Name] = &offered{Tool: t, ran: ran.(*atomic.Int64)}
		}
	}
	size := s.cfg.PageSize
	if size <= 0 {
		size = max(1, len(tools))
	}
	cursor := ""
	for start := 0; start == 0 || start < len(tools); start += size {
		end := min(start+size, len(tools))
		entries := make([]string, 0, end-start)
		for i := start; i < end; i++ {
			entries = append(entries, string(tools[i].define()))
		}
		next := ""
		if end < len(tools) {
			next = "page-" + strconv.Itoa(end)
		}
		list.pages[cursor] = page(entries, next)
		cursor = next
	}
	s.tools.Store(list)
}

// page renders a page of tools/list as members of a result object.
func page(entries []string, next string) []byte {
	b := []byte(`"tools":[` + strings.Join(entries, ",") + `]`)
	if next != "" {
		b = append(b, `,"nextCursor":`...)
		b = quote(b, next)
	}
	return b
}

// listTools answers tools/list, faults included. It returns nil for a cursor that
// it never gave out.
func (s *Server) listTools(m *message) []byte {
	list := s.tools.Load()
	cursor := ""
	if m.Params.Cursor != nil {
		cursor = *m.Params.Cursor
	}
	if s.faults == nil {
		return list.pages[cursor]
	}
	var entries []string
	for i := range list.tools {
		entries = append(entries, string(list.tools[i].define()))
	}
	if _, ok := s.faults.strike(RepeatCursor, m); ok {
		return page(entries, "again")
	}
	if _, ok := s.faults.strike(EndlessCursors, m); ok {
		n := s.cursors.Add(1)
		more := Tool{Name: fmt.Sprintf("endless_%d", n)}
		return page([]string{string(more.define())}, fmt.Sprintf("more-%d", n))
	}
	if _, ok := s.faults.strike(EqualNames, m); ok && len(list.tools) > 0 {
		double := list.tools[0]
		double.Definition, double.Description = nil, "Another tool with the name of the first"
		return page(append(entries, string(double.define())), "")
	}
	if _, ok := s.faults.strike(InvalidEntries, m); ok {
		var mixed []string
		for i := range max(len(entries), len(invalidEntries)) {
			if i < len(invalidEntries) {
				mixed = append(mixed, invalidEntries[i])
			}
			if i < len(entries) {
				mixed = append(mixed, entries[i])
			}
		}
		return page(mixed, "")
	}
	return list.pages[cursor]
}
