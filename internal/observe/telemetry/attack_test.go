package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// However many names of tools, servers and models somebody makes up, a metric has no more
// than so many series, and what is kept for them is bounded; models are those of the
// configuration.
func TestInventedNamesAreBounded(t *testing.T) {
	const invented = 100_000
	m, err := New(Config{}, Options{Model: func(name string) string {
		if name == "configured" {
			return name
		}
		return observe.Other
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := observe.With(t.Context(), m)
	for i := range invented {
		name := fmt.Sprint("invented", i)
		m.Count(ctx, observe.Truncated, 1, []observe.Attribute{observe.Text(observe.ToolName, name), observe.Text(observe.Server, name), observe.Text(observe.RequestID, name)})
		m.Length(ctx, observe.ChatDuration, 1, []observe.Attribute{observe.Text(observe.RequestModel, name), observe.Text(observe.ConversationID, name)})
		for name, v := range m.measure.views {
			if n := len(v.known); n > maxKnown {
				t.Fatalf("%d sets of labels are kept of %s", n, name)
			}
		}
	}
	var text strings.Builder
	if err := m.Write(ctx, &text); err != nil {
		t.Fatal(err)
	}
	cut, chats := 0, 0
	for line := range strings.Lines(text.String()) {
		switch {
		case strings.HasPrefix(line, "dragoman_results_truncated_total{"):
			cut++
		case strings.HasPrefix(line, "gen_ai_client_operation_duration_seconds_count{"):
			chats++
			if !strings.Contains(line, observe.Other) || !strings.HasSuffix(line, fmt.Sprintf(" %d\n", invented)) {
				t.Errorf("of models: %s", line)
			}
		}
	}
	if cut != maxSets || chats != 1 {
		t.Errorf("%d series of tools, want %d at most; %d of models, want 1", cut, maxSets, chats)
	}
}
