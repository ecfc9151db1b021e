package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// An offer is a list of our tools as requests of one dialect carry it.
type offer struct {
	index     *dragoman.Tools
	plans     map[*dragoman.Tool]*dialect.Plan
	functions []byte // the elements of tools, joined by commas
	strict    bool   // one of them is strict
	left      []string
}

// Offers keeps the offers that were made, so that offering hundreds of tools
// costs a request nothing. The zero value is ready; it is safe for concurrent
// use.
type Offers struct {
	mu     sync.Mutex
	recent []cachedOffer // the newest last

	toolless map[string]time.Time // models that refused tools, and when
}

type cachedOffer struct {
	tools   *dragoman.Tools
	dialect *dialect.Dialect
	room    int
	offer   *offer
}

const maxCachedOffers = 32

// get returns the offer of tools in a dialect, made now or before. The client
// brings that many tools of its own.
func (s *Offers) get(tools *dragoman.Tools, d *dialect.Dialect, clients int) *offer {
	room := d.Wire().MaxTools
	if room > 0 {
		room = max(room-clients, 0)
	}
	if tools.Len() == 0 || d.Wire().MaxTools > 0 && room == 0 {
		return makeOffer(nil, d, 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.recent {
		if c.tools == tools && c.dialect == d && c.room == room {
			return c.offer
		}
	}
	if len(s.recent) >= maxCachedOffers {
		s.recent = append([]cachedOffer(nil), s.recent[1:]...)
	}
	o := makeOffer(tools, d, room)
	s.recent = append(s.recent, cachedOffer{tools, d, room, o})
	return o
}

// makeOffer plans each tool that can be offered and fits them into one request
// with room for that many, or for any number if it is zero. Tools that the
// dialect can not take, and tools for which there is no room, are left out and
// named.
func makeOffer(tools *dragoman.Tools, d *dialect.Dialect, room int) *offer {
	o := &offer{plans: make(map[*dragoman.Tool]*dialect.Plan, tools.Len())}
	byName := make(map[string]dragoman.Tool, tools.Len())
	plans := make([]*dialect.Plan, 0, tools.Len())
	for _, t := range tools.All() {
		if t.Quarantined != nil {
			continue
		}
		plan, problem := d.Plan(t)
		if problem != nil {
			o.left = append(o.left, t.Name)
			continue
		}
		plans, byName[plan.Name()] = append(plans, plan), t
	}
	plans, left, _ := d.Fit(plans, dialect.Budget{Tools: room})
	for _, plan := range left {
		o.left = append(o.left, plan.Name())
	}
	kept := make([]dragoman.Tool, len(plans))
	for i, plan := range plans {
		kept[i] = byName[plan.Name()]
		o.plans[&kept[i]] = plan
		o.strict = o.strict || plan.Strict()
		if i > 0 {
			o.functions = append(o.functions, ',')
		}
		o.functions = append(o.functions, plan.Function()...)
	}
	o.index = dragoman.NewTools(kept)
	return o
}

// avoid renames tools whose public name is that of a client's own tool: the
// client's keeps its name. It returns tools itself where nothing clashes.
func avoid(list *dragoman.Tools, taken map[string]bool) *dragoman.Tools {
	tools := list.All()
	clash := false
	for i := range tools {
		clash = clash || taken[tools[i].Name]
	}
	if !clash {
		return list
	}
	used := map[string]bool{}
	for _, t := range tools {
		used[t.Name] = true
	}
	renamed := append([]dragoman.Tool(nil), tools...)
	for i := range renamed {
		t := &renamed[i]
		for n := 1; taken[t.Name] || n > 1 && used[t.Name]; n++ {
			suffix := "_mcp"
			if n > 1 {
				suffix = fmt.Sprintf("_mcp%d", n)
			}
			t.Name = tools[i].Name[:min(len(tools[i].Name), 64-len(suffix))] + suffix
		}
		if t.Name != tools[i].Name {
			used[t.Name] = true
		}
	}
	return dragoman.NewTools(renamed)
}

// choose returns the tool_choice for a round in a form that the dialect takes;
// nil to leave it out. theirs are the names of the client's own tools.
func (o *offer) choose(c toolChoice, w *dialect.Wire, theirs map[string]bool) json.RawMessage {
	switch c.mode {
	case "":
		return nil
	case "named":
		t := o.chosen(c, theirs)
		switch {
		case t == nil && c.server != "":
			return nil // the server has no such tool now
		case t == nil && w.Accepts("named"):
			return c.raw // the client's own
		case t != nil && w.Accepts("named"):
			return json.RawMessage(`{"type":"function","function":{"name":` + string(rawjson.Quote(t.Name)) + `}}`)
		case w.Accepts("required"):
			return json.RawMessage(`"required"`)
		}
		return nil
	case "auto", "none", "required":
		if !w.Accepts(c.mode) {
			return nil
		}
	}
	return c.raw
}

// chosen returns our tool that a named choice means; nil for a client's own.
func (o *offer) chosen(c toolChoice, theirs map[string]bool) *dragoman.Tool {
	if c.server == "" && theirs[c.name] {
		return nil
	}
	if c.server == "" {
		return o.index.Find(c.name)
	}
	for t := range o.plans {
		if t.Server == c.server && t.Original == c.name {
			return t
		}
	}
	return nil
}

// relaxed returns the choice for the rounds after the first one that called a
// tool: forcing a call again and again would never end.
func (c toolChoice) relaxed() toolChoice {
	switch c.mode {
	case "required", "named":
		return toolChoice{mode: "auto", raw: json.RawMessage(`"auto"`)}
	case "allowed":
		o, err := rawjson.ParseObject(c.raw)
		if err != nil {
			return c
		}
		inner, err := rawjson.ParseObject(o.Get("allowed_tools"))
		if err != nil {
			return c
		}
		inner.Set("mode", rawjson.Quote("auto"))
		o.Set("allowed_tools", inner.Bytes())
		return toolChoice{mode: "allowed", raw: o.Bytes()}
	}
	return c
}

// unknownTool is what a model is told that called a name nobody offered.
func unknownTool(name string, o *offer) *dragoman.Problem {
	msg := fmt.Sprintf("There is no tool named %q.", clip(name, 80))
	if near := o.near(name); near != "" {
		msg += fmt.Sprintf(" Did you mean %q?", near)
	} else {
		msg += " Use one of the tools that were offered."
	}
	return &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: msg}
}

// near returns a tool whose name holds name, or is held by it.
func (o *offer) near(name string) string {
	name = strings.ToLower(name)
	best := ""
	for t := range o.plans {
		have := strings.ToLower(t.Name)
		if name != "" && (strings.Contains(have, name) || strings.Contains(name, strings.ToLower(t.Original))) &&
			(best == "" || t.Name < best) {
			best = t.Name
		}
	}
	return best
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
