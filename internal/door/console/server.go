package console

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/show"
)

type serverData struct {
	dragoman.Server
	Said    string // by a local server, on standard error
	Lists   []toolRow
	More    int // tools that the page does not list; the catalogue does
	Entries []dragoman.Entry
	Others  int // prompts and the like that it does not list
	Age     time.Duration
	Admits  bool // its definitions are pinned
	Use     serverUse
}

// Laid lays a document of the server's out.
func (serverData) Laid(document json.RawMessage) []line { return lines(document) }

// server is the page of one server.
func (c *Console) server(r *request) error {
	all, err := c.servers(r)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(s dragoman.Server) bool { return s.Label == r.PathValue("label") })
	if at < 0 {
		return notFound("There is no such server that you may use.")
	}
	d := serverData{Server: all[at], Age: time.Since(all[at].Since), Admits: c.o.Book.Pins(pin.Auto)}
	if r.who.May(permission.Config) {
		d.Said = c.o.Said(d.Label)
	}
	s, err := c.open(r, "")
	if err != nil {
		return err
	}
	list, err := s.Tools.List(r.Context())
	if err != nil {
		return err
	}
	for i := range list.Tools.All() {
		switch t := &list.Tools.All()[i]; {
		case t.Server != d.Label:
		case len(d.Lists) == perPage:
			d.More++
		default:
			d.Lists = append(d.Lists, rowOf(t))
		}
	}
	for _, e := range list.Entries {
		switch {
		case e.Server != d.Label:
		case len(d.Entries) == perPage:
			d.Others++
		default:
			d.Entries = append(d.Entries, e)
		}
	}
	if d.Use, err = c.useOf(r, d.Label); err != nil {
		return err
	}
	return c.show(r, "server.html", view{Title: "Server", Here: Root, Data: d})
}

// serverUse is what was called of a server in the last days, and what of it failed.
type serverUse struct {
	Kept, Audited bool // there are rows of usage, and a log
	All, Others   bool // the rows are everybody's, and so are the errors
	Rows          []usedRow
	Errors        []serverError
	// More is the address of all that was used of the server.
	More string
}

// A serverError is a call that failed.
type serverError struct {
	Time               time.Time
	Caller, Tool, Code string
	Took               time.Duration
	Ran, Call          string
}

// Bounds of what a server's page tells of its calls.
const (
	usedFor       = 7 * 24 * time.Hour
	maxErrors     = 20
	toolSaidSo    = "tool_error"
	spanOfServers = "7d"
)

// useOf reads what was called of a server: one's own calls, and with a right everybody's.
func (c *Console) useOf(r *request, label string) (u serverUse, err error) {
	wish := usageWish{Since: spanOfServers, Server: label}
	u = serverUse{Kept: c.o.Usage != nil, Audited: c.o.Audit != nil, All: r.who.May(permission.Usage), Others: r.who.May(permission.Audit), More: wish.With()}
	since := time.Now().Add(-usedFor)
	if u.Kept {
		q := usage.Query{Since: since, Of: usage.OfTools, By: []string{usage.ByTool}, Only: map[string][]string{usage.ByServer: {label}}}
		if !u.All {
			q.Caller = r.who.ID
		}
		rows, err := c.o.Usage(r.Context(), q)
		if err != nil {
			return u, err
		}
		slices.SortStableFunc(rows, func(a, b usage.Row) int { return cmp.Compare(b.Calls, a.Calls) })
		for _, row := range rows[:min(len(rows), maxUsed)] {
			u.Rows = append(u.Rows, usedRow{
				Name: row.Tool, Link: wish.With("tool", row.Tool), Calls: number(row.Calls), Errors: number(row.Errors), P50: long(row.P50), P95: long(row.P95),
			})
		}
	}
	if u.Audited {
		u.Errors, err = c.errorsOf(r, label, since, u.Others)
	}
	return u, err
}

// errorsOf reads which calls of a server failed last. Patterns choose in the log; whose a
// call was, and of which server, is compared here.
func (c *Console) errorsOf(r *request, label string, since time.Time, others bool) (all []serverError, err error) {
	f := audit.Filter{Failed: true, Since: since, Server: label, Limit: maxErrors}
	if !others {
		f.Caller, f.Limit = r.who.ID, 0
	}
	found, err := c.o.Audit.Find(r.Context(), f)
	for i := range found {
		record := &found[i]
		if record.Server != label || !others && record.Caller != r.who.ID || len(all) == maxErrors {
			continue
		}
		e := serverError{
			Time: record.Time, Caller: show.RecordOf(record).Caller, Tool: record.Target, Code: record.Code,
			Took: time.Duration(record.Microseconds) * time.Microsecond, Ran: record.Ran, Call: record.Call,
		}
		if record.Failed {
			e.Code = toolSaidSo
		}
		all = append(all, e)
	}
	return all, err
}
