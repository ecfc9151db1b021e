// Package gate stands between a caller and the tools: nothing is seen, called or
// changed that it has not decided about. It is one toolset, so that the order in
// which a call is judged can be read in one place ([gated.start]):
//
//	policy    may this caller make this call?
//	limit     now, and so often? and is there money left?
//	approval  has somebody to say yes first, and did they?
//	audit     what is about to happen is written down, and on disk
//	          the call runs
//	audit     what came of it is written down
//
// The parts are packages of their own that know nothing of each other. Each leg of
// a call is judged anew: whoever comes back with answers, or with somebody else's
// state, has passed nothing by it, and whoever comes back twice runs nothing twice.
// An approval is spent in the transaction that writes the intent, so that there is
// no moment in which one is and the other is not, and given back where the call
// provably did not run.
//
// What a policy asks for is asked of an operator ([approval.Inbox]), never of the
// caller or the caller's client: the reply that a client sends for such a question
// is not even looked at.
package gate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/meter"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Options are the parts of a [Gate]. Each may be nil, and then stands in nobody's
// way, but for Inbox and Audit: without either, a call that somebody has to approve
// is denied.
type Options struct {
	// Policy is the one that counts until [Gate.Use].
	Policy *policy.Policy
	Limit  *limit.Limiter
	Budget *budget.Budgets
	Inbox  *approval.Inbox
	Audit  *audit.Log
	// Usage keeps what callers use.
	Usage *usage.Book
	// Model returns what the configuration calls a model, and what it costs; nil: as it is
	// called, and nothing.
	Model func(name string) (label string, price usage.Price)
	// Price returns what a call of a tool costs, in millionths; nil: nothing.
	Price func(*dragoman.Tool) int64
	// Store is where it is kept what one call leaves behind for others, with Audit; nil
	// keeps it in this process.
	Store *store.DB
	// Log is told what went wrong here; nil discards it.
	Log *slog.Logger
}

// Gate makes gated toolsets. Make it with [New]; it is safe for concurrent use.
type Gate struct {
	o          Options
	policy     atomic.Pointer[policy.Policy] // the newest; nil for none
	replaced   atomic.Pointer[chan struct{}] // closed when there is another policy
	remembered *remembered
}

// New returns a Gate.
func New(o Options) *Gate {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Audit == nil {
		o.Store = nil // what is spent is spent with an intent
	}
	g := &Gate{o: o, remembered: newRemembered(o.Store, o.Log)}
	g.policy.Store(o.Policy)
	replaced := make(chan struct{})
	g.replaced.Store(&replaced)
	return g
}

// Use makes this the policy. Toolsets that there are keep the one that they were made
// with, and are judged by both: what was taken away is denied at the next leg of a call,
// and what was given is given to those who come. Calls that wait for an approval are
// judged again at once.
func (g *Gate) Use(p *policy.Policy) {
	next := make(chan struct{})
	g.policy.Store(p)
	close(*g.replaced.Swap(&next))
}

// A Client is who is behind the calls of a toolset.
type Client struct {
	Caller caller.Caller
	// Conversation names the caller's conversation, so that what was read in one
	// counts for no other; empty where the client does not say, and then all of the
	// caller's that have no name are one.
	Conversation string
	// Begun are the names of the conversations that this one goes on from, whatever the
	// client calls it now: what is read in one of them is read in all.
	Begun []string
	// Door is where the calls come from, for the audit log.
	Door string
	// StepsUp says that the client can be told which scopes its token lacks. It then
	// sees what those are for, since nobody asks for what they cannot see.
	StepsUp bool
	// Claim is part of each transaction that writes down what is about to be changed; nil
	// where nothing has to be. Where it fails with [idempotency.ErrRunning], another
	// process makes the request's calls: the call is not made, nobody is asked about it, and
	// its error is that.
	Claim func(*store.Tx) error
}

// conversations returns the names of the client's conversation.
func (c Client) conversations() []string {
	names := append([]string{c.Conversation}, c.Begun...)
	slices.Sort(names)
	return slices.Compact(names)
}

// sees returns the caller with the rights by which it is decided what the client sees.
func (c Client) sees() caller.Caller {
	who := c.Caller
	if c.StepsUp && len(who.Reach) > 0 {
		who.Grants = append(slices.Clip(who.Grants), who.Reach...)
	}
	return who
}

// Reaches reports whether a client may know that there is a server of this label.
func (g *Gate) Reaches(who Client, label string) bool {
	return g.policy.Load() == nil || policy.Reaches(who.sees(), label)
}

// Around returns tools as a client may see and call them.
func (g *Gate) Around(who Client, tools dragoman.Toolset) dragoman.Toolset {
	return &gated{g, g.policy.Load(), who, tools}
}

type gated struct {
	*Gate
	began *policy.Policy // when the toolset was made
	who   Client
	tools dragoman.Toolset
}

// strictest returns the verdict of the policy that the toolset was made with, and of the
// newest: the stricter one.
func (t *gated) strictest(decide func(*policy.Policy) policy.Verdict) policy.Verdict {
	v := policy.Verdict{Effect: policy.Allow, Rule: policy.RuleNone}
	if t.began != nil {
		v = decide(t.began)
	}
	if newest := t.policy.Load(); newest != t.began && newest != nil {
		v = v.Stricter(decide(newest))
	}
	return v
}

// List returns what the client may see of the tools.
func (t *gated) List(ctx context.Context) (*dragoman.List, error) {
	list, err := t.tools.List(ctx)
	if err != nil || t.began == nil {
		return list, err
	}
	return t.began.List(t.who.sees(), list), nil
}

// Admit lets a caller use a model, or a route of a model API that is passed on, and
// returns what has to be called when that is over; or the problem. What is denied
// is written down.
func (g *Gate) Admit(ctx context.Context, who caller.Caller, action policy.Action, name string) (leave func(), problem *dragoman.Problem) {
	r := audit.Record{Kind: audit.Decision, Caller: who.ID, CallerName: who.Name, Method: string(action), Target: name, Verdict: audit.Deny}
	if rules := g.policy.Load(); rules != nil {
		v := rules.Decide(policy.Request{Caller: who, Action: action, Name: name})
		if v.Effect == policy.Ask {
			// There is nobody to wait for: a request is passed on now or not at all.
			v.Effect, v.Reason = policy.Deny, v.Reason+" Requests for models and routes cannot wait for that."
		}
		if problem := v.Problem(); problem != nil {
			r.Rule, r.Code = v.Rule, problem.Code
			g.record(r)
			return nil, problem
		}
	}
	if problem := g.o.Budget.Admit(ctx, who, false); problem != nil {
		r.Code = problem.Code
		g.record(r)
		return nil, problem
	}
	use := limit.Route(who, name)
	if action == policy.Model {
		use = limit.Model(who, name)
	}
	end, problem := g.o.Limit.Admit(ctx, use)
	if problem != nil {
		r.Code = problem.Code
		g.record(r)
		return nil, problem
	}
	return func() { end(dragoman.Result{Ran: dragoman.RanYes}) }, nil
}

// Denies reports whether a call is denied, whoever says yes to it: then nobody is to be
// asked. What it would be denied for is said, and written down, when it is made.
func (g *Gate) Denies(ctx context.Context, who Client, call *dragoman.Call) bool {
	_, _, problem := g.ahead(ctx, who, call)
	return problem != nil
}

// Refuse is [Gate.Denies] for a call that is then not made: what it is denied for is
// returned, and written down. It is nil for a call that can be made.
func (g *Gate) Refuse(ctx context.Context, who Client, call *dragoman.Call) *dragoman.Problem {
	t, v, problem := g.ahead(ctx, who, call)
	if problem == nil {
		return nil
	}
	r := t.about(ctx, call)
	r.Verdict, r.Rule = v.Effect.String(), v.Rule
	return t.denied(r, problem).Problem
}

// ahead judges a call before it is made; the problem is nil where somebody could allow it.
func (g *Gate) ahead(ctx context.Context, who Client, call *dragoman.Call) (*gated, policy.Verdict, *dragoman.Problem) {
	rules := g.policy.Load()
	if rules == nil || own(call) {
		return nil, policy.Verdict{}, nil
	}
	t := &gated{Gate: g, began: rules, who: who}
	v := t.judge(ctx, call)
	if v.Effect == policy.Ask && !t.asksFor(call) {
		return t, v, nobodyAsked(v)
	}
	return t, v, v.Problem()
}

// Sees reports whether a caller may use a model or a route, without using it.
func (g *Gate) Sees(who caller.Caller, action policy.Action, name string) bool {
	rules := g.policy.Load()
	return rules == nil || rules.Decide(policy.Request{Caller: who, Action: action, Name: name}).Effect == policy.Allow
}

// LimitsModels reports whether there may be a model that a caller may not use.
func (g *Gate) LimitsModels(who caller.Caller) bool { return g.policy.Load().LimitsModels(who) }

// Meter returns what counts the tokens that a caller uses of a model; nil where nobody
// wants to know them.
func (g *Gate) Meter(who caller.Caller, model string) *meter.Meter {
	limited := g.o.Limit.CountsTokens(who, model)
	if !limited && g.o.Usage == nil {
		return nil
	}
	return &meter.Meter{Count: func(u meter.Used) {
		if limited {
			g.o.Limit.Tokens(who, model, u.Total)
		}
		g.usedModel(who, model, u)
	}}
}

// Spent says that a caller has nothing left to spend on a model, for what an admitted request
// causes beside its own messages; nil where there is something left.
func (g *Gate) Spent(ctx context.Context, who caller.Caller, model string) *dragoman.Problem {
	if problem := g.o.Budget.Admit(ctx, who, false); problem != nil {
		return problem
	}
	return g.o.Limit.Spent(who, model)
}

// Inbox returns where what a policy asks for is asked; nil where nothing is.
func (g *Gate) Inbox() *approval.Inbox { return g.o.Inbox }

// LoggedIn writes down what became of a caller's login at a server, by its label: the
// state, and the code of what went wrong.
func (g *Gate) LoggedIn(who caller.Caller, server, state, code string) {
	g.record(audit.Record{Kind: audit.Login, Caller: who.ID, CallerName: who.Name, Server: server, State: state, Code: code})
}

func (g *Gate) record(r audit.Record) {
	if g.o.Audit != nil {
		g.o.Audit.Append(r)
	}
}

// tainting reports whether it matters what a conversation has read.
func (t *gated) tainting() bool { return t.began.Tainting() || t.policy.Load().Tainting() }

// isTainted reports whether the conversation has read something that strangers may
// have written.
func (t *gated) isTainted(ctx context.Context) bool {
	if !t.tainting() {
		return false
	}
	for _, name := range t.who.conversations() {
		if t.remembered.isTainted(ctx, t.who.Caller.ID, name) {
			return true
		}
	}
	return false
}

// GoOn notes of all that a client's conversation goes on from what was read in any of it: it
// stands in the conversation now, and what goes on from that may name another part alone.
func (g *Gate) GoOn(ctx context.Context, who Client) {
	names := who.conversations()
	t := gated{Gate: g, began: g.policy.Load(), who: who}
	if len(names) == 1 || !t.isTainted(ctx) {
		return
	}
	for _, name := range names {
		if !g.remembered.isTainted(ctx, who.Caller.ID, name) {
			g.remembered.taint(ctx, who.Caller.ID, name)
		}
	}
}

// read notes what a call has brought into the conversation.
func (t *gated) read(ctx context.Context, call *dragoman.Call, res *dragoman.Result) {
	if !t.tainting() || !speaks(call, res) || call.Tool != nil && call.Tool.Closed() {
		return
	}
	for _, name := range t.who.conversations() {
		t.remembered.taint(ctx, t.who.Caller.ID, name)
	}
}

// speaks reports whether a call has brought words of a server: content, an error in
// its own words, or, where there are answers, a question. A question counts once the
// call goes on, so that none is judged by its own.
func speaks(call *dragoman.Call, res *dragoman.Result) bool {
	if res.Content != nil || call.Answers != nil {
		return true
	}
	return res.Problem != nil && errors.As(res.Problem, new(*mcp.RPCError))
}
