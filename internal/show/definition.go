package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// A Server is what the book of pins has of one.
type Server struct {
	Label string `json:"label"`
	// Approved counts in words what is: "3 tools, 1 prompt".
	Approved string `json:"approved"`
	// Waiting and Passed are how many definitions wait, and waited once.
	Waiting     int          `json:"waiting"`
	Passed      int          `json:"passed"`
	Definitions []Definition `json:"definitions"`
}

// A Definition is one entry of the book: a tool, or a text that models read.
type Definition struct {
	Server string `json:"server"`
	// Key names it behind the server's label, as commands take it; Kind is what it is.
	Key   string        `json:"key"`
	Kind  pin.Kind      `json:"kind"`
	State pinning.State `json:"state"`
	// None says that these are instructions of a server that has none.
	None bool `json:"none,omitempty"`
	// Pin is the digest of the definition, in hexadecimal digits.
	Pin string `json:"pin"`
	// At is when it was approved, or seen; How says how it was approved, Why for what
	// reason it waits. One of the two is empty.
	At  time.Time `json:"at"`
	How string    `json:"how,omitempty"`
	Why string    `json:"why,omitempty"`
	// Before is what is approved in its place, of a definition that waits; nil for nothing.
	Before *Approved `json:"before,omitempty"`
	// Changes are all differences from what is approved, or from nothing, of one that waits.
	Changes []Change `json:"changes,omitempty"`
}

// Approved says when a definition was approved, and how.
type Approved struct {
	At  time.Time `json:"at"`
	How string    `json:"how"`
}

// A Change is one thing that differs: where, what stood there, and what does. Was is nil
// where nothing stood, Is where nothing does. Both may have several lines.
type Change struct {
	Where string  `json:"where"`
	Was   *string `json:"was,omitempty"`
	Is    *string `json:"is,omitempty"`
}

// Pins returns the servers of a book, whose definitions stand together as the book lists
// them.
func Pins(pins []pinning.Pin) (servers []Server) {
	for len(pins) > 0 {
		label := pins[0].Server
		n := slices.IndexFunc(pins, func(p pinning.Pin) bool { return p.Server != label })
		if n < 0 {
			n = len(pins)
		}
		servers = append(servers, serverOf(pins[:n]))
		pins = pins[n:]
	}
	return servers
}

// serverOf returns the server whose definitions pins are.
func serverOf(pins []pinning.Pin) Server {
	s := Server{Label: pins[0].Server, Approved: approvedOf(pins)}
	for i := range pins {
		switch pins[i].State {
		case pinning.Waiting:
			s.Waiting++
		case pinning.Passed:
			s.Passed++
		}
		s.Definitions = append(s.Definitions, DefinitionOf(&pins[i], pinning.StandingFor(pins, &pins[i])))
	}
	return s
}

// approvedOf counts what is approved of a server, texts where there are some.
func approvedOf(pins []pinning.Pin) string {
	count := map[pin.Kind]int{}
	for i := range pins {
		if p := &pins[i]; p.State == pinning.Standing && !p.None() {
			count[p.Kind]++
		}
	}
	parts := []string{Many(count[pin.Tool], "tool")}
	for _, kind := range []pin.Kind{pin.Prompt, pin.Skill} {
		if count[kind] > 0 {
			parts = append(parts, Many(count[kind], string(kind)))
		}
	}
	if count[pin.Instructions] > 0 {
		parts = append(parts, string(pin.Instructions))
	}
	return strings.Join(parts, ", ")
}

// DefinitionOf returns a definition of the book, with all that is different in it where it
// waits: from the one that is approved before, or, where before is nil, from nothing.
func DefinitionOf(p, before *pinning.Pin) Definition {
	d := Definition{
		Server: invisible.Spell(p.Server), Key: invisible.Spell(p.Key.String()), Kind: p.Kind, State: p.State, None: p.None(),
		Pin: p.Pin.String(), At: p.At,
	}
	switch p.State {
	case pinning.Standing:
		d.How = how(p)
	case pinning.Waiting:
		d.Why = pinning.Why(p.Kind, p.Reason)
		was := []byte(`{}`)
		if before != nil {
			d.Before = &Approved{At: before.At, How: how(before)}
			was = before.Definition
		}
		for _, c := range pin.Changes(was, p.Definition) {
			d.Changes = append(d.Changes, changeOf(c))
		}
	}
	return d
}

func changeOf(c pin.Change) Change {
	where, was, is := c.Full()
	change := Change{Where: invisible.Spell(where)}
	if c.Was != nil {
		text := invisible.Spell(was)
		change.Was = &text
	}
	if c.Is != nil {
		text := invisible.Spell(is)
		change.Is = &text
	}
	return change
}

// how says how a definition came to be approved.
func how(p *pinning.Pin) string {
	switch p.Reason {
	case pinning.ByFirst:
		return "on first use"
	case pinning.ByLock:
		return "by the lock file"
	case pinning.ByPerson:
		return "by " + invisible.Line(p.By, 100)
	}
	return ""
}

// Text returns a line about a server, and below it the definitions that wait; with all,
// every one.
func (s *Server) Text(p Paint, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s approved", p.Bold(s.Label), s.Approved)
	if s.Waiting > 0 {
		fmt.Fprintf(&b, ", %s", p.Bad(fmt.Sprintf("%d waiting", s.Waiting)))
	}
	if s.Passed > 0 {
		fmt.Fprintf(&b, ", %d held before", s.Passed)
	}
	b.WriteString("\n")
	for i := range s.Definitions {
		if d := &s.Definitions[i]; all || d.State == pinning.Waiting {
			b.WriteString(d.Text(p))
		}
	}
	return b.String()
}

// Text returns a definition in a line; one that waits in as many as its differences take.
func (d *Definition) Text(p Paint) string {
	name, short := invisible.Line(d.Key, 100), p.Faint(d.Pin[:12])
	switch {
	case d.State == pinning.Waiting:
		return d.waiting(p)
	case d.State == pinning.Passed:
		return fmt.Sprintf("  %s  %s  %s seen like this, and held; no longer so\n", name, short, at(d.At))
	case d.None:
		return fmt.Sprintf("  %s  none\n", d.Kind)
	}
	return fmt.Sprintf("  %s  %s  %s\n", name, short, strings.TrimSpace(at(d.At)+" "+d.How))
}

// waiting returns a definition that waits, and all that is different in it. Nothing in the
// words of the server is hidden, and nothing is left out.
func (d *Definition) waiting(p Paint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s  %s\n", p.Bold(invisible.Line(d.Server+"/"+d.Key, 200)), d.Why)
	if d.Before != nil {
		fmt.Fprintf(&b, "    approved  %s\n", strings.TrimSpace(at(d.Before.At)+" "+d.Before.How))
	}
	fmt.Fprintf(&b, "    seen      %s  pin %s\n", at(d.At), d.Pin[:12])
	if d.Changes == nil {
		b.WriteString("    the same as before\n")
	}
	for _, c := range d.Changes {
		fmt.Fprintf(&b, "    %s\n", c.Where)
		if c.Was != nil {
			fmt.Fprintf(&b, "%s\n", p.Bad(marked("      - ", *c.Was)))
		}
		if c.Is != nil {
			fmt.Fprintf(&b, "%s\n", p.Good(marked("      + ", *c.Is)))
		}
	}
	return b.String()
}

// marked puts a mark before each line.
func marked(mark, text string) string {
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark)
}
