package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/show"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// maxRecords is how many records a page has: the newest that fit.
const maxRecords = 200

type auditData struct {
	Kept     bool // there is a log
	Filter   map[string]string
	Kinds    []audit.Kind
	Verdicts []string
	Records  []show.Record
	More     bool
	Export   string // the address of an export of the same records
	Checked  *checkedLog
	Count    uint64
	Failures uint64
}

// A checkedLog is what came of verifying the log.
type checkedLog struct {
	audit.Check
	Bad string
}

// filterNames are the parameters of the page, which are patterns for who, where and what.
var filterNames = []string{"caller", "server", "tool", "verdict", "kind", "call", "since", "until"}

// filterOf reads what records are wanted. Times are RFC 3339, those of a browser's field,
// in UTC, or a duration before now, such as 24h.
func filterOf(q url.Values, now time.Time) (audit.Filter, error) {
	f := audit.Filter{
		Caller: q.Get("caller"), Server: q.Get("server"), Tool: q.Get("tool"), Verdict: q.Get("verdict"),
		Kind: audit.Kind(q.Get("kind")), Call: q.Get("call"),
	}
	for _, t := range []struct {
		name string
		to   *time.Time
	}{{"since", &f.Since}, {"until", &f.Until}} {
		text := q.Get(t.name)
		if text == "" {
			continue
		}
		if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
			*t.to = now.Add(-ago)
			continue
		}
		var err error
		for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
			if *t.to, err = time.ParseInLocation(form, text, time.UTC); err == nil {
				break
			}
		}
		if err != nil {
			return f, model.Invalid(t.name, "A time is written 2026-01-31T13:00, in UTC, or as how long ago: 24h.")
		}
	}
	return f, nil
}

func (c *Console) audit(r *request) error { return c.auditAfter(r, nil) }

func (c *Console) auditAfter(r *request, checked *checkedLog) error {
	if err := r.granted(permission.Audit); err != nil {
		return err
	}
	q := r.URL.Query()
	d := auditData{Kept: c.o.Audit != nil, Filter: map[string]string{}, Kinds: audit.Kinds, Verdicts: []string{audit.Allow, audit.Ask, audit.Deny}, Checked: checked}
	kept := url.Values{}
	for _, name := range filterNames {
		if text := q.Get(name); text != "" {
			d.Filter[name] = text
			kept.Set(name, text)
		}
	}
	d.Export = Root + "audit/export?" + kept.Encode()
	if !d.Kept {
		return c.show(r, "audit.html", view{Title: "Audit", Here: Root + "audit", Data: d})
	}
	f, err := filterOf(q, time.Now())
	if err != nil {
		return err
	}
	f.Limit = maxRecords + 1
	found, err := c.o.Audit.Find(r.Context(), f)
	if err != nil {
		return err
	}
	if d.More = len(found) > maxRecords; d.More {
		found = found[:maxRecords]
	}
	if f.Call != "" { // one call's records are read from its beginning
		slices.Reverse(found)
	}
	for i := range found {
		d.Records = append(d.Records, show.RecordOf(&found[i]))
	}
	if d.Count, err = c.o.Audit.Count(r.Context()); err != nil {
		return err
	}
	d.Failures, _ = c.o.Audit.Failures()
	return c.show(r, "audit.html", view{Title: "Audit", Here: Root + "audit", Data: d})
}

// verify checks the chain of the whole log.
func (c *Console) verify(r *request) error {
	if err := r.granted(permission.Audit); err != nil {
		return err
	}
	if c.o.Audit == nil {
		return notFound("There is no audit log here.")
	}
	check, err := c.o.Audit.Verify(r.Context())
	done := &checkedLog{Check: check}
	if bad, ok := errors.AsType[*audit.Bad](err); ok {
		done.Bad = bad.Error()
	} else if err != nil {
		return err
	}
	return c.auditAfter(r, done)
}

// export writes the records that were searched for, with their hashes.
func (c *Console) export(r *request) error {
	if err := r.granted(permission.Audit); err != nil {
		return err
	}
	if c.o.Audit == nil {
		return notFound("There is no audit log here.")
	}
	f, err := filterOf(r.URL.Query(), time.Now())
	if err != nil {
		return err
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/jsonl")
	h.Set("Content-Disposition", "attachment; filename=audit-"+strconv.FormatInt(time.Now().Unix(), 10)+".jsonl")
	c.o.Log.Info("the audit log was exported at the console", append(r.who.Logged(), "caller_pattern", cmp.Or(f.Caller, "*"))...)
	if err := c.o.Audit.Export(r.Context(), r.w, f); err != nil {
		c.o.Log.Warn("an export of the audit log was cut off", "error", err)
		panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
	}
	return nil
}
