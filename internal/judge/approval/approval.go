// Package approval is the inbox of questions to an operator: may this caller make
// this call, with these arguments, of this tool as it is defined now?
//
// A question is pending until a person approves or denies it, or until it
// expires. An approval is for the one call that was asked about: it is bound to
// the caller, the tool's pin and the digest of the canonical arguments, expires,
// and is spent once, in the transaction that writes the call's intent into the
// audit log ([Inbox.Spend]). It can be given back only for a call that provably
// did not run.
//
//	pending ──► approved ──► used
//	   │            │  ◄──────┘ given back
//	   ├──► denied  │
//	   └──► expired ◄
//
// All of it is in the store. A restart loses nothing, and "dragoman approve" and
// the gateway may be two processes.
//
// Nobody approves their own calls, and where a rule names approvers, nobody else
// does. Whether somebody may approve at all is for whoever calls this to know.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
)

// Config says how long things last.
type Config struct {
	Expires time.Duration `yaml:"expires" doc:"How long a question waits for an answer, and how long an approval waits for its call."`
	Keep    time.Duration `yaml:"keep" doc:"How long questions that were answered, with their arguments, are kept to be looked at."`
	Pending int           `yaml:"pending" max:"100000" doc:"Questions of one caller that wait at a time. Calls beyond them are denied."`
	Elicit  bool          `yaml:"elicit" doc:"Whether callers who may approve calls are asked in their MCP clients, too, with a tool called review_approvals. A client that fills in forms by itself would answer for them."`
}

// SetDefaults gives an hour to answer.
func (c *Config) SetDefaults() {
	*c = Config{Expires: time.Hour, Keep: 7 * 24 * time.Hour, Pending: 50}
}

// MaxArguments bounds the arguments that a person can be asked about, in bytes:
// nobody reads more, and what nobody read nobody approved.
const MaxArguments = 256 << 10

// States of an approval.
type State string

// The states. Pending and Approved are the ones that change.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Denied   State = "denied"
	Expired  State = "expired"
	Used     State = "used"
)

// Errors of the inbox.
var (
	// ErrNotFound: there is no such approval.
	ErrNotFound = errors.New("there is no such approval")
	// ErrDecided: somebody has already answered, or it expired.
	ErrDecided = errors.New("it is no longer pending")
	// ErrNotApprover: the rule names others.
	ErrNotApprover = errors.New("the rule names others who may approve this")
	// ErrOwn: the caller itself, or somebody called the same.
	ErrOwn = errors.New("nobody approves their own calls, nor with another key of the same name")
	// ErrNotSpendable: it is not approved, or no longer, or was spent, or is for
	// another call.
	ErrNotSpendable = errors.New("there is no approval for this call")
	// ErrTooMany: the caller has as many questions waiting as it may have.
	ErrTooMany = errors.New("too many questions of this caller are waiting for an answer")
	// ErrTooLarge: nobody can read that much.
	ErrTooLarge = fmt.Errorf("the arguments are longer than the %d KiB that a person can be asked about", MaxArguments>>10)
)

// A Key is what an approval is bound to.
type Key struct {
	Caller string         `json:"caller"` // ID
	Server string         `json:"server"` // label
	Tool   string         `json:"tool"`   // its name at the server
	Pin    canonical.Hash `json:"pin"`    // of the tool
	Digest canonical.Hash `json:"digest"` // of the canonical arguments
}

// A Request is a question.
type Request struct {
	Key
	// Arguments are those of the call. Ask sets the Digest by them.
	Arguments json.RawMessage
	// Details are for people alone.
	Details
	// Rule is the rule that asks, and Approvers are patterns for those who may
	// answer, by ID or name; none means whoever may approve at all.
	Rule      string
	Approvers []string
	// Expires is how long it may take; zero means as configured.
	Expires time.Duration
}

// Details help a person to decide. Tool, title and description are the words of a
// server, and not to be trusted.
type Details struct {
	CallerName  string `json:"caller_name,omitempty"`
	Door        string `json:"door,omitempty"`
	Call        string `json:"call,omitempty"` // the ID of the call that asked first
	Name        string `json:"name,omitempty"` // the tool's public name
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Effect      string `json:"effect,omitempty"`  // what it may do, as we take it
	Reason      string `json:"reason,omitempty"`  // why the rule asks
	ByName      string `json:"by_name,omitempty"` // what whoever answered was called then
}

// An Approval is a question and what became of it.
type Approval struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	Key
	Details
	Arguments json.RawMessage `json:"arguments"` // canonical
	Rule      string          `json:"rule,omitempty"`
	Approvers []string        `json:"approvers,omitempty"`
	Asked     time.Time       `json:"asked"`
	// Expires is when the question, or the approval, is void.
	Expires time.Time `json:"expires"`
	// Decided is when By approved or denied it, for the reason Why.
	Decided time.Time `json:"decided,omitzero"`
	By      string    `json:"by,omitempty"`
	Why     string    `json:"why,omitempty"`
	// Used is when it was spent, by the call UsedBy.
	Used   time.Time `json:"used,omitzero"`
	UsedBy string    `json:"used_by,omitempty"`

	// Record says where the record of the answer stands; empty where there is none.
	Record string `json:"record,omitempty"`

	// Left is how long it was good for yet when it was read, by the store's clock, which need
	// not be this process's: whoever waits for an answer waits that long.
	Left time.Duration `json:"-"`

	lasts time.Duration
}

// A Person is somebody who answers.
type Person struct {
	// ID is what stands in the audit log: a caller's ID, or that of a person at a
	// terminal.
	ID string
	// Name is what rules may call them by beside the ID; empty for none.
	Name string
	// Called is what a caller is called, by whomever: who has two keys, or a key and a
	// token, is no second person. It is empty for a person at a terminal.
	Called string
}

// topic is raised when a question is put or answered, or has expired.
const topic = "approvals"

// Inbox is all questions. Make it with [New]; it is safe for concurrent use. In a nil
// Inbox nothing waits, and nothing is found.
type Inbox struct {
	db     *store.DB
	config atomic.Pointer[Config]
	record func(*store.Tx, Approval) (string, error)
	now    func(*store.Tx) (time.Time, error)
}

// New returns the inbox in db. record, which may be nil, writes down what became
// of an approval, and returns where that stands: it runs in the transaction that
// changes it, for everything but asking and spending, which have records of their own
// in [Inbox.Ask]'s and [Inbox.Spend]'s callers.
func New(db *store.DB, config Config, record func(*store.Tx, Approval) (string, error)) *Inbox {
	if record == nil {
		record = func(*store.Tx, Approval) (string, error) { return "", nil }
	}
	in := &Inbox{db: db, record: record, now: (*store.Tx).Now}
	in.Use(config)
	return in
}

// Use makes this the configuration, for questions that are put from now on, and for how
// long answered ones are kept.
func (in *Inbox) Use(config Config) {
	var defaults Config
	defaults.SetDefaults()
	if config.Expires <= 0 {
		config.Expires = defaults.Expires
	}
	if config.Keep <= 0 {
		config.Keep = defaults.Keep
	}
	if config.Pending <= 0 {
		config.Pending = defaults.Pending
	}
	in.config.Store(&config)
}

// Ask puts a question, and returns it. Where an equal one of the same caller under
// the same rule is pending, or approved and not spent, it returns that one: so a
// call that comes again, also after a restart, finds its approval.
func (in *Inbox) Ask(ctx context.Context, r Request) (Approval, error) {
	arguments, err := canonical.JSON(r.Arguments)
	if err != nil {
		return Approval{}, err
	}
	if len(arguments) > MaxArguments {
		return Approval{}, ErrTooLarge
	}
	if r.Digest, err = canonical.Digest(arguments); err != nil {
		return Approval{}, err
	}
	if r.Expires <= 0 {
		r.Expires = in.config.Load().Expires
	}
	var a Approval
	err = in.db.Write(ctx, func(tx *store.Tx) error {
		a, err = in.ask(tx, r, arguments)
		return err
	})
	if err != nil {
		return Approval{}, err
	}
	return a, nil
}

// ask puts a question in a transaction, or finds the equal one. Two askers for one
// caller take turns: both would find none, and count those that wait.
func (in *Inbox) ask(tx *store.Tx, r Request, arguments json.RawMessage) (Approval, error) {
	if err := tx.Lock(topic, "caller "+r.Caller); err != nil {
		return Approval{}, err
	}
	now, err := in.now(tx)
	if err != nil {
		return Approval{}, err
	}
	a := Approval{
		ID: newID(), State: Pending, Key: r.Key, Details: r.Details, Arguments: arguments, Rule: r.Rule, Approvers: r.Approvers,
		Asked: now.UTC().Truncate(time.Microsecond), Expires: now.Add(r.Expires).UTC().Truncate(time.Microsecond), Left: r.Expires, lasts: r.Expires,
	}
	a.tidy()
	equal, err := findEqual(tx, &a, now)
	if err != nil {
		return Approval{}, err
	}
	if equal != nil {
		return *equal, nil
	}
	var waiting int
	if err := tx.Row("SELECT count(*) FROM approvals WHERE caller = $1 AND state = $2 AND expires > $3", []any{a.Caller, string(Pending), store.Time(now)}, &waiting); err != nil {
		return Approval{}, err
	}
	if waiting >= in.config.Load().Pending {
		return Approval{}, ErrTooMany
	}
	tx.Raise(topic)
	return a, insert(tx, &a)
}

// Granted reports whether [Inbox.Ask] would find an equal question that is approved, and not
// spent.
func (in *Inbox) Granted(ctx context.Context, r Request) (ok bool, err error) {
	if in == nil {
		return false, nil
	}
	err = in.db.Read(ctx, func(tx *store.Tx) error {
		now, err := in.now(tx)
		if err != nil {
			return err
		}
		equal, err := findEqual(tx, &Approval{Key: r.Key, Rule: r.Rule, Approvers: r.Approvers}, now)
		ok = equal != nil && equal.State == Approved
		return err
	})
	return ok, err
}

// Get returns an approval by its ID, or by the beginning of one that no other
// has.
func (in *Inbox) Get(ctx context.Context, id string) (a Approval, err error) {
	if in == nil {
		return a, ErrNotFound
	}
	err = in.db.Read(ctx, func(tx *store.Tx) error {
		now, err := in.now(tx)
		if err == nil {
			a, err = get(tx, id, now)
		}
		return err
	})
	return a, err
}

// A Filter chooses approvals; empty fields choose all.
type Filter struct {
	State  State
	Caller string
	// Limit bounds the answer; zero means 100.
	Limit int

	not string     // a caller who is left out
	of  []Approval // of these tools alone, by their servers; nil of all
}

// List returns the approvals that f chooses: those that were asked first come
// first where they are pending, else those that were asked last.
func (in *Inbox) List(ctx context.Context, f Filter) (found []Approval, err error) {
	if in == nil {
		return nil, nil
	}
	err = in.db.Read(ctx, func(tx *store.Tx) error {
		now, err := in.now(tx)
		if err == nil {
			found, err = list(tx, f, now)
		}
		return err
	})
	return found, err
}

// Approve answers yes. The approval that it returns can be spent until it expires,
// as long again from now as the question could wait.
func (in *Inbox) Approve(ctx context.Context, id string, by Person) (Approval, error) {
	return in.decide(ctx, id, by, func(a *Approval, now time.Time) {
		a.State, a.Expires = Approved, now.Add(a.lasts).UTC().Truncate(time.Microsecond)
	})
}

// Deny answers no; why, which may be empty, is told to the model.
func (in *Inbox) Deny(ctx context.Context, id string, by Person, why string) (Approval, error) {
	return in.decide(ctx, id, by, func(a *Approval, _ time.Time) { a.State, a.Why = Denied, why })
}

func (in *Inbox) decide(ctx context.Context, id string, by Person, change func(*Approval, time.Time)) (a Approval, err error) {
	if in == nil {
		return a, ErrNotFound
	}
	err = in.db.Write(ctx, func(tx *store.Tx) error {
		now, err := in.now(tx)
		if err != nil {
			return err
		}
		if a, err = get(tx, id, now); err != nil {
			return err
		}
		if a.State != Pending {
			return fmt.Errorf("approval %s: %w: it is %s", a.ID, ErrDecided, a.State)
		}
		if err := a.MayDecide(by); err != nil {
			return fmt.Errorf("approval %s: %w", a.ID, err)
		}
		a.Decided, a.By, a.ByName = now.UTC().Truncate(time.Microsecond), by.ID, by.Called
		change(&a, now)
		a.tidy()
		details, err := json.Marshal(a.Details)
		if err != nil {
			return err
		}
		changed, err := tx.Exec("UPDATE approvals SET state = $1, expires = $2, decided = $3, decider = $4, why = $5, details = $6 WHERE id = $7 AND state = $8",
			string(a.State), store.Time(a.Expires), store.Time(a.Decided), a.By, a.Why, string(details), a.ID, string(Pending))
		if err != nil {
			return err
		}
		if changed != 1 {
			return fmt.Errorf("approval %s: %w", a.ID, ErrDecided)
		}
		tx.Raise(topic)
		if err := run.Wake(tx, a.ID); err != nil {
			return err
		}
		if a.Record, err = in.record(tx, a); err != nil || a.Record == "" {
			return err
		}
		_, err = tx.Exec("UPDATE approvals SET record = $1 WHERE id = $2", a.Record, a.ID)
		return err
	})
	if err != nil {
		return Approval{}, err
	}
	return a, nil
}

// Spend returns a function that spends an approval, once, for the call that it was
// asked for; give it to the audit log's Intent, so that no call runs whose approval
// is not spent, and none is spent whose call is not written down. It fails with
// ErrNotSpendable. by is the call's ID.
func (in *Inbox) Spend(id string, key Key, by string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		moment, err := in.now(tx)
		if err != nil {
			return err
		}
		now := store.Time(moment)
		changed, err := tx.Exec(`UPDATE approvals SET state = $1, used = $2, used_by = $3
			WHERE id = $4 AND state = $5 AND expires > $2 AND caller = $6 AND server = $7 AND tool = $8 AND pin = $9 AND digest = $10`,
			string(Used), now, by, id, string(Approved), key.Caller, key.Server, key.Tool, key.Pin.String(), key.Digest.String())
		if err != nil {
			return err
		}
		if changed != 1 {
			return ErrNotSpendable
		}
		return nil
	}
}

// GiveBack makes an approval that by spent good again, for a call that provably
// did not run (dragoman.RanNot). It does not make it last longer.
func (in *Inbox) GiveBack(ctx context.Context, id, by string) error {
	return in.db.Write(ctx, func(tx *store.Tx) error {
		changed, err := tx.Exec("UPDATE approvals SET state = $1, used = 0, used_by = '' WHERE id = $2 AND state = $3 AND used_by = $4",
			string(Approved), id, string(Used), by)
		if err != nil {
			return err
		}
		if changed != 1 {
			return fmt.Errorf("approval %s: %w", id, ErrNotSpendable)
		}
		now, err := in.now(tx)
		if err != nil {
			return err
		}
		a, err := get(tx, id, now)
		if err != nil {
			return err
		}
		_, err = in.record(tx, a)
		return err
	})
}
