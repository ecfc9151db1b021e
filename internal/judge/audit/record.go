package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
)

// A Kind says what a record is about.
type Kind string

// Kinds of records.
const (
	// Decision: a rule decided about a call, or about something else that a caller
	// wanted.
	Decision Kind = "decision"
	// Intent: a call that may change something is about to run. It is on disk
	// before the call is sent.
	Intent Kind = "intent"
	// Outcome: what came of a call.
	Outcome Kind = "outcome"
	// Approval: a person approved or denied something, nobody did in time, or an
	// approval was given back because the call did not run.
	Approval Kind = "approval"
	// Login: a caller logged in at a server, could not, or had its login forgotten.
	Login Kind = "login"
	// Pin: a tool was trusted as it is defined, or is held until somebody approves
	// it, or somebody did, or wanted it forgotten.
	Pin Kind = "pin"
	// Pruned: older records were removed, through the one in Through, of the log in
	// Of. Written by the log itself.
	Pruned Kind = "pruned"
	// Gap: as many records as Count says could not be written. Written by the log
	// itself, once it can write again.
	Gap Kind = "gap"
	// Heads: how far other logs have come, as this one saw them. Written by the log
	// itself, and found only by who looks for it.
	Heads Kind = "heads"
)

// Kinds are all kinds of records.
var Kinds = []Kind{Decision, Intent, Outcome, Approval, Login, Pin, Pruned, Gap, Heads}

// Verdicts of rules.
const (
	Allow = "allow"
	Ask   = "ask"
	Deny  = "deny"
)

// A Record is one line of the log. Empty fields are left out of it. It never holds
// secrets of ours, and a call's arguments only where the configuration says so.
type Record struct {
	// Log is the log that it is in; empty for the one that all processes once shared. Seq
	// numbers its records from 1, without gaps; Prev is the hash of the record before,
	// and Hash that of this one (see [Log.Verify]). The log sets them.
	Log  string `json:"log,omitempty"`
	Seq  uint64 `json:"seq"`
	Prev Hash   `json:"prev"`
	Hash Hash   `json:"-"`
	// Time is when it happened, in microseconds and UTC; the log sets it where it
	// is zero.
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`

	// Call is the call's ID and Parent that of the call that it belongs to.
	Call   string `json:"call,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Caller is who asks, by ID; By is who decided, where a person did. The names are
	// what they were called then, where that is something else: a key that is revoked
	// is named nowhere else.
	Caller     string `json:"caller,omitempty"`
	CallerName string `json:"caller_name,omitempty"`
	By         string `json:"by,omitempty"`
	ByName     string `json:"by_name,omitempty"`
	// Door is the way that the request came in by: api, mcp, terminal.
	Door string `json:"door,omitempty"`
	// Server is the label in our configuration, Method the method of MCP (empty:
	// tools/call), Target the tool's name there, or a URI, a prompt, a model.
	Server string `json:"server,omitempty"`
	Method string `json:"method,omitempty"`
	Target string `json:"target,omitempty"`
	// Pin is the digest of the tool's definition, Digest that of the canonical
	// arguments.
	Pin    Hash `json:"pin,omitzero"`
	Digest Hash `json:"digest,omitzero"`
	// Arguments are those of the call. The log keeps them only where the
	// configuration says so, and up to 1 MiB.
	Arguments json.RawMessage `json:"arguments,omitempty"`

	// Verdict is Allow, Ask or Deny, and Rule the rule that said so.
	Verdict string `json:"verdict,omitempty"`
	Rule    string `json:"rule,omitempty"`
	// Approval is the ID of the approval that is asked for, or spent. State is
	// what became of it, for kinds Approval, Login and Pin.
	Approval string `json:"approval,omitempty"`
	State    string `json:"state,omitempty"`
	// Answered is the record that says how the approval was answered, for an intent
	// that spends it.
	Answered Head `json:"answered,omitzero"`
	// Why is what a person said about it, or why a tool is held.
	Why string `json:"why,omitempty"`

	// Ran is "yes", "not" or "maybe", for an outcome.
	Ran string `json:"ran,omitempty"`
	// Code is that of the problem; Failed, that the tool itself said so.
	Code   string `json:"code,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Microseconds is how long the call took; In and Out are the bytes of its
	// arguments and its result.
	Microseconds int64 `json:"us,omitempty"`
	In           int64 `json:"in,omitempty"`
	Out          int64 `json:"out,omitempty"`

	// Through and ThroughHash name the last record that was removed; Count is how
	// many were removed, or lost. Of is the log that they were removed from; empty for
	// the one that all processes once shared.
	Of          string `json:"of,omitempty"`
	Through     uint64 `json:"through,omitempty"`
	ThroughHash Hash   `json:"through_hash,omitzero"`
	Count       uint64 `json:"count,omitempty"`

	// Node and Version say which process writes the log, and Seen are the heads of other
	// logs, in a record of kind Heads.
	Node    string `json:"node,omitempty"`
	Version string `json:"version,omitempty"`
	Seen    []Head `json:"seen,omitempty"`
}

// names are the records of other logs that a record names.
func (r *Record) names() []Head {
	if r.Answered.Seq > 0 {
		return append(r.Seen[:len(r.Seen):len(r.Seen)], r.Answered)
	}
	return r.Seen
}

// Came fills in what came of a call.
func (r *Record) Came(result dragoman.Result) {
	r.Kind = Outcome
	r.Ran = result.Ran.String()
	r.Failed = result.Failed
	r.Out = int64(len(result.Content))
	r.Microseconds = result.Info.Duration.Microseconds()
	switch {
	case result.Problem != nil:
		r.Code = result.Problem.Code
	case result.Asks != nil:
		r.Code = asks
	}
}

// asks is the code of an outcome that asks somebody: its call is not over.
const asks = "asks"

// A Hash is a SHA-256. The zero Hash is none: what stands before the first record.
type Hash = canonical.Hash

// body returns the bytes that the record's hash covers: its JSON, as [Log.Export]
// writes it but for the hash at its end.
func (r *Record) body() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // arguments stay as they are
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("audit record: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Longest text of a record, in bytes; arguments may be longer. Calls are looked for by their
// ids, which models and clients make up, and an index of PostgreSQL takes some 2,700 bytes.
const (
	maxText      = 4 << 10
	maxCall      = 1 << 10
	maxArguments = 1 << 20
)

// tidy bounds what others wrote, and makes text of it that every database takes.
func (r *Record) tidy() {
	r.Call = r.Call[:min(len(r.Call), maxCall)]
	for _, text := range []*string{
		&r.Call, &r.Parent, &r.Caller, &r.CallerName, &r.By, &r.ByName, &r.Door, &r.Server, &r.Method, &r.Target,
		&r.Verdict, &r.Rule, &r.Approval, &r.State, &r.Why, &r.Ran, &r.Code, &r.Node, &r.Version,
	} {
		if len(*text) > maxText {
			*text = (*text)[:maxText]
		}
		*text = strings.ReplaceAll(strings.ToValidUTF8(*text, "\uFFFD"), "\x00", "\uFFFD")
	}
	for _, named := range []struct{ id, name *string }{{&r.Caller, &r.CallerName}, {&r.By, &r.ByName}} {
		if *named.name == *named.id {
			*named.name = ""
		}
	}
	if len(r.Arguments) > maxArguments {
		r.Arguments = nil // the digest stays
	}
}

// parse reads a record from its body and checks that this is all that it says.
func parse(body []byte) (r Record, err error) {
	if err := json.Unmarshal(body, &r); err != nil {
		return r, err
	}
	r.Hash = sha256.Sum256(body)
	return r, nil
}

// line returns the record as a line of an export.
func line(body []byte, hash Hash) []byte {
	out := make([]byte, 0, len(body)+80)
	out = append(out, body[:len(body)-1]...)
	out = append(out, `,"hash":"`...)
	out = append(out, hash.String()...)
	return append(out, "\"}\n"...)
}
