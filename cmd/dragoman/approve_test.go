package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestAnswerAll: at a terminal a person is asked about each call in turn, and only
// a plain answer is one.
func TestAnswerAll(t *testing.T) {
	l, err := ledger.Open(t.Context(), ledger.Config{Store: store.Config{Path: store.Memory}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var ids []string
	for n := range 5 {
		r := approval.Request{Key: approval.Key{Caller: "key-1", Server: "files", Tool: fmt.Sprint("tool_", n)}, Arguments: json.RawMessage(`{"n":1}`)}
		if n == 2 {
			r.Approvers = []string{"somebody else"}
		}
		a, err := l.Inbox.Ask(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.ID)
	}
	answers := []string{"perhaps", "", " Y ", "n", "it is late", "yes", "s", "q", "never read"}
	var shown bytes.Buffer
	p := &prompter{out: &terminal.Screen{Writer: &shown}, line: func(bool) (string, error) {
		if len(answers) == 0 {
			return "", io.EOF
		}
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}}
	if err := answerAll(t.Context(), l, p); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range ids {
		a, err := l.Inbox.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(a.State)+a.Why)
	}
	if want := "[approved deniedit is late pending pending pending]"; fmt.Sprint(got) != want || len(answers) != 1 {
		t.Errorf("%v, and %q is left; want %s", got, answers, want)
	}
	if text := shown.String(); strings.Count(text, "May it run?") != 7 || !strings.Contains(text, "the rule names others") {
		t.Errorf("shown:\n%s", text)
	}
	if err := answerAll(t.Context(), l, p); err == nil {
		t.Error("the input ended, and that is an answer")
	}
}

func TestMoment(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                     {},
		"2h":                   now.Add(-2 * time.Hour),
		"7d":                   now.Add(-7 * 24 * time.Hour),
		"2026-11-20T10:00:00Z": time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		"2026-11-20":           time.Date(2026, 11, 20, 0, 0, 0, 0, time.Local),
		"2026-11-20 10:30":     time.Date(2026, 11, 20, 10, 30, 0, 0, time.Local),
	} {
		if got, err := moment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"-2h", "soon", "2026-13-01", "0"} {
		if got, err := moment(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestOperator: whoever is at the terminal is not the caller that programs on this
// machine are, so that they can answer what those ask.
func TestOperator(t *testing.T) {
	l, err := ledger.Open(context.Background(), ledger.Config{Store: store.Config{Path: store.Memory}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := l.Inbox.Ask(t.Context(), approval.Request{Key: approval.Key{Caller: "local"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Inbox.Approve(t.Context(), a.ID, operator()); err != nil {
		t.Error(err)
	}
}
