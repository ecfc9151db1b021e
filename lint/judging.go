package lint

import (
	"context"
	"slices"

	"github.com/dragoman-mcp/dragoman/dialect"
)

// A judging runs the rules over the servers of a report: each server when it was seen, and
// the rules about sets when all were.
type judging struct {
	r        *Report
	o        *Options
	dialects []*dialect.Dialect
	parts    []Report  // of each server
	early    []*Report // what was found in the tools of those that are told of early
	teller   *teller
}

// all judges the saved lists, side by side, and then watches and judges the running
// servers, one after the other, so that none is slowed down by another. seen sees each
// server before it is judged.
func (j *judging) all(ctx context.Context, targets []Target, seen func(*Server)) error {
	var saved []int
	for i := range targets {
		if !targets[i].live() {
			saved = append(saved, i)
			seen(j.r.Servers[i].Server)
		}
	}
	sideBySide(len(saved), func(n int) {
		if ctx.Err() == nil {
			j.one(saved[n])
		}
	})
	for i := range targets {
		s := j.r.Servers[i].Server
		if !targets[i].live() || ctx.Err() != nil {
			continue
		}
		if s.mayStart(targets[i]) && !j.o.ConfigOnly {
			observe(ctx, s, targets[i], *j.o, func() { j.listed(i) })
		}
		if ctx.Err() == nil {
			seen(s)
			j.one(i)
		}
	}
	return ctx.Err()
}

// part is an empty report of one server.
func (j *judging) part(i int) Report {
	return Report{Servers: j.r.Servers[i : i+1], rules: j.r.rules}
}

// one judges one server.
func (j *judging) one(i int) {
	s := j.r.Servers[i].Server
	if j.early[i] == nil {
		j.parts[i] = j.part(i)
		j.tools(i)
	} else {
		j.parts[i] = *j.early[i]
	}
	for k := range j.o.Rules {
		if rule := &j.o.Rules[k]; rule.Tool == nil {
			j.parts[i].judge(rule, s)
		}
	}
	j.parts[i].foldSDK(s)
	j.teller.tell(&j.parts[i])
}

// listed tells what is wrong with what a running server says of itself, while it is
// watched further. What belongs to no tool is judged again in the end.
func (j *judging) listed(i int) {
	if j.o.Found == nil {
		return
	}
	j.parts[i] = j.part(i)
	j.tools(i)
	tools := j.parts[i]
	tools.Findings = slices.Clone(tools.Findings)
	j.early[i] = &tools
	for k := range j.o.Rules {
		if rule := &j.o.Rules[k]; rule.Server != nil {
			j.parts[i].judge(rule, j.r.Servers[i].Server)
		}
	}
	j.teller.tell(&j.parts[i])
}

// tools judges each tool of a server.
func (j *judging) tools(i int) {
	s := j.r.Servers[i].Server
	j.o.Progress(s.Label, "converting")
	s.converted = convert(s, j.dialects)
	for k := range j.o.Rules {
		if rule := &j.o.Rules[k]; rule.Tool != nil {
			j.parts[i].judge(rule, s)
		}
	}
}

// collect puts the findings together, in the order of the servers, and judges the set.
func (j *judging) collect() {
	servers := make([]*Server, len(j.r.Servers))
	for i, a := range j.r.Servers {
		servers[i] = a.Server
		j.r.Findings = append(j.r.Findings, j.parts[i].Findings...)
	}
	for i := range j.o.Rules {
		if rule := &j.o.Rules[i]; rule.Set != nil && len(servers) > 0 {
			j.r.run(rule, At{}, nil, func(say Say) { rule.Set(servers, say) })
		}
	}
}
