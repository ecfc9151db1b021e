package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestApprovePins: at a terminal a person is shown each definition and asked about it;
// only a plain yes is one, and what changes while they think is not approved.
func TestApprovePins(t *testing.T) {
	l, err := ledger.Open(t.Context(), ledger.Config{Store: store.Config{Path: store.Memory}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	judge := func(definitions ...string) {
		var said []pin.Said
		for _, d := range definitions {
			tool := dragoman.ReadTool("notes", json.RawMessage(d))
			said = append(said, pin.OfTool(&tool))
		}
		l.Book.Judge(t.Context(), pin.Subject{Label: "notes", Mode: pin.Explicit}, said)
	}
	const a, b, c, d = `{"name":"a","description":"A\u001b[2J\u200b"}`, `{"name":"b"}`, `{"name":"c"}`, `{"name":"d"}`
	judge(a, b, c, d)
	answers := []string{"perhaps", " Y ", "n", "yes", "q", "never read"}
	var shown bytes.Buffer
	p := &prompter{out: &terminal.Screen{Writer: &shown}, line: func(bool) (string, error) {
		if len(answers) == 0 {
			return "", io.EOF
		}
		answer := answers[0]
		answers = answers[1:]
		if answer == "yes" {
			judge(a, b, `{"name":"c","description":"Another one"}`, d)
		}
		return answer, nil
	}}
	if err := approvePins(t.Context(), l.Book, []string{"notes"}, "", false, p); !errors.Is(err, errFailed) {
		t.Errorf("one had changed: %v", err)
	}
	pins, err := l.Book.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var approved []string
	for _, p := range pins {
		if p.State == pinning.Standing {
			approved = append(approved, p.Name)
		}
	}
	if strings.Join(approved, " ") != "a" || len(answers) != 1 {
		t.Errorf("approved are %v, and %q is left", approved, answers)
	}
	if text := shown.String(); strings.ContainsAny(text, "\x1b\u200b") || !strings.Contains(text, "A<U+001B>[2J<U+200B>") || strings.Count(text, "Is it to be trusted?") != 5 || !strings.Contains(text, "has changed since it was shown") {
		t.Errorf("shown:\n%s", text)
	}
}
