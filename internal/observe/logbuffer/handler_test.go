package logbuffer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"
)

// TestHandler: it is a handler as log/slog wants one.
func TestHandler(t *testing.T) {
	var out bytes.Buffer
	var w *Writer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		w = New(&out)
		return w.Handler(func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) })
	}, func(t *testing.T) map[string]any {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		line := map[string]any{}
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		return line
	})
}

// plainText formats lines, without their time.
func plainText(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
}

// whatLogs logs lines of every sort.
func whatLogs(log *slog.Logger) {
	log.Info("none")
	one := log.With("a", 1)
	two, other := one.With("b", "two words", "c", 3), one.With("d", 4)
	two.Info("carried", "e", 5, "f", 6, "g", 7, "h", 8, "i", 9, "j", 10)
	other.Info("beside", "error", errors.New("it failed"))
	log.With("list", []string{"a"}).With("k", true).Warn("something carried may change", "took", time.Second)
	two.WithGroup("g").With("k", 1).Info("in a group", "l", 2)
	log.Info("a group", slog.Group("g", "m", 3.5, "n", "o"))
}

// TestLinesReadTheSame: lines read, and are in order, as those that are formatted at once.
func TestLinesReadTheSame(t *testing.T) {
	var want, got bytes.Buffer
	whatLogs(slog.New(plainText(&want)))
	w := New(&got)
	log := slog.New(w.Handler(plainText))
	whatLogs(log)
	fmt.Fprint(w, "no record\n")
	log.Info("the last")
	w.Close()
	log.Info("after the end", "b", 2)
	want.WriteString("no record\n")
	slog.New(plainText(&want)).Info("the last")
	slog.New(plainText(&want)).Info("after the end", "b", 2)
	if got.String() != want.String() {
		t.Errorf("%swant:\n%s", &got, &want)
	}
}

// TestWhatIsLoggedStays: a line says what was so when it was logged.
func TestWhatIsLoggedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := sink{held: make(chan struct{})}
		w := New(&out)
		log := slog.New(w.Handler(plainText))
		log.Info("held")
		synctest.Wait()
		names := []string{"before"}
		log.Info("a list", "names", names)
		log.With("names", names).Info("a list that is carried")
		names[0] = "after"
		close(out.held)
		w.Close()
		if said := out.said(); strings.Count(said, "[before]") != 2 || strings.Contains(said, "after") {
			t.Errorf("%q", said)
		}
	})
}

// TestRecordsTakeRoom: whoever logs waits for a reader that stalls once the records that
// wait would be long.
func TestRecordsTakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := sink{held: make(chan struct{})}
		w := New(&out)
		log := slog.New(w.Handler(plainText)).With("carried", strings.Repeat("x", 500))
		log.Info("held")
		synctest.Wait()
		const lines = 3000
		logged, all := 1, make(chan struct{})
		go func() {
			for i := range lines - 1 {
				log.Info("a line", "i", i)
				logged++
			}
			close(all)
		}()
		synctest.Wait()
		if written := logged * 550; written < Most*3/4 || written > Most {
			t.Errorf("%d lines, some %d bytes, are behind", logged, written)
		}
		close(out.held)
		<-all
		w.Close()
		if logged != lines || strings.Count(out.said(), "\n") != lines {
			t.Errorf("%d lines were logged, and %d written", logged, strings.Count(out.said(), "\n"))
		}
	})
}

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
	Line(t.Context(), log, slog.LevelDebug, "nobody wants it")
	Line(t.Context(), log, slog.LevelWarn, "two words", slog.Int("b", 2))
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
