package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"golang.org/x/term"
)

// An Editor is an [Input] at a terminal that can place its cursor: lines can be
// edited, pasted in one piece, completed and found again. The terminal is in its
// ordinary state between two reads, so that Ctrl-C is a signal there.
type Editor struct {
	// In and Out are the terminal.
	In, Out *os.File
	// History has what was typed before; nil for a prompt that remembers nothing.
	History *History
	// Complete returns what the last word of a text may become, whole; nil completes
	// nothing.
	Complete func(text string) []string
	// Twice lets a first Ctrl-C at an empty prompt only warn. The second one ends
	// the input, as io.EOF.
	Twice bool
}

// CanEdit reports whether an [Editor] can work with these files.
func CanEdit(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
}

// roomToType is how many columns an answer has at least behind its prompt, or below it.
const roomToType = 20

// Question returns an editor at the same terminal for answers to questions: they
// are neither remembered nor completed, and Ctrl-C gives the question up.
func (e *Editor) Question() *Editor { return &Editor{In: e.In, Out: e.Out} }

// Read implements [Input].
func (e *Editor) Read(ctx context.Context, prompt string) (string, error) {
	// What stands above the last line of the prompt needs no editor.
	if i := strings.LastIndexByte(prompt, '\n'); i >= 0 {
		_, _ = io.WriteString(e.Out, prompt[:i+1])
		prompt = prompt[i+1:]
	}
	if screen := (&Screen{Writer: e.Out}); screen.Width()-lipgloss.Width(prompt) < roomToType {
		_, _ = io.WriteString(e.Out, prompt+"\n")
		prompt = "  "
	}
	var past []string
	if e.History != nil {
		past = e.History.Entries()
	}
	program := tea.NewProgram(newEditing(prompt, past, e.Complete, e.Twice),
		tea.WithContext(ctx), tea.WithInput(e.In), tea.WithOutput(e.Out), tea.WithoutSignalHandler())
	end, err := program.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", errors.Join(io.EOF, err)
	}
	m := end.(*editing)
	if m.err != nil {
		return "", m.err
	}
	text := m.text()
	if e.History != nil {
		e.History.Add(text)
	}
	return text, nil
}
