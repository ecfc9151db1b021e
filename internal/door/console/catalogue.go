package console

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/reach/find"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/result"
)

// A toolRow is a tool in a table.
type toolRow struct {
	Tool   *dragoman.Tool
	Link   string
	Effect string
	Why    string // it is quarantined
	Held   bool   // until somebody approves it
	Tokens int    // in the dialect; -1 where that is not counted yet
}

func rowOf(t *dragoman.Tool) toolRow {
	row := toolRow{Tool: t, Link: linkTo(t), Effect: t.Effect().String(), Tokens: -1}
	if q := t.Quarantined; q != nil {
		row.Why, row.Held = q.Message, q.Code == dragoman.CodeNotApproved
	}
	return row
}

// linkTo returns the address of a tool's page. Names of tools that are quarantined can be
// anything, and those of two tools the same, so it has server and name as parameters.
func linkTo(t *dragoman.Tool) string {
	return Root + "tool?" + url.Values{"server": {t.Server}, "name": {t.Original}}.Encode()
}

// perPage is how many tools a page of the catalogue has.
const perPage = 100

// A wish is what a page of the catalogue shows; its address says it.
type wish struct {
	Search, Server, Only, Sort, Dialect string
	Page                                int
}

func wishOf(q url.Values) wish {
	page, _ := strconv.Atoi(q.Get("page"))
	return wish{q.Get("q"), q.Get("server"), q.Get("only"), q.Get("sort"), cmp.Or(q.Get("dialect"), "openai"), max(1, page)}
}

// With returns the address of the catalogue with one thing wished otherwise.
func (w wish) With(name string, value any) string {
	text := ""
	switch v := value.(type) {
	case string:
		text = v
	case int:
		text = strconv.Itoa(v)
	}
	q := url.Values{}
	for _, each := range [][2]string{{"q", w.Search}, {"server", w.Server}, {"only", w.Only}, {"sort", w.Sort}, {"dialect", w.Dialect}, {name, text}} {
		q.Set(each[0], each[1])
	}
	for key := range q {
		if q.Get(key) == "" {
			q.Del(key)
		}
	}
	return Root + "tools?" + q.Encode()
}

type catalogueData struct {
	Wish     wish
	Rows     []toolRow
	Found    int
	All      int
	Sum      int // tokens of all that is offered; -1 where that is not counted yet
	Servers  []string
	Dialects []string
	Pages    int
}

// catalogue is the page of all tools that the person may use, as models see them.
func (c *Console) catalogue(r *request) error {
	d := catalogueData{Wish: wishOf(r.URL.Query()), Dialects: c.o.Now().Dialects.Names(), Sum: -1}
	s, err := c.open(r, d.Wish.Dialect)
	if errors.Is(err, session.ErrUnknownDialect) {
		return notFound("There is no such dialect.")
	}
	if err != nil {
		return err
	}
	list, err := s.Tools.List(r.Context())
	if err != nil {
		return err
	}
	tokens := c.costs.of(list.Tools, s.Dialect)
	d.All = list.Tools.Len()
	rows := []toolRow{}
	for _, server := range list.Servers {
		d.Servers = append(d.Servers, server.Label)
	}
	if tokens != nil {
		d.Sum = 0
	}
	places := map[string]int{}
	for i := range list.Tools.All() {
		t := &list.Tools.All()[i]
		row := rowOf(t)
		if tokens != nil {
			row.Tokens = tokens[i]
			d.Sum += max(0, row.Tokens)
		}
		if d.Wish.takes(&row) {
			places[row.Link] = len(rows)
			rows = append(rows, row)
		}
	}
	rows = d.Wish.search(func() *find.Index { return c.searches.Of(list) }, rows, places)
	d.Wish.sort(rows)
	d.Found = len(rows)
	d.Pages = max(1, (len(rows)+perPage-1)/perPage)
	d.Wish.Page = min(d.Wish.Page, d.Pages)
	from := (d.Wish.Page - 1) * perPage
	d.Rows = rows[from:min(from+perPage, len(rows))]
	for i := range d.Rows {
		if row := &d.Rows[i]; row.Tokens < 0 && tokens == nil {
			row.Tokens = cost(s.Dialect, row.Tool)
		}
	}
	return c.show(r, "catalogue.html", view{Title: "Catalogue", Here: Root + "tools", Data: d})
}

// takes reports whether a tool is among those that are wished, words aside.
func (w wish) takes(row *toolRow) bool {
	switch w.Only {
	case "quarantined":
		if row.Why == "" {
			return false
		}
	case "changed":
		if !row.Held {
			return false
		}
	case "offered":
		if row.Why != "" {
			return false
		}
	}
	return w.Server == "" || row.Tool.Server == w.Server
}

// search returns the rows that have the words in their names, then those that a model's
// search would find, the best first.
func (w wish) search(index func() *find.Index, rows []toolRow, places map[string]int) []toolRow {
	words := strings.ToLower(strings.TrimSpace(w.Search))
	if words == "" {
		return rows
	}
	found, taken := []toolRow{}, map[int]bool{}
	for i, row := range rows {
		if strings.Contains(strings.ToLower(row.Tool.Name+" "+row.Tool.Original+" "+row.Tool.Title), words) {
			found, taken[i] = append(found, row), true
		}
	}
	for _, t := range index().Search(words, perPage, nil) {
		if i, ok := places[linkTo(t)]; ok && !taken[i] {
			found, taken[i] = append(found, rows[i]), true
		}
	}
	return found
}

func (w wish) sort(rows []toolRow) {
	switch w.Sort {
	case "tokens":
		slices.SortStableFunc(rows, func(a, b toolRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	case "name":
		slices.SortStableFunc(rows, func(a, b toolRow) int { return strings.Compare(a.Tool.Name, b.Tool.Name) })
	}
}

// cost returns the tokens, by a cautious estimate, that a tool costs each request in a
// dialect; 0 for one that is not offered.
func cost(d *dialect.Dialect, t *dragoman.Tool) int {
	if t.Quarantined != nil {
		return 0
	}
	plan, problem := d.Plan(*t)
	if problem != nil {
		return 0
	}
	return result.EstimateTokens(string(plan.Function()))
}

// costs are the tokens of whole lists, counted once for each list and dialect, beside the
// pages that ask: two thousand plans take longer than a page may. The zero value is ready.
type costs struct {
	mu   sync.Mutex
	kept map[costKey]*counted
}

type costKey struct {
	tools   *dragoman.Tools
	dialect *dialect.Dialect
}

type counted struct {
	done   chan struct{}
	tokens []int
}

// maxCosts is how many lists are kept counted; others are counted again.
const maxCosts = 32

// fewTools is how many tools are counted at once.
const fewTools = perPage

// of returns the tokens of each tool; nil while they are counted.
func (c *costs) of(tools *dragoman.Tools, d *dialect.Dialect) []int {
	one := c.begin(costKey{tools, d})
	if tools.Len() <= fewTools {
		<-one.done
	}
	select {
	case <-one.done:
		return one.tokens
	default:
		return nil
	}
}

func (c *costs) begin(key costKey) *counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.kept[key]; one != nil {
		return one
	}
	if c.kept == nil || len(c.kept) >= maxCosts {
		c.kept = map[costKey]*counted{}
	}
	one := &counted{done: make(chan struct{})}
	c.kept[key] = one
	go func() {
		defer close(one.done)
		all := key.tools.All()
		one.tokens = make([]int, len(all))
		for i := range all {
			one.tokens[i] = cost(key.dialect, &all[i])
		}
	}()
	return one
}

// Minus and Plus are the pages before and behind this one.
func (d catalogueData) Minus() int { return d.Wish.Page - 1 }

// Plus is the page behind this one.
func (d catalogueData) Plus() int { return d.Wish.Page + 1 }
