package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// A Record is one of the audit log.
type Record struct {
	Seq  uint64     `json:"seq"`
	Time time.Time  `json:"time"`
	Kind audit.Kind `json:"kind"`
	// Caller is who asked, with the name that belonged to the ID then; What is the method,
	// the server and the target. Each is "-" for none.
	Caller string `json:"caller"`
	What   string `json:"what"`
	// Verdict is [audit.Allow], [audit.Ask], [audit.Deny], or empty.
	Verdict string `json:"verdict,omitempty"`
	// Notes are the rest, a few words each.
	Notes []string `json:"notes,omitempty"`
	// Call and Approval are the IDs by which other records of the same call, and its
	// approval, are found; empty for none.
	Call     string `json:"call,omitempty"`
	Approval string `json:"approval,omitempty"`
}

// RecordOf returns a record of the log.
func RecordOf(r *audit.Record) Record {
	what := strings.Trim(r.Server+" / "+r.Target, " /")
	if r.Method != "" {
		what = strings.TrimSpace(r.Method + " " + what)
	}
	return Record{
		Seq: r.Seq, Time: r.Time, Kind: audit.Kind(invisible.Line(string(r.Kind), 20)),
		Caller: cmp.Or(known(r.Caller, r.CallerName), "-"), What: invisible.Line(cmp.Or(what, "-"), 100),
		Verdict: verdictOf(r), Notes: notes(r), Call: invisible.Spell(r.Call), Approval: invisible.Spell(r.Approval),
	}
}

// verdictOf returns a verdict that there is.
func verdictOf(r *audit.Record) string {
	if slices.Contains([]string{audit.Allow, audit.Ask, audit.Deny}, r.Verdict) {
		return r.Verdict
	}
	return ""
}

// notes are what there is to be said of a record of its kind.
func notes(r *audit.Record) (notes []string) {
	add := func(format string, args ...any) {
		notes = append(notes, invisible.Line(fmt.Sprintf(format, args...), 200))
	}
	if r.Rule != "" {
		add("by %s", r.Rule)
	}
	switch r.Kind {
	case audit.Outcome:
		add("ran: %s", cmp.Or(r.Ran, "maybe"))
		add("%s", time.Duration(r.Microseconds)*time.Microsecond)
		if r.Failed {
			add("failed")
		}
	case audit.Approval:
		add("%s %s", r.Approval, r.State)
	case audit.Login, audit.Pin:
		add("%s", r.State)
	case audit.Pruned:
		add("%d older records were removed", r.Count)
	case audit.Gap:
		add("records that could not be written, and are missing: %d", r.Count)
	default:
		if r.Approval != "" {
			add("approval %s", r.Approval)
		}
	}
	if r.By != "" && (r.Kind == audit.Approval || r.Kind == audit.Pin) {
		add("by %s", known(r.By, r.ByName))
	}
	for _, more := range []string{r.Code, r.Why, r.Call} {
		if more != "" {
			add("%s", more)
		}
	}
	return slices.DeleteFunc(notes, func(s string) bool { return s == "" })
}

// Line returns a record in a line, without its end.
func (r *Record) Line(p Paint) string {
	parts := []string{p.Faint(fmt.Sprintf("%6d", r.Seq)), at(r.Time), fmt.Sprintf("%-8s", r.Kind), r.Caller, r.What}
	switch r.Verdict {
	case "":
	case audit.Deny:
		parts = append(parts, p.Bad(audit.Deny))
	default:
		parts = append(parts, r.Verdict)
	}
	return strings.Join(append(parts, r.Notes...), "  ")
}
