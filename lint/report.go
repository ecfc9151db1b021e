package lint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
)

// A Report is what an audit found, worst first.
type Report struct {
	// Findings are what is wrong, and Suppressed what was taken out. Known is what stood
	// in the baseline already; it counts for scores and for nothing else.
	Findings   []Finding
	Suppressed []Finding
	Known      []Finding
	// Gone is how many findings of the baseline there are no more.
	Gone int
	// Servers are the servers that were looked at, in the order of the targets.
	Servers []*Audited

	rules    map[string]*Rule
	compared bool // with a baseline
}

// A Finding is one thing that is wrong.
type Finding struct {
	// Rule is the id of the rule, Title its title.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	// Server and Tool say whose it is; Tool is empty for the server as a whole,
	// and both are for a set of servers.
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// Pointer is a JSON pointer into the tool's definition.
	Pointer string `json:"pointer,omitempty"`
	// Message says what is wrong here.
	Message string `json:"message"`
	// Gateway says what Dragoman's gateway does about it; empty for nothing.
	Gateway string `json:"gateway,omitempty"`
	// Suppressed is why the finding does not count; nil if it does.
	Suppressed *Suppression `json:"suppressed,omitempty"`

	tool *Tool
}

// Fingerprint identifies the finding across runs: it does not depend on the order
// of tools, nor on words that may hold numbers.
func (f *Finding) Fingerprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", f.Rule, f.Server, f.Tool, f.Pointer))
	return hex.EncodeToString(sum[:16])
}

// An Audited is one server with its score.
type Audited struct {
	// Server is what was looked at.
	Server *Server
	// Score is between 0 and 100, and Grade A to F, or [Unseen]. Neither says anything
	// without the findings.
	Score int
	Grade string
	// Counts are the findings about the server, by severity.
	Counts map[Severity]int
	// Tokens estimates what the definitions cost in each request.
	Tokens int
	// Providers say what becomes of the tools in each dialect.
	Providers []Provider
}

// Worst returns the highest severity of all findings; zero for none.
func (r *Report) Worst() (worst Severity) {
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// Count returns how many findings have a severity.
func (r *Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Lock returns the text of a dragoman.lock that pins all servers as they are now: their
// tools, and of those that were asked the prompts and instructions.
func (r *Report) Lock() []byte {
	var l pin.Lock
	for _, a := range r.Servers {
		if a.Server.refused || a.Server.unseen {
			continue
		}
		seen, kinds := a.Server.seen()
		l.Set(a.Server.Label, seen, kinds...)
	}
	return l.Bytes()
}

// own makes a finding of the linter itself.
func (r *Report) own(id, message string) Finding {
	for _, rule := range ownRules {
		if rule.ID == id {
			return Finding{Rule: id, Severity: rule.Severity, Title: rule.Title, Message: message}
		}
	}
	panic("no rule " + id)
}

// finish sorts the findings and computes the scores.
func (r *Report) finish() {
	sortFindings(r.Findings)
	sortFindings(r.Suppressed)
	sortFindings(r.Known)
	for _, a := range r.Servers {
		a.Tokens = a.Server.tokens()
		a.Providers = a.Server.converted.providers
		a.score(slices.Concat(r.Findings, r.Known))
	}
}

func sortFindings(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(b.Severity, a.Severity),
			cmp.Compare(a.Server, b.Server),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(index(a.tool), index(b.tool)),
			cmp.Compare(a.Tool, b.Tool),
		)
	})
}

func index(t *Tool) int {
	if t == nil {
		return -1
	}
	return t.Index
}

// weights are what a finding takes from a score.
var weights = map[Severity]float64{Error: 10, Warning: 4, Info: 1}

// score computes the server's score: six tenths the mean of its tools, four
// tenths its worst tool, and what is wrong with the server as a whole taken from
// that. A rule counts once for each tool. An error of security leaves no grade
// better than D.
func (a *Audited) score(findings []Finding) {
	type once struct{ rule, tool string }
	seen := map[once]bool{}
	lost := map[string]float64{}
	a.Counts = map[Severity]int{}
	insecure := false
	for _, f := range findings {
		if f.Server != a.Server.Label {
			continue
		}
		a.Counts[f.Severity]++
		insecure = insecure || f.Severity == Error && f.Rule[0] == 'X'
		if key := (once{f.Rule, f.Tool}); !seen[key] {
			seen[key] = true
			lost[f.Tool] += weights[f.Severity]
		}
	}
	if l := a.Server.Live; l != nil && l.protected() {
		a.Score, a.Grade = int(math.Round(max(0, 100-lost[""]))), Unseen
		return
	}
	if l := a.Server.Live; a.Server.refused || a.Server.unseen || l != nil && l.Failure != nil {
		a.Score, a.Grade = 0, grade(0) // nothing was seen that could be good
		return
	}
	sum, worst := 0.0, 100.0
	for _, t := range a.Server.Tools {
		s := max(0, 100-lost[t.Name])
		sum, worst = sum+s, min(worst, s)
	}
	mean := 100.0
	if n := len(a.Server.Tools); n > 0 {
		mean = sum / float64(n)
	}
	a.Score = int(math.Round(max(0, 0.6*mean+0.4*worst-lost[""])))
	a.Grade = grade(a.Score)
	if insecure && a.Grade < "D" {
		a.Grade = "D"
	}
}

// Unseen is the grade of a server that let nobody in without a token: its score is that
// of its authorization alone.
const Unseen = "-"

func grade(score int) string {
	for _, g := range []struct {
		least int
		name  string
	}{{90, "A"}, {80, "B"}, {70, "C"}, {60, "D"}} {
		if score >= g.least {
			return g.name
		}
	}
	return "F"
}

// MarshalJSON writes the report as a document: servers with scores, findings,
// suppressed findings, and those that the baseline knew.
func (r *Report) MarshalJSON() ([]byte, error) {
	type server struct {
		Label     string           `json:"label"`
		Name      string           `json:"name,omitempty"`
		Version   string           `json:"version,omitempty"`
		Era       string           `json:"era,omitempty"`
		Protocol  string           `json:"protocol,omitempty"`
		Tools     int              `json:"tools"`
		Tokens    int              `json:"tokens"`
		Score     int              `json:"score"`
		Grade     string           `json:"grade"`
		Counts    map[Severity]int `json:"counts"`
		Providers []Provider       `json:"providers"`
	}
	doc := struct {
		Servers    []server  `json:"servers"`
		Findings   []Finding `json:"findings"`
		Suppressed []Finding `json:"suppressed"`
		Known      []Finding `json:"known,omitempty"`
	}{[]server{}, append([]Finding{}, r.Findings...), append([]Finding{}, r.Suppressed...), r.Known}
	for _, a := range r.Servers {
		s := server{
			Label: a.Server.Label, Name: a.Server.Name, Version: a.Server.Version, Tools: len(a.Server.Tools),
			Tokens: a.Tokens, Score: a.Score, Grade: a.Grade, Counts: a.Counts, Providers: a.Providers,
		}
		if l := a.Server.Live; l != nil {
			s.Era, s.Protocol = l.Era, l.Version
		}
		doc.Servers = append(doc.Servers, s)
	}
	return json.Marshal(doc)
}

// Rule returns the rule of an id, of those that were checked.
func (r *Report) Rule(id string) (Rule, bool) {
	for _, own := range ownRules {
		if own.ID == id {
			return own, true
		}
	}
	rule, ok := r.rules[id]
	if !ok {
		return Rule{}, false
	}
	return *rule, true
}
