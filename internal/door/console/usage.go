package console

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/text/money"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// maxUsed is how many rows a table of the page has, and budgets: those of which most was
// used.
const maxUsed = 50

// spans are the times that the page can show, and the hours of one column of a chart.
var spans = []struct {
	Name    string
	columns int
	step    int64
}{{"24h", 24, 1}, {"7d", 28, 6}, {"30d", 30, 24}, {"90d", 30, 72}}

type usageData struct {
	Kept  bool // there is usage
	All   bool // others' may be seen
	Wish  usageWish
	Spans []string
	From  time.Time
	To    time.Time
	Of    []used
	// Budgets are those of which most is spent.
	Budgets []budgetRow
}

// A usageWish is what the address of the page asks for.
type usageWish struct {
	Since, By, Caller, Model, Server, Tool string
}

// With is the address with one parameter more, or with another value.
func (w usageWish) With(pairs ...string) string {
	q := url.Values{}
	for name, value := range map[string]string{"since": w.Since, "by": w.By, "caller": w.Caller, "model": w.Model, "server": w.Server, "tool": w.Tool} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return Root + "usage?" + q.Encode()
}

// used is what was used of models, or of tools.
type used struct {
	Models bool
	Money  bool // something had a price
	Charts []chart
	Rows   []usedRow
	More   int // rows that are not shown
}

// A usedRow is one of those that are told apart.
type usedRow struct {
	Name, Also, Link string
	Chart            chart
	Calls, Errors    string
	P50, P95         string
	In, Out          string
	Repairs, Cuts    string
	Cost             string
}

type budgetRow struct {
	budget.State
	Whose, Tokens, Cost string
	Wide                int // of what is spent, of a hundred
}

// usage is the page of what was used. Who has the right sees all, anybody else their own.
func (c *Console) usage(r *request) error {
	d := usageData{Kept: c.o.Usage != nil, All: r.who.May(permission.Usage)}
	v := view{Title: "Usage", Here: Root + "usage"}
	if !d.Kept {
		v.Data = d
		return c.show(r, "usage.html", v)
	}
	q := r.URL.Query()
	d.Wish = usageWish{Since: cmp.Or(q.Get("since"), "7d"), By: q.Get("by"), Caller: q.Get("caller"), Model: q.Get("model"), Server: q.Get("server"), Tool: q.Get("tool")}
	at := -1
	for i, each := range spans {
		d.Spans = append(d.Spans, each.Name)
		if each.Name == d.Wish.Since {
			at = i
		}
	}
	if at < 0 || !slices.Contains([]string{"", usage.ByServer, usage.ByCaller}, d.Wish.By) {
		return model.Invalid("since", "since is one of "+strings.Join(d.Spans, ", ")+", and by is server or caller, or is left out.")
	}
	if !d.All {
		d.Wish.Caller = ""
	}
	names, err := c.o.Named(r.Context())
	if err != nil {
		return err
	}
	reading := usageReading{c: c, wish: d.Wish, names: names, columns: spans[at].columns, step: spans[at].step, query: usage.Query{Step: spans[at].step, Only: map[string][]string{}}}
	reading.narrow(d.All, r.who.ID)
	seconds := int64(reading.length().Seconds())
	last := time.Now().Unix() / seconds // as the rows are told together: counted from 1970
	d.To = time.Unix((last+1)*seconds, 0).UTC()
	d.From = d.To.Add(-reading.length() * time.Duration(reading.columns))
	reading.query.Since = d.From
	if d.Wish.Tool == "" && (d.Wish.Server == "" || d.Wish.Model != "") {
		if err := reading.add(r.Context(), &d, usage.OfModels); err != nil {
			return err
		}
	}
	if d.Wish.Model == "" {
		if err := reading.add(r.Context(), &d, usage.OfTools); err != nil {
			return err
		}
	}
	whose := &r.who
	if d.All {
		whose = nil
	}
	for _, s := range c.o.Budgets(r.Context(), whose) {
		if len(d.Budgets) < maxUsed {
			d.Budgets = append(d.Budgets, budgetOf(s, names))
		}
	}
	v.Data = d
	return c.show(r, "usage.html", v)
}

// budgetOf is a budget as the page shows it.
func budgetOf(s budget.State, names map[string]string) budgetRow {
	b := budgetRow{State: s, Whose: cmp.Or(names[s.Caller], s.Caller), Wide: int(min(s.Percent, 100))}
	if s.TokensOf > 0 {
		b.Tokens = number(s.Tokens) + " / " + number(s.TokensOf)
	}
	if s.Money() {
		b.Cost = money.Format(s.Cost) + " / " + money.Format(s.CostOf)
	}
	return b
}

// A usageReading reads what a page shows.
type usageReading struct {
	c       *Console
	wish    usageWish
	names   map[string]string
	columns int
	step    int64
	query   usage.Query // what all questions have in common
}

func (u *usageReading) length() time.Duration { return time.Duration(u.step) * time.Hour }

// narrow leaves what the address asks for, and what the person may see.
func (u *usageReading) narrow(all bool, id string) {
	if !all {
		u.query.Caller = id
	}
	for column, value := range map[string]string{usage.ByModel: u.wish.Model, usage.ByServer: u.wish.Server, usage.ByTool: u.wish.Tool} {
		if value != "" {
			u.query.Only[column] = []string{value}
		}
	}
	if u.wish.Caller != "" { // an ID, or the name of a key
		callers := []string{u.wish.Caller}
		for id, name := range u.names {
			if name == u.wish.Caller {
				callers = append(callers, id)
			}
		}
		u.query.Only[usage.ByCaller] = callers
	}
}

// by are the columns that rows of a kind are told apart by.
func (u *usageReading) by(of string) []string {
	switch {
	case u.wish.By == usage.ByCaller:
		return []string{usage.ByCaller}
	case of == usage.OfModels:
		return []string{usage.ByModel}
	case u.wish.By == usage.ByServer:
		return []string{usage.ByServer}
	}
	return []string{usage.ByServer, usage.ByTool}
}

// add reads what was used of models, or of tools, where there is any.
func (u *usageReading) add(ctx context.Context, d *usageData, of string) error {
	q := u.query
	q.Of, q.By = of, []string{usage.ByHour}
	over, all, err := u.series(ctx, q, d.From)
	if err != nil || all[""] == nil {
		return err
	}
	section := used{Models: of == usage.OfModels, Money: all[""].Cost > 0}
	charts := []measured{callsChart, timesChart, cutsChart}
	if section.Models {
		charts = []measured{callsChart, timesChart, tokensChart, repairsChart}
	}
	if section.Money {
		charts = append(charts, costChart)
	}
	for _, m := range charts {
		section.Charts = append(section.Charts, drawn(m, over[""], all[""], d.From, u.length()))
	}
	if err := u.rows(ctx, &section, of, d.From); err != nil {
		return err
	}
	d.Of = append(d.Of, section)
	return nil
}

// rows reads the rows of a table: sums, and then those that are shown over time.
func (u *usageReading) rows(ctx context.Context, section *used, of string, from time.Time) error {
	q := u.query
	q.Of, q.By = of, u.by(of)
	sums, err := u.c.o.Usage(ctx, q)
	if err != nil {
		return err
	}
	section.More = max(0, len(sums)-maxUsed)
	sums = sums[:len(sums)-section.More]
	q.Only = maps.Clone(u.query.Only)
	for _, column := range q.By {
		q.Only[column] = nil
		for i := range sums {
			q.Only[column] = append(q.Only[column], valueOf(&sums[i], column))
		}
	}
	q.By = append(slices.Clip(q.By), usage.ByHour)
	over, _, err := u.series(ctx, q, from)
	if err != nil {
		return err
	}
	for i := range sums {
		s := &sums[i]
		row := usedRow{
			Calls: number(s.Calls), Errors: number(s.Errors), P50: long(s.P50), P95: long(s.P95), In: number(s.Input), Out: number(s.Output),
			Repairs: number(s.Repairs), Cuts: number(s.Cuts), Cost: money.Format(s.Cost),
			Chart: drawn(callsChart, over[id(s)], &s.Sum, from, u.length()),
		}
		u.name(&row, s)
		section.Rows = append(section.Rows, row)
	}
	return nil
}

// name says whose a row is, and where it leads.
func (u *usageReading) name(row *usedRow, s *usage.Row) {
	switch {
	case s.Caller != "":
		row.Name, row.Also = cmp.Or(u.names[s.Caller], s.Caller), s.Caller
		row.Link = u.wish.With("caller", s.Caller, "by", "")
	case s.Model != "":
		row.Name, row.Link = s.Model, u.wish.With("model", s.Model)
	case s.Tool != "":
		row.Name, row.Also, row.Link = s.Tool, s.Server, u.wish.With("server", s.Server, "tool", s.Tool)
	default:
		row.Name, row.Link = s.Server, u.wish.With("server", s.Server, "by", "")
	}
	if row.Also == row.Name {
		row.Also = ""
	}
}

func valueOf(s *usage.Row, column string) string {
	return map[string]string{usage.ByCaller: s.Caller, usage.ByModel: s.Model, usage.ByServer: s.Server, usage.ByTool: s.Tool}[column]
}

// id tells rows apart that are not told apart by time.
func id(s *usage.Row) string {
	if s.Caller+s.Model+s.Server+s.Tool == "" {
		return ""
	}
	return strings.Join([]string{s.Caller, s.Model, s.Server, s.Tool}, "\n")
}

// series reads sums over time, by what else is told apart, and their sums over all time.
func (u *usageReading) series(ctx context.Context, q usage.Query, from time.Time) (over map[string][]usage.Sum, all map[string]*usage.Sum, err error) {
	rows, err := u.c.o.Usage(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	over, all = map[string][]usage.Sum{}, map[string]*usage.Sum{}
	for i := range rows {
		r := &rows[i]
		began, err := time.Parse(time.RFC3339, r.Hour)
		if err != nil {
			return nil, nil, err
		}
		at := int(began.Sub(from) / u.length())
		if began.Before(from) || at >= u.columns {
			continue
		}
		of := id(r)
		if over[of] == nil {
			over[of], all[of] = make([]usage.Sum, u.columns), &usage.Sum{}
		}
		over[of][at].Add(r.Sum)
		all[of].Add(r.Sum)
	}
	return over, all, nil
}
