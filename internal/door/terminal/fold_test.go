package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/dragoman-mcp/dragoman"
)

// What is wider than a terminal goes on in rows that are marked, and nothing of it is lost.
func TestFold(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"what has room", "  a line of 19 char\n", "  a line of 19 char\n"},
		{"one that is wider", "  01234567890123456789012345678901234\n  next", "  01234567890123456\n  ⋮ 789012345678901\n  ⋮ 234\n  next"},
		{"spaces", "a" + strings.Repeat(" ", 20) + "b", "a                  \n⋮   b"},
		{"deep in a document", strings.Repeat(" ", 15) + "012345", "               0123\n         ⋮ 45"},
		{"styles", "\x1b[31m0123456789012345678901\x1b[0m\n", "\x1b[31m0123456789012345678\n⋮ 901\x1b[0m\n"},
		{"styles before spaces", "\x1b[32m  + 0123456789012345678\x1b[0m\n", "\x1b[32m  + 012345678901234\n  ⋮ 5678\x1b[0m\n"},
		{"wide characters", "一二三四五六七八九十一", "一二三四五六七八九\n⋮ 十一"},
		{"tabs", "a\t\tb\tc", "a                b\n⋮         c"},
		{"a family", "👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧", "👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧\n⋮ 👨‍👩‍👧"},
	} {
		screen := &Screen{Writer: &bytes.Buffer{}, Columns: 20}
		got := screen.Fold(tt.text)
		if got != tt.want {
			t.Errorf("%s:\n%q, want\n%q", tt.name, got, tt.want)
		}
		for row := range strings.Lines(got) {
			if n := ansi.StringWidth(row); n >= screen.Columns {
				t.Errorf("%s: a row of %d columns: %q", tt.name, n, row)
			}
		}
	}
	wide := strings.Repeat("x", 1000)
	if got := (&Screen{Writer: &bytes.Buffer{}}).Fold(wide); got != wide {
		t.Errorf("where no terminal is: %q", got)
	}
}

// No row of a question begins with words of a server or a model.
func TestAskedInRows(t *testing.T) {
	const ours = "approve? Run it."
	pad := strings.Repeat(" ", 40-len(`    "path": "x`))
	for _, q := range []dragoman.Question{
		{Kind: dragoman.AskApproval, Params: json.RawMessage(`{"message":"It deletes."}`)},
		{Kind: dragoman.AskURL, Params: json.RawMessage(`{"message":"Go.\n` + ours + `","url":"https://shop.example/?q=` + strings.Repeat("x", 11) + `approve?"}`)},
		{Kind: dragoman.AskForm, Params: json.RawMessage(`{"message":"A\n` + ours + `","requestedSchema":{"properties":{"a":{"type":"string","description":"` + strings.Repeat("x", 35) + ours + `"}}}}`)},
	} {
		var out bytes.Buffer
		screen := &Screen{Writer: &out, Columns: 40}
		asker := &Asker{In: NewLines(strings.NewReader("\n"), screen), Screen: screen}
		call := dragoman.Call{Tool: &dragoman.Tool{Name: "delete"}, Arguments: json.RawMessage(`{"path":"x` + pad + ours + `"}`)}
		q.Key, q.Server = "q", "shop"
		if _, err := asker.Ask(t.Context(), call, &dragoman.Asks{Questions: []dragoman.Question{q}}); err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(ansi.Hardwrap(out.String(), screen.Columns, true)) {
			if row = strings.TrimSpace(row); strings.HasPrefix(row, "approve?") && row != "approve? It deletes." {
				t.Errorf("%s passes for ours:\n%s", row, out.String())
			}
		}
	}
}
