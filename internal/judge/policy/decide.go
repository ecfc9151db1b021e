package policy

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// DecideCall answers for a call of a toolset: with the strictest verdict of what
// it asks for ([Requests]).
func (p *Policy) DecideCall(who caller.Caller, call dragoman.Call, tainted bool) Verdict {
	verdict := Verdict{Effect: Allow, Rule: RuleNone}
	for i, r := range Requests(who, call, tainted) {
		if v := p.Decide(r); i == 0 {
			verdict = v
		} else {
			verdict = verdict.Stricter(v)
		}
	}
	return verdict
}

// Decide answers a request. It never fails: what cannot be judged is denied, with
// the reason. Of what can be read in several ways the strictest verdict counts; that no
// rule or grant names another spelling of the same counts for nothing.
func (p *Policy) Decide(r Request) Verdict {
	verdict := p.decideRead(&r)
	for other, same := range r.others() {
		v := p.decideRead(other)
		if same && v.unnamed() {
			continue
		}
		verdict = verdict.Stricter(v)
	}
	return verdict
}

// unnamed reports whether no rule or grant names what was asked for.
func (v *Verdict) unnamed() bool { return v.Rule == RuleDefault || v.Rule == RuleGrants }

// decideRead answers a request that is read in one way.
func (p *Policy) decideRead(r *Request) Verdict {
	t, v, decided := p.withoutRules(r)
	if decided {
		return v
	}
	return p.conclude(r, &t, p.decision(r, &t))
}

// DecideUse answers for what is wanted of a call that runs already, such as its result:
// it is denied where no arguments would let the caller call the tool now. What rules ask
// of somebody was asked before the call began.
func (p *Policy) DecideUse(who caller.Caller, tool *dragoman.Tool, tainted bool) Verdict {
	r := Request{Caller: who, Action: Call, Tool: tool, Tainted: tainted}
	t, v, decided := p.withoutRules(&r)
	if decided {
		return v
	}
	d := p.decision(&r, &t)
	if d.possible(&t) {
		return Verdict{Effect: Allow, Rule: RuleNone}
	}
	return d.verdict(&t)
}

// withoutRules answers what needs no rule.
func (p *Policy) withoutRules(r *Request) (t target, v Verdict, decided bool) {
	t, ok := r.target()
	switch {
	case !r.Caller.Valid():
		return t, Verdict{Rule: RuleInvalid, Reason: "Nobody is known to ask.", Err: errors.New("policy: a request without a caller")}, true
	case !ok:
		return t, Verdict{Rule: RuleInvalid, Reason: "There is nothing of that name to be allowed.", Err: errors.New("policy: a request without a target")}, true
	case t.tool != nil && t.tool.Quarantined != nil:
		return t, Verdict{Rule: RuleInvalid, Reason: "The tool is in quarantine."}, true
	case t.tool != nil && t.server == "":
		return t, Verdict{Effect: Allow, Rule: RuleOwn}, true
	case !t.granted(&r.Caller):
		v := denied(&t, RuleGrants, "the caller was not granted "+t.String())
		v.Needs = t.String()
		return t, v, true
	case p.strays(&t, &r.Caller):
		return t, denied(&t, RuleInvalid, "it goes up with .., so no rule can tell where it ends"), true
	case p.Zero():
		return t, Verdict{Effect: Allow, Rule: RuleNone}, true
	}
	return t, v, false
}

// A decision is what rules say of a target and a class of callers before anybody
// looks at arguments. It is the same for listing and for calling.
type decision struct {
	failed  *policy // whose evaluation failed, with err; it denies
	err     error
	forbids *policy
	allows  *policy
	asks    []*policy
	// open are the policies that look at arguments and hold so far.
	open   statements
	wanted wantedNames // by open
}

// decision returns what is remembered of a request, or decides it.
func (p *Policy) decision(r *Request, t *target) *decision {
	class, key := p.class(&r.Caller), t.key(r.Action, r.Tainted && p.uses.tainted)
	if d, ok := p.decisions.Get(class, key); ok {
		return d
	}
	d := p.decide(r, t, r.Tainted)
	p.decisions.Put(class, key, d, int64(len(key)+len(class)))
	return d
}

// decide evaluates all rules as far as they do not look at arguments.
func (p *Policy) decide(r *Request, t *target, tainted bool) *decision {
	about := p.about(r.Action, t)
	d, e := &decision{}, &entities{p.callerEntity(r.Caller), about.target}
	q := e.request(r.Action, types.NewRecord(types.RecordMap{"tainted": types.Boolean(tainted)}))
	d.take(p, about.fixed, e, q)
	for _, each := range about.looking {
		holds, err := holds(each.id, each.before, e, q)
		switch {
		case err != nil:
			d.fail(each, err)
		case holds:
			d.open = append(d.open, each)
		}
	}
	d.wanted = foldedNames(d.open)
	return d
}

// relevant are the policies that are about a target: for anybody else's sake the
// others need not be evaluated.
type relevant struct {
	fixed, looking statements
	target         types.Entity
}

// about returns the policies that are about a target, whoever asks.
func (p *Policy) about(action Action, t *target) *relevant {
	key := t.key(action, false)
	if r, ok := p.relevant.Get("", key); ok {
		return r
	}
	r := &relevant{target: p.targetEntity(*t)}
	e := &entities{target: r.target}
	q := e.request(action, types.Record{})
	keep := func(from statements) (kept statements) {
		for _, each := range from {
			// What fails here may not be reached for everybody.
			if holds, err := holds(each.id, each.about, e, q); holds || err != nil {
				kept = append(kept, each)
			}
		}
		return kept
	}
	r.fixed, r.looking = keep(p.fixed), keep(p.looking)
	p.relevant.Put("", key, r, int64(len(key)+8*(len(r.fixed)+len(r.looking))+entityBytes))
	return r
}

// holds evaluates the front of a policy.
func holds(id cedar.PolicyID, front *cedar.Policy, e *entities, q cedar.Request) (bool, error) {
	_, diagnostic := cedar.Authorize(cedar.PolicyMap{id: front}, e, q)
	if len(diagnostic.Errors) > 0 {
		return false, errors.New(diagnostic.Errors[0].Message)
	}
	return len(diagnostic.Reasons) > 0, nil
}

// take evaluates policies and adds what they say.
func (d *decision) take(p *Policy, policies statements, e *entities, q cedar.Request) {
	if len(policies) == 0 {
		return
	}
	_, diagnostic := cedar.Authorize(policies, e, q)
	for _, failure := range diagnostic.Errors {
		d.fail(p.of(failure.PolicyID), errors.New(failure.Message))
	}
	for _, reason := range diagnostic.Reasons {
		switch each := p.of(reason.PolicyID); {
		case each.Effect() == cedar.Forbid:
			if d.forbids == nil {
				d.forbids = each
			}
		case each.ask:
			d.asks = append(d.asks, each)
		case d.allows == nil:
			d.allows = each
		}
	}
}

func (d *decision) fail(p *policy, err error) {
	if d.failed == nil {
		d.failed, d.err = p, err
	}
}

// of returns the policy of an id.
func (p *Policy) of(id cedar.PolicyID) *policy {
	i, _ := strconv.Atoi(string(id))
	return p.policies[i]
}

// conclude looks at the arguments where rules want to, and words the verdict.
func (p *Policy) conclude(r *Request, t *target, d *decision) Verdict {
	if len(d.open) == 0 || d.failed != nil || d.forbids != nil {
		return d.verdict(t)
	}
	readings, inexact, err := d.read(r.Arguments)
	var v Verdict
	if err != nil {
		whole := *d
		whole.fail(d.open[0], err)
		v = whole.verdict(t)
	}
	e := &entities{p.callerEntity(r.Caller), p.about(r.Action, t).target}
	for i, arguments := range readings {
		whole := *d
		whole.asks = slices.Clone(d.asks)
		whole.take(p, d.open, e, e.request(r.Action, types.NewRecord(types.RecordMap{
			"tainted": types.Boolean(r.Tainted), "arguments": arguments, "inexact": types.Boolean(inexact),
		})))
		if each := whole.verdict(t); i == 0 {
			v = each
		} else {
			v = v.Stricter(each)
		}
	}
	v.Depends = true
	return v
}

// read returns what servers may find in arguments, as far as open rules look at them: the
// arguments as they are and, where a name differs in case alone from one that rules look
// for, as if it was that.
func (d *decision) read(arguments json.RawMessage) (readings []types.Record, inexact bool, err error) {
	exact, inexact, err := record(arguments)
	switch {
	case err != nil:
	case twins(exact):
		err = errTwins
	case hasPrototype(exact):
		err = errPrototype
	}
	if err != nil {
		return nil, false, err
	}
	readings = append(readings, exact)
	for n := range d.wanted.most {
		other, changed, err := d.wanted.rename(exact, n)
		switch {
		case err != nil:
			return nil, false, err
		case changed:
			readings = append(readings, other)
		}
	}
	return readings, inexact, nil
}

func (d *decision) verdict(t *target) Verdict {
	switch {
	case d.failed != nil:
		v := denied(t, d.failed.name, fmt.Sprintf("the rule %q could not be evaluated", d.failed.name))
		v.Err = fmt.Errorf("policy: rule %q: %w", d.failed.name, d.err)
		return v
	case d.forbids != nil:
		return d.forbids.denies(t)
	case len(d.asks) > 0:
		return ask(t, d.asks)
	case d.allows != nil:
		return Verdict{Effect: Allow, Rule: d.allows.name}
	}
	return denied(t, RuleDefault, "no rule allows it")
}

// possible reports whether there can be arguments that are not denied.
func (d *decision) possible(t *target) bool {
	if d.failed != nil || d.forbids != nil {
		return false
	}
	for _, p := range d.open {
		if p.Effect() == cedar.Permit {
			return true
		}
	}
	return d.verdict(t).Effect != Deny
}

// key names a target among all that decisions are remembered of.
func (t *target) key(action Action, tainted bool) string {
	b := make([]byte, 0, 96)
	b = append(append(b, action...), ' ')
	b = strconv.AppendBool(b, tainted)
	if t.tool != nil {
		b = strconv.AppendInt(append(b, ' '), int64(t.tool.Declared), 10)
		b = strconv.AppendBool(append(b, ' '), t.tool.ClosedWorld)
		return string(hex.AppendEncode(append(b, ' '), t.tool.Pin[:]))
	}
	b = append(append(b, ' '), t.kind...)
	b = append(append(b, ' '), t.server...)
	return string(append(append(b, ' '), t.original...))
}
