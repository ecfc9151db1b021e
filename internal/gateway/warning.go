package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
)

// BudgetHeader is the header of an answer that says which budgets of the caller are past
// their warning mark: a list (RFC 9651) of their names, with what is spent in percent, and
// the second since 1970 at which the next period begins.
//
//	X-Dragoman-Budget: "interns";spent=83;ends=1764547200
const BudgetHeader = "X-Dragoman-Budget"

// warn says on an answer which budgets are near their end. Only those who spend are told, by
// the routes for models and tools: those of operators wait for nothing in the store.
func (g *Gateway) warn(w http.ResponseWriter, r *http.Request, route *door.Route, who caller.Caller) {
	if route.Who != nil || !strings.HasPrefix(r.URL.Path, "/v1/") && r.URL.Path != "/mcp" && !strings.HasPrefix(r.URL.Path, "/mcp/") {
		return
	}
	if near := g.budgets.Near(r.Context(), who); len(near) > 0 {
		w.Header().Set(BudgetHeader, warning(near))
	}
}

// maxWarned is how many budgets a header names.
const maxWarned = 8

func warning(near []budget.State) string {
	var b strings.Builder
	for i, s := range near[:min(len(near), maxWarned)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s;spent=%d;ends=%d", item(s.Budget), min(s.Percent, 999), s.Ends.Unix())
	}
	return b.String()
}

// item writes a text as an item of a header: as a string, or, where it has more than visible
// ASCII, as a display string (RFC 9651, 3.3.3 and 3.3.8).
func item(text string) string {
	var b strings.Builder
	mark := ""
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		mark = "%"
	}
	for i := range len(text) {
		switch c := text[i]; {
		case mark != "" && (c < ' ' || c >= 0x7f || c == '%' || c == '"'):
			fmt.Fprintf(&b, "%%%02x", c)
		case mark == "" && (c == '"' || c == '\\'):
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return mark + `"` + b.String() + `"`
}
