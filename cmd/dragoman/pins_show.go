package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
)

// standing returns what is approved in place of what waits; nil for nothing.
func standing(pins []pinning.Pin, w *pinning.Pin) *pinning.Pin {
	i := slices.IndexFunc(pins, func(p pinning.Pin) bool {
		return p.State == pinning.Standing && p.Server == w.Server && p.Key == w.Key
	})
	if i < 0 {
		return nil
	}
	return &pins[i]
}

// differences are those of what waits from what is approved, or from nothing.
func differences(w, before *pinning.Pin) []pin.Change {
	if before == nil {
		return pin.Changes([]byte(`{}`), w.Definition)
	}
	return pin.Changes(before.Definition, w.Definition)
}

func showPins(out *terminal.Screen, pins []pinning.Pin, all bool) {
	for len(pins) > 0 {
		server := pins[0].Server
		n := slices.IndexFunc(pins, func(p pinning.Pin) bool { return p.Server != server })
		if n < 0 {
			n = len(pins)
		}
		own := pins[:n]
		pins = pins[n:]
		count := map[pinning.State]int{}
		for i := range own {
			count[own[i].State]++
		}
		line := fmt.Sprintf("%s: %s approved", out.Bold(server), approvedOf(own))
		if n := count[pinning.Waiting]; n > 0 {
			line += ", " + out.Bad(fmt.Sprintf("%d waiting", n))
		}
		if n := count[pinning.Passed]; n > 0 {
			line += fmt.Sprintf(", %d held before", n)
		}
		out.Printf("%s\n", line)
		for i := range own {
			switch p := &own[i]; {
			case p.State == pinning.Waiting:
				showWaiting(out, p, standing(own, p))
			case all && p.State == pinning.Passed:
				out.Printf("  %s  %s  %s seen like this, and held; no longer so\n", terminal.OneLine(p.Key.String(), 100), out.Faint(p.Pin.String()[:12]), p.At.Local().Format(time.DateTime))
			case all && p.None():
				out.Printf("  %s  none\n", p.Kind)
			case all:
				out.Printf("  %s  %s  %s\n", terminal.OneLine(p.Key.String(), 100), out.Faint(p.Pin.String()[:12]), how(p))
			}
		}
	}
}

// approvedOf counts what is approved of a server, texts where there are some.
func approvedOf(own []pinning.Pin) string {
	count := map[pin.Kind]int{}
	for i := range own {
		if p := &own[i]; p.State == pinning.Standing && !p.None() {
			count[p.Kind]++
		}
	}
	parts := []string{terminal.Many(count[pin.Tool], "tool")}
	for _, kind := range []pin.Kind{pin.Prompt, pin.Skill} {
		if count[kind] > 0 {
			parts = append(parts, terminal.Many(count[kind], string(kind)))
		}
	}
	if count[pin.Instructions] > 0 {
		parts = append(parts, string(pin.Instructions))
	}
	return strings.Join(parts, ", ")
}

// how says how a definition came to be approved.
func how(p *pinning.Pin) string {
	how := map[string]string{pinning.ByFirst: "on first use", pinning.ByLock: "by the lock file", pinning.ByPerson: "by " + terminal.OneLine(p.By, 100)}[p.Reason]
	return strings.TrimSpace(p.At.Local().Format(time.DateTime) + " " + how)
}

// showWaiting shows a definition that waits, and all that is different in it. Nothing
// in the words of the server is hidden, and nothing is left out.
func showWaiting(out *terminal.Screen, w, before *pinning.Pin) {
	out.Printf("  %s  %s\n", out.Bold(terminal.OneLine(w.Server+"/"+w.Key.String(), 200)), pinning.Why(w.Kind, w.Reason))
	if before != nil {
		out.Printf("    approved  %s\n", how(before))
	}
	out.Printf("    seen      %s  pin %s\n", w.At.Local().Format(time.DateTime), w.Pin.String()[:12])
	changes := differences(w, before)
	if changes == nil {
		out.Printf("    the same as before\n")
	}
	for _, c := range changes {
		where, was, is := c.Full()
		out.Printf("    %s\n", terminal.Visible(where))
		if c.Was != nil {
			out.Printf("%s\n", out.Bad(indentedBy("      - ", was)))
		}
		if c.Is != nil {
			out.Printf("%s\n", out.Good(indentedBy("      + ", is)))
		}
	}
}

// indentedBy puts a mark before each line.
func indentedBy(mark, text string) string {
	return mark + strings.ReplaceAll(terminal.Visible(text), "\n", "\n"+mark)
}

// A pinLine is a definition as it is printed for programs.
type pinLine struct {
	Server     string          `json:"server"`
	Kind       pin.Kind        `json:"kind"`
	Name       string          `json:"name"`
	State      pinning.State   `json:"state"`
	Pin        pin.Digest      `json:"pin"`
	At         time.Time       `json:"at"`
	Reason     string          `json:"reason"`
	By         string          `json:"by,omitempty"`
	Changes    []pinChange     `json:"changes,omitempty"`
	Definition json.RawMessage `json:"definition"`
}

type pinChange struct {
	Pointer string          `json:"pointer"`
	Was     json.RawMessage `json:"was,omitempty"`
	Is      json.RawMessage `json:"is,omitempty"`
}

func printPins(pins []pinning.Pin) error {
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	for i := range pins {
		p := &pins[i]
		line := pinLine{p.Server, p.Kind, p.Name, p.State, p.Pin, p.At, p.Reason, p.By, nil, p.Definition}
		if before := standing(pins, p); p.State != pinning.Standing && before != nil {
			for _, c := range differences(p, before) {
				line.Changes = append(line.Changes, pinChange(c))
			}
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
