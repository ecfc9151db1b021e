package gate

import (
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/meter"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/text/money"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// usedModel notes what an exchange with a model used.
func (g *Gate) usedModel(who caller.Caller, name string, u meter.Used) {
	if g.o.Usage == nil {
		return
	}
	var price usage.Price
	if g.o.Model != nil {
		name, price = g.o.Model(name)
	}
	s := usage.Used(u.Took)
	s.Input, s.Output, s.Cached, s.Reasoning = u.In, u.Out, u.Cached, u.Reasoning
	if u.Failed {
		s.Errors = 1
	}
	s.Cost = price.Cost(s)
	g.o.Usage.Named(who.ID, who.RuleName())
	g.o.Usage.Add(usage.Key{Caller: who.ID, Model: name}, s)
}

// usedTool notes that a tool was called. What did not run is a call without a price.
func (t *gated) usedTool(call *dragoman.Call, res *dragoman.Result, took time.Duration) {
	if t.o.Usage == nil || call.Tool == nil || res.Asks != nil {
		return
	}
	s := usage.Used(took)
	if res.Problem != nil || res.Failed {
		s.Errors = 1
	}
	if res.Ran.After(call.Answers) != dragoman.RanNot {
		if t.o.Price != nil {
			s.Cost = t.o.Price(call.Tool)
		}
		if said, ok := saidCost(res); ok {
			s.Cost = said
		}
	}
	t.o.Usage.Named(t.who.Caller.ID, t.who.Caller.RuleName())
	t.o.Usage.Add(usage.Key{Caller: t.who.Caller.ID, Server: call.Tool.Server, Tool: call.Tool.Original}, s)
}

// CostMember is the member of a result's _meta by which a server says what the call cost,
// as an amount such as "0.002" in the currency of the configuration's prices.
const CostMember = "io.github.dragoman-mcp/cost"

// saidCost returns what a server says that a call cost. It counts in place of the price of
// the configuration.
func saidCost(res *dragoman.Result) (millionths int64, ok bool) {
	if !strings.Contains(string(res.Content), CostMember) {
		return 0, false
	}
	o, err := rawjson.ParseObject(res.Content)
	if err != nil {
		return 0, false
	}
	meta, err := rawjson.ParseObject(o.Get("_meta"))
	if err != nil {
		return 0, false
	}
	text, isText := rawjson.String(meta.Get(CostMember))
	if !isText {
		return 0, false
	}
	millionths, err = money.Parse(text)
	return millionths, err == nil && text != ""
}
