package approval

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// idLetters are those that people do not take for one another (Crockford's).
const (
	idLetters = "0123456789abcdefghjkmnpqrstvwxyz"
	idLength  = 10 // 50 bits, and short enough to type
	minID     = 4  // letters of an ID that may stand for it
)

func newID() string {
	var b [idLength]byte
	rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = idLetters[int(b[i])%len(idLetters)]
	}
	return string(b[:])
}

// maxText bounds what others wrote, in bytes.
const maxText = 4 << 10

func (a *Approval) tidy() {
	for _, text := range []*string{&a.CallerName, &a.Door, &a.Call, &a.Name, &a.Title, &a.Description, &a.Effect, &a.Reason, &a.Why, &a.By, &a.ByName} {
		if len(*text) > maxText {
			*text = (*text)[:maxText]
		}
		*text = strings.ReplaceAll(strings.ToValidUTF8(*text, "\uFFFD"), "\x00", "\uFFFD")
	}
}

// Satisfies reports whether an approval is one for what a rule asks now: of the
// rule, and answered by one of those whom the rule accepts.
func (a *Approval) Satisfies(rule string, approvers []string) bool {
	return a.Rule == rule && approversText(a.Approvers) == approversText(approvers)
}

// MayDecide reports why somebody may not answer: [ErrOwn] or [ErrNotApprover].
func (a *Approval) MayDecide(by Person) error {
	switch {
	case by.ID == "":
		return ErrNotApprover
	case by.ID == a.Caller, by.Called != "" && by.Called == a.CallerName:
		return ErrOwn
	}
	if len(a.Approvers) == 0 || glob.MatchAny(a.Approvers, by.ID) || by.Name != "" && glob.MatchAny(a.Approvers, by.Name) {
		return nil
	}
	return ErrNotApprover
}

const columns = "id, state, caller, server, tool, pin, digest, details, arguments, rule, approvers, lasts, asked, expires, decided, decider, why, used, used_by, record"

func insert(tx *store.Tx, a *Approval) error {
	details, err := json.Marshal(a.Details)
	if err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO approvals ("+columns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
		a.ID, string(a.State), a.Caller, a.Server, a.Tool, a.Pin.String(), a.Digest.String(), string(details), string(a.Arguments), a.Rule, approversText(a.Approvers),
		a.lasts.Microseconds(), store.Time(a.Asked), store.Time(a.Expires), store.Time(a.Decided), a.By, a.Why, store.Time(a.Used), a.UsedBy, a.Record)
	return err
}

// approversText is the text that approvers are stored, and compared, as.
func approversText(approvers []string) string {
	if len(approvers) == 0 {
		return "[]"
	}
	approvers = slices.Compact(slices.Sorted(slices.Values(approvers)))
	text, _ := json.Marshal(approvers)
	return string(text)
}

// scanned reads an approval from a row. What has expired is so from that moment
// on, whether or not anybody has written it down.
func scanned(scan func(...any) error, now time.Time) (a Approval, err error) {
	var state, pin, digest, details, arguments, approvers string
	var lasts, asked, expires, decided, used int64
	if err := scan(&a.ID, &state, &a.Caller, &a.Server, &a.Tool, &pin, &digest, &details, &arguments, &a.Rule, &approvers,
		&lasts, &asked, &expires, &decided, &a.By, &a.Why, &used, &a.UsedBy, &a.Record); err != nil {
		return a, err
	}
	if err := errors.Join(a.Pin.UnmarshalText([]byte(pin)), a.Digest.UnmarshalText([]byte(digest)), json.Unmarshal([]byte(details), &a.Details), json.Unmarshal([]byte(approvers), &a.Approvers)); err != nil {
		return a, fmt.Errorf("approval %s is damaged: %w", a.ID, err)
	}
	a.Arguments = json.RawMessage(arguments)
	a.lasts = time.Duration(lasts) * time.Microsecond
	a.Asked, a.Expires, a.Decided, a.Used = store.FromTime(asked), store.FromTime(expires), store.FromTime(decided), store.FromTime(used)
	a.Left = a.Expires.Sub(now)
	if a.State = State(state); (a.State == Pending || a.State == Approved) && !now.Before(a.Expires) {
		a.State = Expired
	}
	return a, nil
}

// get finds an approval by its ID or by the beginning of it.
func get(tx *store.Tx, id string, now time.Time) (a Approval, err error) {
	var row Approval
	one := func(condition string, args ...any) (n int, err error) {
		err = tx.Rows("SELECT "+columns+" FROM approvals WHERE "+condition+" LIMIT 2", args, func(scan func(...any) error) error {
			n++
			row, err = scanned(scan, now)
			return err
		})
		return n, err
	}
	n, err := one("id = $1", id)
	if err == nil && n == 0 && len(id) >= minID && strings.Trim(id, idLetters) == "" {
		if n, err = one("id >= $1 AND id < $2", id, id+"~"); err == nil && n > 1 {
			return a, fmt.Errorf("%w with this ID alone: several begin with %q", ErrNotFound, id)
		}
	}
	switch {
	case err != nil:
		return a, err
	case n == 0:
		return a, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return row, nil
}

// findEqual returns the approval of an equal call that still can be used, or
// answered; nil when there is none.
func findEqual(tx *store.Tx, a *Approval, now time.Time) (*Approval, error) {
	var id string
	err := tx.Row(`SELECT id FROM approvals WHERE caller = $1 AND state IN ($2, $3) AND expires > $4
		AND server = $5 AND tool = $6 AND pin = $7 AND digest = $8 AND rule = $9 AND approvers = $10
		ORDER BY CASE state WHEN $3 THEN 0 ELSE 1 END, asked LIMIT 1`,
		[]any{a.Caller, string(Pending), string(Approved), store.Time(now), a.Server, a.Tool, a.Pin.String(), a.Digest.String(), a.Rule, approversText(a.Approvers)}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	equal, err := get(tx, id, now)
	return &equal, err
}

func list(tx *store.Tx, f Filter, now time.Time) (found []Approval, err error) {
	query, args := listed(f, now)
	err = tx.Rows(query, args, func(scan func(...any) error) error {
		a, err := scanned(scan, now)
		found = append(found, a)
		return err
	})
	return found, err
}

// maxTools bounds the tools that are looked at for one person, of which each is two values of
// a query.
const maxTools = 10_000

// waitingTools are the tools that questions wait for, with their servers.
func waitingTools(tx *store.Tx, now time.Time) (all []Approval, err error) {
	query := fmt.Sprintf("SELECT DISTINCT server, tool FROM approvals WHERE state = $1 AND expires > $2 LIMIT %d", maxTools)
	err = tx.Rows(query, []any{string(Pending), store.Time(now)}, func(scan func(...any) error) error {
		var a Approval
		err := scan(&a.Server, &a.Tool)
		all = append(all, a)
		return err
	})
	return all, err
}

// listed is the query for what a filter chooses.
func listed(f Filter, now time.Time) (query string, args []any) {
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	var conditions []string
	add := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		conditions = append(conditions, condition)
	}
	order := "asked DESC, id"
	switch f.State {
	case "":
		if f.Caller == "" { // SQLite reads by the index where something is said of it
			add("asked <= ?", int64(math.MaxInt64))
		}
	case Pending:
		order = "asked, id"
		add("state = ? AND expires > ?", string(Pending), store.Time(now))
	case Approved:
		add("state = ? AND expires > ?", string(Approved), store.Time(now))
	case Expired:
		add("(state = ? OR state IN (?, ?) AND expires <= ?)", string(Expired), string(Pending), string(Approved), store.Time(now))
	default:
		add("state = ?", string(f.State))
	}
	if f.Caller != "" {
		add("caller = ?", f.Caller)
	}
	if f.not != "" {
		add("caller <> ?", f.not)
	}
	if f.of != nil {
		var tools []string
		for _, a := range f.of {
			args = append(args, a.Server, a.Tool)
			tools = append(tools, fmt.Sprintf("($%d, $%d)", len(args)-1, len(args)))
		}
		add("(server, tool) IN (VALUES " + strings.Join(tools, ", ") + ")")
	}
	where := ""
	if conditions != nil {
		where = " WHERE " + strings.Join(conditions, " AND ")
	}
	return fmt.Sprintf("SELECT %s FROM approvals%s ORDER BY %s LIMIT %d", columns, where, order, limit), args
}
