package main

import (
	"encoding/json"
	"os"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
)

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
	e := json.NewEncoder(terminal.Documents(os.Stdout))
	e.SetEscapeHTML(false)
	for i := range pins {
		p := &pins[i]
		line := pinLine{p.Server, p.Kind, p.Name, p.State, p.Pin, p.At, p.Reason, p.By, nil, p.Definition}
		if before := pinning.StandingFor(pins, p); p.State != pinning.Standing && before != nil {
			for _, c := range pin.Changes(before.Definition, p.Definition) {
				line.Changes = append(line.Changes, pinChange(c))
			}
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
