package mcpserve

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/state/weakcache"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A view is what there is at a place, made of one snapshot, and its lists as they
// are sent.
type view struct {
	changed <-chan struct{} // closed when there is a newer one
	tools   *dragoman.Tools
	entries []dragoman.Entry
	servers []dragoman.Server

	mu       sync.Mutex
	listings map[string]map[form]*listing // by method
	patterns map[string]*regexp.Regexp    // of templates; nil where none matches

	page   int             // the size of one, in bytes
	cost   func() int      // of the definitions of the tools, in tokens
	stands func() standIns // the tools that stand in for others
	more   *dragoman.Tool  // read_more

	digests func() [3]uint64 // of its lists
}

// views keep the views of each snapshot, as long as it is in use. What callers do
// not see alike are snapshots of their own.
type views struct {
	page int // the size of a page of a list, in bytes
	made weakcache.Map[dragoman.List, *places]
	own  weakcache.Map[dragoman.Tools, *dragoman.Tools] // under the names that their server gave them
}

// places are the views of one snapshot. There are as many as servers and sets.
type places struct {
	mu   sync.Mutex
	made map[place]*view
}

// of returns the view of a place.
func (vs *views) of(list *dragoman.List, at place, chosen catalog.Selection) *view {
	all := vs.made.Get(list, func() *places { return &places{made: map[place]*view{}} })
	all.mu.Lock()
	defer all.mu.Unlock()
	v := all.made[at]
	if v == nil {
		v = vs.make(list, at, chosen)
		all.made[at] = v
	}
	return v
}

func (vs *views) make(list *dragoman.List, at place, chosen catalog.Selection) *view {
	v := &view{page: vs.page, changed: list.Changed, tools: list.Tools, listings: map[string]map[form]*listing{}, patterns: map[string]*regexp.Regexp{}}
	wanted := func(label string) bool {
		return len(chosen) == 0 || slices.ContainsFunc(chosen, func(c catalog.Choice) bool { return c.Server == label })
	}
	for _, s := range list.Servers {
		if wanted(s.Label) {
			v.servers = append(v.servers, s)
		}
	}
	for _, e := range list.Entries {
		if wanted(e.Server) {
			if at.server != "" {
				e.Name, e.URI = own(e)
			}
			v.entries = append(v.entries, e)
		}
	}
	if at.server != "" && list.Tools != nil {
		v.tools = vs.own.Get(list.Tools, func() *dragoman.Tools { return ownNames(list.Tools) })
	}
	v.more = moreFor(v.tools)
	v.cost = sync.OnceValue(v.estimate)
	v.digests = sync.OnceValue(v.digest)
	v.stands = sync.OnceValue(func() standIns { return standsFor(v.tools) })
	return v
}

// own returns the name and the URI by which a server knows an entry.
func own(e dragoman.Entry) (name, uri string) {
	switch e.Kind {
	case dragoman.Prompt:
		return e.Original, e.URI
	}
	return e.Name, e.Original
}

// ownNames returns tools under the names that their server gave them.
func ownNames(tools *dragoman.Tools) *dragoman.Tools {
	all := slices.Clone(tools.All())
	for i := range all {
		all[i].Name = all[i].Original
	}
	return dragoman.NewTools(all)
}

// prompt returns the prompt of a name, or nil.
func (v *view) prompt(name string) *dragoman.Entry {
	for i := range v.entries {
		if e := &v.entries[i]; e.Kind == dragoman.Prompt && e.Name == name {
			return e
		}
	}
	return nil
}

// resource returns what a URI names: a resource that is listed, one that a template
// can make, or, where only one server has resources at all, whatever that server
// makes of it. One that says whose it is is that server's, whatever templates of others
// fit. Nil means that nobody can mean it.
func (v *view) resource(uri string) *dragoman.Entry {
	if uri == "" {
		return nil
	}
	for i := range v.entries {
		if e := &v.entries[i]; (e.Kind == dragoman.Resource || e.Kind == dragoman.Template) && e.URI == uri {
			return e
		}
	}
	if e := v.fileOfSkill(uri); e != nil {
		return e
	}
	label, original, labelled := catalog.SplitURI(uri)
	labelled = labelled && slices.ContainsFunc(v.servers, func(s dragoman.Server) bool { return s.Label == label })
	for i := range v.entries {
		if e := &v.entries[i]; e.Kind == dragoman.Template && (!labelled || e.Server == label) && v.makes(e.URI, uri) {
			return &dragoman.Entry{Kind: dragoman.Resource, Definition: e.Definition, URI: uri, Server: e.Server, Original: catalog.OriginalURI(e.Server, uri)}
		}
	}
	if labelled {
		return &dragoman.Entry{Kind: dragoman.Resource, URI: uri, Server: label, Original: original}
	}
	only := ""
	for _, s := range v.servers {
		if capability(s, "resources") != nil {
			if only != "" {
				return nil
			}
			only = s.Label
		}
	}
	if only == "" {
		return nil
	}
	return &dragoman.Entry{Kind: dragoman.Resource, URI: uri, Server: only, Original: uri}
}

// variables are the parts of a URI template (RFC 6570) that stand for something.
var variables = regexp.MustCompile(`\{[^{}]*\}`)

// What templates and URIs are matched: to match takes time by the product of how many
// variables the one has, which its server writes, and of how long the other is, which is a
// client's.
const (
	maxMatched   = 8 << 10 // bytes of a template, and of a URI
	maxVariables = 32
)

// makes reports whether a template can make a URI.
func (v *view) makes(template, uri string) bool {
	if len(template) > maxMatched || len(uri) > maxMatched {
		return false
	}
	p := v.pattern(template)
	return p != nil && p.MatchString(uri)
}

// pattern returns what matches the URIs that a template can make: each variable is
// some text, and those that reach over slashes or into the query say so. It is nil for
// one with too many of them.
func (v *view) pattern(template string) *regexp.Regexp {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p, ok := v.patterns[template]; ok {
		return p
	}
	if len(variables.FindAllStringIndex(template, maxVariables+1)) > maxVariables {
		v.patterns[template] = nil
		return nil
	}
	var b strings.Builder
	b.WriteString("^")
	rest := template
	for {
		at := variables.FindStringIndex(rest)
		if at == nil {
			break
		}
		b.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		if strings.ContainsAny(rest[at[0]+1:at[0]+2], "+#/.;?&") || strings.HasSuffix(rest[:at[1]], "*}") {
			b.WriteString(".*")
		} else {
			b.WriteString("[^/?#]*")
		}
		rest = rest[at[1]:]
	}
	b.WriteString(regexp.QuoteMeta(rest) + "$")
	p := regexp.MustCompile(b.String())
	v.patterns[template] = p
	return p
}

// capability returns what a server says of one of its capabilities; nil for none.
func capability(s dragoman.Server, name string) json.RawMessage {
	o, err := rawjson.ParseObject(s.Capabilities)
	if err != nil {
		return nil
	}
	return o.Get(name)
}

// capabilities are those of all servers together. Lists change whenever a server
// comes or goes, whether it says so of its own or not.
func (v *view) capabilities() json.RawMessage {
	o := rawjson.Object{}
	o.Set("tools", json.RawMessage(`{"listChanged":true}`))
	for _, name := range []string{"prompts", "resources", "completions", "logging"} {
		subscribe := false
		has := false
		for _, s := range v.servers {
			if c := capability(s, name); c != nil {
				has = true
				if inner, err := rawjson.ParseObject(c); err == nil && string(inner.Get("subscribe")) == "true" {
					subscribe = true
				}
			}
		}
		switch {
		case !has:
		case name == "resources" && subscribe:
			o.Set(name, json.RawMessage(`{"subscribe":true,"listChanged":true}`))
		case name == "resources" || name == "prompts":
			o.Set(name, json.RawMessage(`{"listChanged":true}`))
		default:
			o.Set(name, json.RawMessage(`{}`))
		}
	}
	if v.has(legacyTasks) {
		o.Set("tasks", json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`))
	}
	extensions := rawjson.Object{}
	if v.has(modernTasks) {
		extensions.Set(mcp.TasksExtension, json.RawMessage(`{}`))
	}
	if v.has(hasSkills) {
		extensions.Set(mcp.SkillsExtension, v.skillsCapability())
	}
	if apps := v.appsCapability(); apps != nil {
		extensions.Set(appsExtension, apps)
	}
	if len(extensions.Members) > 0 {
		o.Set("extensions", extensions.Bytes())
	}
	return o.Bytes()
}

// has reports whether one of the servers is such.
func (v *view) has(such func(dragoman.Server) bool) bool { return slices.ContainsFunc(v.servers, such) }

// instructions are those of the servers; alone, the server's own words.
func (v *view) instructions(alone bool) string {
	if alone && len(v.servers) == 1 {
		return instructions(&v.servers[0])
	}
	return joined(v.servers)
}
