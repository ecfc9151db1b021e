package mcpserve

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// A form is how a list is sent.
type form struct {
	legacy  bool        // for a client of the legacy era
	raw     bool        // for one that gets results as servers sent them
	reviews bool        // with review_approvals
	private bool        // for a caller who may see what others do not
	search  bool        // with find_tools and call_tool in place of all but some
	kept    *model.Kept // the tools that stay
}

// A listing is the answer to a list request. What is larger than a page is given a
// page at a time.
type listing struct {
	begin string // up to the items
	items []item
	size  int             // of all items
	whole json.RawMessage // the answer, where one page is enough
}

// An item is an element of a list.
type item struct {
	key  string // its name or URI, which no other has
	json json.RawMessage
}

// list answers with a list, or with the page that a cursor begins.
func (h *host) list(s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	f := form{legacy: h.legacy, raw: h.door.now.Load().Raw, private: h.toldApart()}
	if call.Method == "tools/list" {
		f.reviews = call.Can&dragoman.AskForm != 0 && h.reviews()
		if f.search = v.hides(s.Search); f.search {
			f.kept = s.Search.Always
		}
	}
	after, _ := rawjson.String(params.Get("cursor"))
	page, ok := v.listing(call.Method, f).page(call.Method, after, v.page)
	if !ok {
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: "this cursor was not given by us, or what it stands for is not listed any more; begin again without one"}
	}
	return dragoman.Result{Content: page, Ran: dragoman.RanYes}, nil
}

// DefaultPage is the size in bytes beyond which a list is given in pages: one of this
// size is more than most models read, so clients that know no pages, which there are,
// miss nothing that they could use.
const DefaultPage = 512 << 10

// listing returns the answer to a list request.
func (v *view) listing(method string, f form) *listing {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l := v.listings[method][f]; l != nil {
		return l
	}
	l, member := &listing{begin: "{"}, "tools"
	switch method {
	case "tools/list":
		l.items = v.toolItems(f)
	case "prompts/list":
		member, l.items = "prompts", v.entryItems(dragoman.Prompt, "name")
	case "skills/list":
		member, l.items = "skills", v.entryItems(dragoman.Skill, "uri")
	case "resources/list":
		member, l.items = "resources", v.entryItems(dragoman.Resource, "uri")
	default:
		member, l.items = "resourceTemplates", v.entryItems(dragoman.Template, "uriTemplate")
	}
	if !f.legacy {
		ttl, public := v.fresh()
		l.begin = mcp.CompleteList(ttl, public && !f.private)
	}
	l.begin += `"` + member + `":`
	for _, i := range l.items {
		l.size += len(i.json) + 1
	}
	if l.size <= v.page {
		l.whole = l.part(l.items, "")
	}
	if v.listings[method] == nil {
		v.listings[method] = map[form]*listing{}
	}
	v.listings[method][f] = l
	return l
}

// same reports whether two listings have the same items.
func (l *listing) same(other *listing) bool {
	return slices.EqualFunc(l.items, other.items, func(a, b item) bool { return string(a.json) == string(b.json) })
}

// page returns the page that begins behind a cursor, or the first where it is empty
// ("" is a cursor that some clients send). It reports false for a cursor that means
// nothing here.
//
// A cursor names the last item before the page, so that it means the same in a list
// that has changed meanwhile: nothing is left out that is in both, and nothing given
// twice. It is no secret, and gives nobody what they would not be given without it.
func (l *listing) page(method, after string, size int) (json.RawMessage, bool) {
	if after == "" && l.whole != nil {
		return l.whole, true
	}
	rest, ok := l.behind(method, after)
	if !ok {
		return nil, false
	}
	n, left := 0, size
	for n < len(rest) && (n == 0 || len(rest[n].json) < left) {
		left -= len(rest[n].json) + 1
		n++
	}
	if n == len(rest) {
		return l.part(rest, ""), true
	}
	return l.part(rest[:n], cursor(method, rest[n-1].key)), true
}

// part returns an answer with some of the items, and the cursor of the next; empty
// where these are the last.
func (l *listing) part(items []item, next string) json.RawMessage {
	all := make([]json.RawMessage, len(items))
	for i := range items {
		all[i] = items[i].json
	}
	b := rawjson.AppendArray([]byte(l.begin), all)
	if next != "" {
		b = append(append(b, `,"nextCursor":`...), rawjson.Quote(next)...)
	}
	return append(b, '}')
}

// cursor returns the cursor of what is behind an item.
func cursor(method, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(method + "\n" + key))
}

// behind returns the items behind a cursor.
func (l *listing) behind(method, cursor string) ([]item, bool) {
	if cursor == "" {
		return l.items, true
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	of, key, ok := strings.Cut(string(b), "\n")
	at := slices.IndexFunc(l.items, func(i item) bool { return i.key == key })
	if err != nil || !ok || of != method || at < 0 {
		return nil, false
	}
	return l.items[at+1:], true
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
func (v *view) toolItems(f form) []item {
	items := make([]item, 0, v.tools.Len()+2)
	add := func(t *dragoman.Tool) { items = append(items, item{t.Name, definition(t, f)}) }
	for i := range v.tools.All() {
		t := &v.tools.All()[i]
		if t.Quarantined == nil && (!f.search || stays(t, f.kept)) {
			add(t)
		}
	}
	if f.search {
		add(v.stands().find)
		add(v.stands().call)
	}
	if !f.raw {
		add(v.more)
	}
	if f.reviews {
		items = append(items, item{session.ReviewApprovals, session.ReviewTool().Definition})
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
func (v *view) entryItems(kind dragoman.EntryKind, key string) []item {
	items := []item{}
	for _, e := range v.entries {
		if e.Kind != kind {
			continue
		}
		public := e.URI
		if kind == dragoman.Prompt {
			public = e.Name
		}
		if public == e.Original {
			items = append(items, item{public, e.Definition})
			continue
		}
		if kind == dragoman.Skill {
			items = append(items, item{public, relocated(e.Definition, e.Server)})
		} else if o, err := rawjson.ParseObject(e.Definition); err == nil {
			o = o.Clone()
			o.Set(key, rawjson.Quote(public))
			items = append(items, item{public, o.Bytes()})
		}
	}
	return items
}
