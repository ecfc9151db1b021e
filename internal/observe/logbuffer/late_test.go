package logbuffer_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/slogtest"

	"github.com/dragoman-mcp/dragoman/internal/observe/logbuffer"
)

// TestLateHandler: it is a handler as log/slog wants one.
func TestLateHandler(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return logbuffer.Late(slog.NewJSONHandler(&out, nil))
	}, func(t *testing.T) map[string]any {
		line := map[string]any{}
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		return line
	})
}

// TestLateIsTheSame: lines read as they do without it.
func TestLateIsTheSame(t *testing.T) {
	lines := func(wrap func(slog.Handler) slog.Handler) string {
		var out bytes.Buffer
		log := slog.New(wrap(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
		log.Info("none")
		one := log.With("a", 1)
		two, other := one.With("b", "two words", "c", 3), one.With("d", 4)
		two.Info("carried", "e", 5, "f", 6, "g", 7, "h", 8, "i", 9, "j", 10)
		other.Info("beside")
		two.WithGroup("g").With("k", 1).Info("in a group", "l", 2)
		return out.String()
	}
	want := lines(func(h slog.Handler) slog.Handler { return h })
	if got := lines(logbuffer.Late); got != want {
		t.Errorf("late:\n%swant:\n%s", got, want)
	}
}

func BenchmarkCarried(b *testing.B) {
	for _, c := range []struct {
		name string
		wrap func(slog.Handler) slog.Handler
	}{{"at once", func(h slog.Handler) slog.Handler { return h }}, {"late", logbuffer.Late}} {
		b.Run(c.name, func(b *testing.B) {
			log := slog.New(c.wrap(slog.NewTextHandler(discard{}, nil)))
			b.ReportAllocs()
			for b.Loop() {
				log.With("request", "req_1", "model", "gpt", "caller", "ann").With("api", "chat").Info("chat", "calls", 0, "took", 1)
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestLine: a line reads as log/slog's own, and none is written that is not wanted.
func TestLine(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && a.Value.Time().IsZero() {
			t.Error("it has no time")
		}
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).With("a", 1)
	log.LogAttrs(t.Context(), slog.LevelWarn, "two words", slog.Int("b", 2))
	want := out.String()
	out.Reset()
	logbuffer.Line(t.Context(), log, slog.LevelDebug, "nobody wants it")
	logbuffer.Line(t.Context(), log, slog.LevelWarn, "two words", slog.Int("b", 2))
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
