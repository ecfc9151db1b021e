package mcpserve

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/weakcache"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/result"
)

// A view is what there is at a place, made of one snapshot, and its lists as they
// are sent.
type view struct {
	changed <-chan struct{} // closed when there is a newer one
	tools   *dragoman.Tools
	entries []dragoman.Entry
	servers []dragoman.Server

	mu       sync.Mutex
	listings map[string]map[form]json.RawMessage // by method
	patterns map[string]*regexp.Regexp           // of templates
}

// A form is how a list is sent.
type form struct {
	legacy  bool // for a client of the legacy era
	raw     bool // for one that gets results as servers sent them
	reviews bool // with review_approvals
	private bool // for a caller who may see what others do not
}

// views keep the views of each snapshot, as long as it is in use. What callers do
// not see alike are snapshots of their own.
type views struct {
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
	v := &view{changed: list.Changed, tools: list.Tools, listings: map[string]map[form]json.RawMessage{}, patterns: map[string]*regexp.Regexp{}}
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
// makes of it. Nil means that nobody can mean it.
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
	for i := range v.entries {
		if e := &v.entries[i]; e.Kind == dragoman.Template && v.pattern(e.URI).MatchString(uri) {
			return &dragoman.Entry{Kind: dragoman.Resource, Definition: e.Definition, URI: uri, Server: e.Server, Original: catalog.OriginalURI(e.Server, uri)}
		}
	}
	if label, original, ok := catalog.SplitURI(uri); ok && slices.ContainsFunc(v.servers, func(s dragoman.Server) bool { return s.Label == label }) {
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

// pattern returns what matches the URIs that a template can make: each variable is
// some text, and those that reach over slashes or into the query say so.
func (v *view) pattern(template string) *regexp.Regexp {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.patterns[template]; p != nil {
		return p
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

// listing returns the answer to a list request.
func (v *view) listing(method string, f form) json.RawMessage {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l := v.listings[method][f]; l != nil {
		return l
	}
	var items []json.RawMessage
	member := "tools"
	switch method {
	case "tools/list":
		items = v.toolItems(f)
	case "prompts/list":
		member, items = "prompts", v.entryItems(dragoman.Prompt, "name")
	case "skills/list":
		member, items = "skills", v.entryItems(dragoman.Skill, "uri")
	case "resources/list":
		member, items = "resources", v.entryItems(dragoman.Resource, "uri")
	default:
		member, items = "resourceTemplates", v.entryItems(dragoman.Template, "uriTemplate")
	}
	begin := "{"
	if !f.legacy {
		ttl, public := v.fresh()
		begin = mcp.CompleteList(ttl, public && !f.private)
	}
	l := append(rawjson.AppendArray([]byte(begin+`"`+member+`":`), items), '}')
	if v.listings[method] == nil {
		v.listings[method] = map[form]json.RawMessage{}
	}
	v.listings[method][f] = l
	return l
}

// fresh says how long the lists are fresh, as the servers say it all together, and
// whether they hold nothing of a single user.
func (v *view) fresh() (ttl time.Duration, public bool) {
	public = true
	for i, s := range v.servers {
		if public = public && s.Public; i == 0 || s.TTL < ttl {
			ttl = s.TTL
		}
	}
	return ttl, public
}

// toolItems are the definitions of the tools under their public names, each
// otherwise byte for byte, but for output schemas that legacy clients do not take.
func (v *view) toolItems(f form) []json.RawMessage {
	items := make([]json.RawMessage, 0, v.tools.Len()+2)
	for i := range v.tools.All() {
		t := &v.tools.All()[i]
		if t.Quarantined == nil {
			items = append(items, definition(t, f))
		}
	}
	if !f.raw {
		items = append(items, result.ReadMoreTool().Definition)
	}
	if f.reviews {
		items = append(items, session.ReviewTool().Definition)
	}
	return items
}

func definition(t *dragoman.Tool, f form) json.RawMessage {
	wrap := f.legacy && !f.raw && t.OutputSchema != nil
	task := !f.raw && taskSupport(t) == "required"
	if t.Name == t.Original && !wrap && !task {
		return t.Definition
	}
	o, err := rawjson.ParseObject(t.Definition)
	if err != nil {
		return t.Definition
	}
	o = o.Clone()
	if t.Name != t.Original {
		o.Set("name", rawjson.Quote(t.Name))
	}
	if wrap {
		o.Set("outputSchema", result.WrapSchema(t.OutputSchema))
	}
	if task {
		// Clients that know nothing of tasks do not call a tool that requires one; for
		// those the task is run here.
		if execution, err := rawjson.ParseObject(o.Get("execution")); err == nil {
			execution = execution.Clone()
			execution.Set("taskSupport", json.RawMessage(`"optional"`))
			o.Set("execution", execution.Bytes())
		}
	}
	return o.Bytes()
}

// entryItems are the definitions of entries of a kind, with their public name or
// URI.
func (v *view) entryItems(kind dragoman.EntryKind, key string) []json.RawMessage {
	items := []json.RawMessage{}
	for _, e := range v.entries {
		if e.Kind != kind {
			continue
		}
		public := e.URI
		if kind == dragoman.Prompt {
			public = e.Name
		}
		if public == e.Original {
			items = append(items, e.Definition)
			continue
		}
		if kind == dragoman.Skill {
			items = append(items, relocated(e.Definition, e.Server))
		} else if o, err := rawjson.ParseObject(e.Definition); err == nil {
			o = o.Clone()
			o.Set(key, rawjson.Quote(public))
			items = append(items, o.Bytes())
		}
	}
	return items
}
