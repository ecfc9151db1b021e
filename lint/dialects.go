package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
)

// DefaultDialects are the dialects that tools are converted into: one of each
// family of model APIs.
var DefaultDialects = []string{"openai", "openai-strict", "anthropic", "gemini"}

// dialectRules say what becomes of a tool on its way to a model. Their findings
// come from the converter of the gateway itself, see [convert].
var dialectRules = []Rule{
	{
		ID: "S014", Severity: Warning, Title: "a model cannot say all that the server accepts",
		Why:     "A model API takes the schema only in a narrower form, so some calls that the server would take cannot be made there.",
		Advice:  "Avoid what is named: arrays of arrays of anything, unions of arrays, values that may be both absent and null.",
		Source:  "docs/dialects.md, which names a source for each cell",
		Gateway: "The gateway sends the narrower form and says so.",
		Tool: func(t *Tool, say Say) {
			for _, l := range t.outcome().losses {
				if l.narrows && !quiet[l.pass] {
					say(at("/inputSchema"+l.pointer), "for %s: %s", strings.Join(l.dialects, ", "), l.why)
				}
			}
			if wide := t.outcome().wide; len(wide) > 0 {
				say(at("/inputSchema"), "for %s: no form of the schema is taken, so it goes out as text", strings.Join(wide, ", "))
			}
		},
	},
	{
		ID: "S024", Severity: Info, Title: "providers that refuse or ignore parts of the schema",
		Why:     "What a model API does not take it refuses or leaves out; the model then does not know the rule that the server holds it to.",
		Advice:  "Say it with what all take: type, enum, properties, required, items, description.",
		Source:  "docs/dialects.md, which names a source for each cell",
		Gateway: "The gateway moves it into the description and checks arguments by the server's own schema.",
		Tool:    sayLosses,
	},
}

// quiet are the changes about which an author can do nothing better, since a
// description says what is lost and arguments are judged by the original, or of
// which another rule speaks.
var quiet = map[string]bool{"openObjects": true, "closeObjects": true, "spillConstraints": true, "defineRequired": true, "dropImpossible": true, "sendWidest": true, "writeFormats": true, "spellOutAny": true}

// sayLosses sums up, in one finding, what is lost where.
func sayLosses(t *Tool, say Say) {
	var first *loss
	n := 0
	where := map[string]bool{}
	for i, l := range t.outcome().losses {
		if l.narrows || quiet[l.pass] {
			continue
		}
		if n++; first == nil {
			first = &t.outcome().losses[i]
		}
		for _, d := range l.dialects {
			where[d] = true
		}
	}
	if first == nil {
		return
	}
	text := fmt.Sprintf("for %s: %s", strings.Join(slices.Sorted(maps.Keys(where)), ", "), first.why)
	if n > 1 {
		text += fmt.Sprintf(" (and %s)", count(n-1, "more change"))
	}
	say(at("/inputSchema"+first.pointer), "%s", text)
}

// An outcome is what became of one tool in all dialects.
type outcome struct {
	wide   []string // dialects that take no form of the schema
	losses []loss
}

// A loss is one change that loses something, and the dialects that need it.
type loss struct {
	pointer, pass, why string
	narrows            bool
	dialects           []string
}

// A Provider is what becomes of a server's tools in one dialect.
type Provider struct {
	// Dialect is its name.
	Dialect string `json:"dialect"`
	// Untouched tools go out as they came, Rewritten ones without loss, Weakened
	// ones with something moved into words, Narrowed ones with something that can
	// no longer be said, and Quarantined ones not at all.
	Untouched   int `json:"untouched"`
	Rewritten   int `json:"rewritten"`
	Weakened    int `json:"weakened"`
	Narrowed    int `json:"narrowed"`
	Quarantined int `json:"quarantined"`
}

// conversions keeps what became of the tools of one server.
type conversions struct {
	outcomes  map[*Tool]*outcome
	providers []Provider
}

// outcome returns what became of the tool; never nil.
func (t *Tool) outcome() *outcome {
	if o := t.Server.converted.outcomes[t]; o != nil {
		return o
	}
	return &outcome{}
}

// convert runs the tools of a server through the converter. Tools are numbered,
// since what a name says is the matter of other rules.
func convert(s *Server, dialects []*dialect.Dialect) conversions {
	c := conversions{outcomes: map[*Tool]*outcome{}}
	list := make([]dragoman.Tool, len(s.Tools))
	for i, t := range s.Tools {
		c.outcomes[t] = &outcome{}
		list[i] = dragoman.Tool{Name: number(i), Original: number(i), Description: t.Description}
		if t.Input != nil {
			list[i].InputSchema = t.Input.Bytes()
		}
	}
	for i, doc := range dialect.ConvertEach(dialects, list) {
		c.providers = append(c.providers, c.read(s, dialects[i].Name(), doc))
	}
	return c
}

func number(i int) string { return fmt.Sprintf("t%d", i) }

// read takes in what one dialect made of the tools.
func (c conversions) read(s *Server, name string, doc *dialect.Document) Provider {
	byNumber := map[string]*outcome{}
	for i, t := range s.Tools {
		byNumber[number(i)] = c.outcomes[t]
	}
	worst := map[string]int{} // 1 rewritten, 2 weakened, 3 narrowed, 4 quarantined
	for _, q := range doc.Quarantined {
		worst[q.Tool] = 4
	}
	for _, p := range doc.Plans {
		if o := byNumber[p.Name()]; o != nil && p.Wide() {
			o.wide = append(o.wide, name)
			worst[p.Name()] = 2
		}
	}
	for _, r := range doc.Report {
		o := byNumber[r.Tool]
		if o == nil {
			continue
		}
		switch {
		case r.Narrows:
			worst[r.Tool] = max(worst[r.Tool], 3)
			o.add(r, name)
		case !r.Lossless && (r.Pass == "openObjects" || r.Pass == "closeObjects"):
			worst[r.Tool] = max(worst[r.Tool], 1)
		case !r.Lossless:
			worst[r.Tool] = max(worst[r.Tool], 2)
			o.add(r, name)
		default:
			worst[r.Tool] = max(worst[r.Tool], 1)
		}
	}
	p := Provider{Dialect: name}
	for number := range byNumber {
		*[]*int{&p.Untouched, &p.Rewritten, &p.Weakened, &p.Narrowed, &p.Quarantined}[worst[number]]++
	}
	return p
}

func (o *outcome) add(r dialect.Reported, name string) {
	for i := range o.losses {
		if l := &o.losses[i]; l.pointer == r.Pointer && l.pass == r.Pass && l.narrows == r.Narrows {
			if !slices.Contains(l.dialects, name) {
				l.dialects = append(l.dialects, name)
			}
			return
		}
	}
	o.losses = append(o.losses, loss{r.Pointer, r.Pass, r.Why, r.Narrows, []string{name}})
}
