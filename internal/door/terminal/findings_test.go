package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/lint"
)

// TestStream: findings that are printed as they come are printed once, those of a rule
// under one title, and the servers behind them.
func TestStream(t *testing.T) {
	var out bytes.Buffer
	stream := NewStream(&Screen{Writer: &out})
	list := `{"tools":[{"name":"notes_get_note","inputSchema":{"type":"object"}},{"name":"notes_get_tag","inputSchema":{"type":"object"}}]}`
	printed := 0
	report, err := lint.Run(t.Context(), []lint.Target{{Label: "notes", List: []byte(list)}}, lint.Options{
		Found: func(sofar *lint.Report, f *lint.Finding) {
			printed++
			stream.Print(sofar, f)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	stream.Close(report)
	text := out.String()
	if n := strings.Count(text, "D001"); n != 1 {
		t.Errorf("the title of D001 is there %d times:\n%s", n, text)
	}
	if n := strings.Count(text, "notes_get_tag: no description"); n != 1 || printed != len(report.Findings) {
		t.Errorf("the finding is there %d times, %d of %d were printed:\n%s", n, printed, len(report.Findings), text)
	}
	var whole bytes.Buffer
	(&Screen{Writer: &whole}).Findings(report)
	if whole.String() != text {
		t.Errorf("as it came:\n%s\nin the end:\n%s", text, whole.String())
	}
}
