package main

import (
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/prove"
)

// longestCall is how much of a call is shown to people.
const longestCall = 400

// printProof shows people what was found for one tool in one dialect: the worst witness
// of each kind, how many more there are, and how hard it was looked. An empty line parts
// it from the next.
func printProof(out *terminal.Screen, p *prove.Proof) {
	defer out.Printf("\n")
	name := p.Tool
	if p.Server != "" {
		name = p.Server + "/" + p.Tool
	}
	form := ""
	switch {
	case p.Strict:
		form = "strict, "
	case p.Wide:
		form = "without a schema, "
	}
	out.Printf("%s  %s  %s\n", out.Bold(terminal.OneLine(name, 100)), p.Dialect, out.Faint(form+"held by "+p.Engine))
	if p.Unusable != "" {
		out.Printf("  %s  %s\n", out.Bad("unusable"), terminal.OneLine(p.Unusable, 400))
		return
	}
	for _, kind := range []prove.Kind{prove.Refused, prove.Unsaid, prove.Undeclared} {
		printWitness(out, p, kind)
	}
	for _, u := range p.Unchecked {
		out.Printf("  %s  %s\n", out.Warn("unchecked "), terminal.OneLine(u, 300))
	}
	printLooked(out, p)
}

// words say what a kind of witness is, for people.
var words = map[prove.Kind]string{
	prove.Refused:    "the model can write it, the server refuses it",
	prove.Unsaid:     "the server takes it, the model cannot write it",
	prove.Undeclared: "the same, with a member that the server does not declare",
}

func printWitness(out *terminal.Screen, p *prove.Proof, kind prove.Kind) {
	w := p.First(kind)
	if w == nil {
		return
	}
	label := fmt.Sprintf("%-10s", kind)
	switch kind {
	case prove.Refused:
		label = out.Warn(label)
	case prove.Unsaid:
		label = out.Bad(label)
	default:
		label = out.Faint(label)
	}
	out.Printf("  %s  %s\n", label, terminal.OneLine(string(w.Call), longestCall))
	told := ""
	if w.Told {
		told = "; the report of the conversion says that it narrows"
	}
	out.Printf("              %s%s\n", out.Faint(words[kind]), out.Faint(told))
	where := w.At
	if where == "" {
		where = "(root)"
	}
	out.Printf("              at %s: %s\n", terminal.OneLine(where, 120), terminal.OneLine(w.Why, 300))
	if w.Lost > 0 {
		out.Printf("              %s\n", out.Faint(fmt.Sprintf("so are %d of %d calls that were tried", w.Lost, w.Of)))
	}
	if n := p.Count(kind); n > 1 {
		out.Printf("              %s\n", out.Faint(fmt.Sprintf("and %d more; --format json has them", n-1)))
	}
}

// printLooked is the certificate.
func printLooked(out *terminal.Screen, p *prove.Proof) {
	l := p.Looked
	verdict := "looked at"
	if len(p.Witnesses) == 0 {
		verdict = out.Good("nothing found") + " in"
	}
	all := ""
	if l.All {
		all = "; the tool has no other calls"
	}
	out.Printf("  %s %d candidates at %d places, up to %d bytes: %d that the server takes, %d that the model can write%s\n",
		verdict, l.Candidates, l.Places, l.Longest, l.Taken, l.Writable, all)
}

func summary(found *proofs) string {
	clean, unusable := 0, 0
	kinds := map[prove.Kind]int{}
	for _, p := range found.Proofs {
		if p.Unusable != "" {
			unusable++
		} else if len(p.Witnesses) == 0 {
			clean++
		}
		for _, kind := range []prove.Kind{prove.Refused, prove.Unsaid, prove.Undeclared} {
			if p.First(kind) != nil {
				kinds[kind]++
			}
		}
	}
	of := "proofs"
	if len(found.Proofs) == 1 {
		of = "proof"
	}
	text := fmt.Sprintf("%d %s: nothing found in %d, %d unusable, refused calls in %d, calls that cannot be written in %d, undeclared members in %d",
		len(found.Proofs), of, clean, unusable, kinds[prove.Refused], kinds[prove.Unsaid], kinds[prove.Undeclared])
	if n := len(found.Missing); n > 0 {
		text += fmt.Sprintf("; engines that were not asked: %d", n)
	}
	if found.Left > 0 {
		text += fmt.Sprintf("; interrupted, %d more were not made", found.Left)
	}
	return text
}
