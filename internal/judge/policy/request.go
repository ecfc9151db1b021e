package policy

import (
	"encoding/hex"
	"encoding/json"
	"iter"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// An Action is what is asked for.
type Action string

// The actions.
const (
	Call  Action = "call"  // call a tool
	Read  Action = "read"  // read, complete or follow what else a server offers
	Model Action = "model" // use a model
	Route Action = "route" // use a route of a model API, by its path
)

// A Request is one question to a [Policy].
type Request struct {
	// Caller is who asks. It may do what it was granted ([caller.Caller.May]), as far
	// as rules let it; what a server offers beside its tools is granted with tools of
	// the same name, as by tool:* or tool:files__*.
	Caller caller.Caller
	Action Action

	// Tool is the target of Call, and Entry that of Read. A Read without an Entry
	// is of the server labelled Server as such.
	Tool   *dragoman.Tool
	Entry  *dragoman.Entry
	Server string
	// Name is the model of Model, or the path of Route.
	Name string

	// Arguments are those of the call, byte for byte what the server gets: an
	// object that passed [rawjson.Check]; nil for none. Of a Read they are the
	// params.
	Arguments json.RawMessage
	// Tainted says that the conversation has read something from the open world
	// before: a result of a tool that is not [dragoman.Tool.Closed]. A stranger may
	// have written what the model does now.
	Tainted bool
}

// Requests returns what a call of a toolset asks for: one thing for most, and
// several for a call that follows several resources. None means that there is
// nothing to decide: a subscription to nothing but changes of lists, which are
// filtered themselves.
func Requests(who caller.Caller, call dragoman.Call, tainted bool) []Request {
	r := Request{Caller: who, Arguments: call.Arguments, Tainted: tainted}
	if call.Method == "" || call.Method == "tools/call" {
		r.Action, r.Tool = Call, call.Tool
		return []Request{r}
	}
	r.Action, r.Entry, r.Server = Read, call.Entry, call.Server
	switch {
	case call.Entry != nil:
	case call.Tool != nil: // whatever is wanted of a tool is a use of it
		r.Action, r.Tool = Call, call.Tool
	case call.Method == "completion/complete":
		r.Entry = completed(call)
	case call.Method == "subscriptions/listen":
		return followed(r, call)
	}
	return []Request{r}
}

// completed returns what an argument is completed of.
func completed(call dragoman.Call) *dragoman.Entry {
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil {
		return nil
	}
	ref, err := rawjson.ParseObject(params.Get("ref"))
	if err != nil {
		return nil
	}
	e := &dragoman.Entry{Server: call.Server}
	switch kind, _ := rawjson.String(ref.Get("type")); kind {
	case "ref/prompt":
		e.Kind = dragoman.Prompt
		e.Original, _ = rawjson.String(ref.Get("name"))
	case "ref/resource":
		e.Kind = dragoman.Resource
		if e.Original, _ = rawjson.String(ref.Get("uri")); strings.Contains(e.Original, "{") {
			e.Kind = dragoman.Template
		}
	default:
		return nil
	}
	return e
}

// followed returns the resources that a call listens for.
func followed(r Request, call dragoman.Call) (all []Request) {
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil {
		return []Request{r}
	}
	wanted, err := rawjson.ParseObject(params.Get("notifications"))
	if err != nil {
		return nil
	}
	uris, _ := rawjson.Elements(wanted.Get("resourceSubscriptions"))
	for _, u := range uris {
		uri, ok := rawjson.String(u)
		if !ok {
			return []Request{r}
		}
		each := r
		each.Entry = &dragoman.Entry{Kind: dragoman.Resource, Server: call.Server, Original: uri}
		all = append(all, each)
	}
	return all
}

// String names what is asked for as a right that could be granted, such as
// "tool:files__read"; empty for nothing.
func (r Request) String() string {
	t, ok := r.target()
	if !ok {
		return ""
	}
	return t.String()
}

// others are the requests that r is for those who spell, or read, what it names in
// another way; same says that what is allowed of r is allowed of the other.
func (r *Request) others() iter.Seq2[*Request, bool] {
	return func(yield func(other *Request, same bool) bool) {
		t, ok := r.target()
		if !ok {
			return
		}
		for _, each := range spellings(t.kind, t.original) {
			other := *r
			if r.Entry != nil {
				entry := *r.Entry
				entry.Original, other.Entry = each.text, &entry
			} else {
				other.Name = each.text
			}
			if !yield(&other, each.same) {
				return
			}
		}
	}
}

// unescaped returns a text with %41 and the like written out, as the most lenient of
// servers read it: what is no such escape stands for itself.
func unescaped(text string) string {
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := hex.DecodeString(text[i+1 : i+3]); err == nil {
				b = append(b, c[0])
				i += 2
				continue
			}
		}
		b = append(b, text[i])
	}
	return string(b)
}

// maxReadings is how often a URI is read: %252e is a dot behind two readings.
const maxReadings = 3

// A target is what a request is about, in the words of the rules.
type target struct {
	kind             string // the word of rights and patterns
	server, original string // of a server; original is the name of a model or a route
	tool             *dragoman.Tool
}

// target returns what r is about; false where that is nothing.
func (r *Request) target() (t target, ok bool) {
	switch {
	case r.Action == Call && r.Tool != nil:
		return target{"tool", r.Tool.Server, r.Tool.Original, r.Tool}, true
	case r.Action == Read && r.Entry != nil:
		t = target{kind: string(r.Entry.Kind), server: r.Entry.Server, original: r.Entry.Original}
		return t, cedarTypes[t.kind] != "" && t.server != ""
	case r.Action == Read && r.Entry == nil && r.Server != "":
		return target{kind: "server", server: r.Server}, true
	case (r.Action == Model || r.Action == Route) && r.Name != "":
		return target{kind: string(r.Action), original: r.Name}, true
	}
	return t, false
}

// name is what patterns are compared with.
func (t *target) name() string {
	if t.kind == "model" || t.kind == "route" {
		return t.original
	}
	return qualified.Name(t.server, t.original)
}

// String names the target for people, as a right that could be granted.
func (t *target) String() string {
	if t.kind == "server" {
		return "server:" + t.server
	}
	return t.kind + ":" + t.name()
}

// granted reports whether somebody may use the target, as far as it is theirs to
// say.
func (t *target) granted(who *caller.Caller) bool {
	return who.May(t.String()) || t.server != "" && t.kind != "tool" && who.May("tool:"+t.name())
}

// strays reports that a target goes up, and where it ends makes a difference: to a rule,
// or to a caller who was not granted all of that kind that the server has.
func (p *Policy) strays(t *target, who *caller.Caller) bool {
	if !t.climbs() {
		return false
	}
	whole := target{kind: t.kind, server: t.server}
	return !p.Zero() || !whole.granted(who)
}

// climbs reports that a URI or a path goes up (/a/../b), so that no pattern can
// say where it ends: the server may follow it, or not.
func (t *target) climbs() bool {
	switch t.kind {
	case "resource", "template", "skill", "route":
	default:
		return false
	}
	text := t.original
	for range maxReadings {
		for segment := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '\\' }) {
			if segment == ".." {
				return true
			}
		}
		text = unescaped(text)
	}
	return false
}
