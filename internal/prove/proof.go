package prove

import (
	"cmp"
	"encoding/json"
	"slices"
)

// A Kind is what a witness shows.
type Kind string

const (
	// Refused: the model can write the call, and it does not come through: the
	// server's schema refuses it. The model is told, and tries again.
	Refused Kind = "refused"
	// Unsaid: the server takes the call, and the model cannot write it.
	Unsaid Kind = "unsaid"
	// Undeclared is Unsaid where the call has a member that the server's schema
	// takes and does not declare. Few tools mean that.
	Undeclared Kind = "undeclared"
)

// A Witness is a call on which model and server do not agree.
type Witness struct {
	Kind Kind `json:"kind"`
	// Call is the arguments: as the model writes them where it is Refused, else as
	// the server takes them.
	Call json.RawMessage `json:"call"`
	// At is a JSON pointer to the place that Why names, else to where Call was
	// changed: into the schema that was sent where it is Refused, else into the
	// server's. It says so in words where the engine made Call up and no place is
	// named.
	At string `json:"at"`
	// Lost says how many calls are lost in the same place, of all that were tried
	// (Of). Zero where that was not counted.
	Lost int `json:"lost,omitempty"`
	Of   int `json:"of,omitempty"`
	// Why says what is in the way.
	Why string `json:"why"`
	// Told reports that the plan's report says that it narrows.
	Told bool `json:"told,omitempty"`
}

// Looked says how hard a search was.
type Looked struct {
	// Places are the places of both schemas at which values were changed.
	Places int `json:"places"`
	// Candidates are the calls that were made up, by us and by the engine.
	Candidates int `json:"candidates"`
	// Taken are those that the server takes, and Writable those that the model
	// can write, among them each of Taken that is no witness: what was tried in
	// earnest.
	Taken    int `json:"taken"`
	Writable int `json:"writable"`
	// Longest is the length in bytes of the longest call that was tried.
	Longest int `json:"longest"`
	// All reports that the tool has no other calls that its schema declares.
	All bool `json:"all,omitempty"`
	// Seed makes the search repeatable.
	Seed uint64 `json:"seed"`
}

// A Proof is what a search found for one tool in one dialect.
type Proof struct {
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool"`
	Dialect string `json:"dialect"`
	// Engine says who decided what the model can write.
	Engine string `json:"engine"`
	Strict bool   `json:"strict,omitempty"`
	// Wide reports that no schema is sent.
	Wide bool `json:"wide,omitempty"`
	// Unusable says why there is nothing to prove: the tool is quarantined, or the
	// engine refuses the schema, which fails every request that it is in.
	Unusable string `json:"unusable,omitempty"`
	// Unchecked is what of the server's schema nobody judges.
	Unchecked []string `json:"unchecked,omitempty"`
	// Witnesses has the worst one first of each kind, which is of the place where
	// most of the calls that were tried are lost; several of a kind differ in the
	// place.
	Witnesses []Witness `json:"witnesses"`
	Looked    Looked    `json:"looked"`
}

// First returns the worst witness of a kind; nil where there is none.
func (p *Proof) First(kind Kind) *Witness {
	for i := range p.Witnesses {
		if p.Witnesses[i].Kind == kind {
			return &p.Witnesses[i]
		}
	}
	return nil
}

// Count is the number of witnesses of a kind.
func (p *Proof) Count(kind Kind) (n int) {
	for _, w := range p.Witnesses {
		if w.Kind == kind {
			n++
		}
	}
	return n
}

// sortWitnesses brings the worst of each kind to the front, and of two that are as bad
// the smaller one.
func sortWitnesses(found []Witness) {
	order := []Kind{Refused, Unsaid, Undeclared}
	slices.SortStableFunc(found, func(a, b Witness) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), cmp.Compare(b.share(), a.share()),
			cmp.Compare(len(a.Call), len(b.Call)), cmp.Compare(string(a.Call), string(b.Call)), cmp.Compare(a.At, b.At))
	})
}

// share is which part of all calls is lost in the place of w, in hundredths.
func (w *Witness) share() int { return 100 * w.Lost / (w.Of + 1) }
