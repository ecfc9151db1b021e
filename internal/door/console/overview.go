package console

import (
	"context"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

// open opens a session for the person who is signed in, as each door does for its
// requests. Nothing waits for servers that are starting: pages say that they are.
func (c *Console) open(r *request, dialect string) (*session.Session, error) {
	return c.o.Now().Sessions.Open(r.Context(), r.who, session.Want{Door: "console", Dialect: dialect, NoTools: true})
}

// servers are those that the person reaches, as all callers share them.
func (c *Console) servers(r *request) ([]dragoman.Server, error) {
	list, err := c.o.Servers.List(r.Context())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(list.Servers), func(s dragoman.Server) bool {
		return !c.o.Gate.Reaches(gate.Client{Caller: r.who}, s.Label)
	}), nil
}

type overviewData struct {
	Servers   []dragoman.Server
	Models    []route
	Waiting   int // calls that wait for an answer of this person's
	Held      int // definitions that wait
	Tools     int
	Running   int
	Refused   string
	Inbox     bool
	Demo      bool
	Operates  bool
	Rehearsal bool
}

// A route is where models go whose names match.
type route struct {
	Match, To, From, Dialect string
	Rehearsal, HasKey        bool
}

func (c *Console) overview(r *request) error {
	d := overviewData{Inbox: c.o.Inbox != nil, Operates: r.who.May(permission.Config)}
	var err error
	if d.Servers, err = c.servers(r); err != nil {
		return err
	}
	now := c.o.Now()
	for match, up := range now.Upstreams.Routes() {
		if !d.Operates && !c.o.Gate.Sees(r.who, policy.Model, nameOf(match, up)) {
			continue // nor does GET /v1/models name it to them
		}
		d.Models = append(d.Models, c.route(r, now, match, up))
		d.Rehearsal = d.Rehearsal || up.Rehearsal
	}
	s, err := c.open(r, "")
	if err != nil {
		return err
	}
	list, err := s.Tools.List(r.Context())
	if err != nil {
		return err
	}
	for _, t := range list.Tools.All() {
		if t.Quarantined == nil {
			d.Tools++
		}
	}
	if d.Waiting, d.Held, err = c.waiting(r.Context(), r); err != nil {
		return err
	}
	if r.who.May(permission.Reload) && c.o.Refused != nil {
		d.Refused = c.o.Refused()
	}
	d.Running = c.o.Live.Running(c.watches(r))
	return c.show(r, "overview.html", view{Title: "Overview", Here: Root, Data: d})
}

// nameOf is the name by which models are asked for that match: a pattern stands for itself,
// and so for those who may use all of it.
func nameOf(match string, up *upstream.Upstream) string {
	if up.Rehearsal && strings.ContainsAny(match, "*?[") {
		return "rehearsal"
	}
	return match
}

// route says where a model goes; its address is for those who read the configuration.
func (c *Console) route(r *request, now *Setup, match string, up *upstream.Upstream) route {
	one := route{Match: match, To: up.Host(), From: up.From, Dialect: now.Sessions.Dialect(up).Name(), Rehearsal: up.Rehearsal, HasKey: up.HasKey}
	if r.who.May(permission.Config) {
		one.To = up.String()
	}
	return one
}

// waiting counts what waits for this person: calls, and definitions.
func (c *Console) waiting(ctx context.Context, r *request) (calls, definitions int, err error) {
	if c.o.Inbox != nil {
		all, err := c.o.Inbox.Waiting(ctx, r.who)
		if err != nil {
			return 0, 0, err
		}
		calls = len(all)
	}
	held, err := c.held(ctx, r.who)
	return calls, len(held), err
}
