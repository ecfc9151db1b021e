package logpace

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace: of a flood a burst is let through, whichever logger derived from it is used, and
// what is left out is counted once; whoever goes slowly loses nothing.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := New(slog.New(slog.NewTextHandler(&out, nil)).With("server", "a"))
		other := log.With("x", 1).WithGroup("g")
		for range 500 {
			log.Info("flood")
			other.Info("flood", "y", 2)
			log.Debug("nobody wants to see this")
		}
		time.Sleep(countedFor)
		synctest.Wait()
		got := out.String()
		if n := strings.Count(got, "msg=flood"); n != Burst {
			t.Errorf("%d lines", n)
		}
		if want := `level=WARN msg="lines were left out of the log" server=a lines=800`; strings.Count(got, "left out") != 1 || !strings.Contains(got, want) {
			t.Errorf("want %s in %s", want, got[max(0, len(got)-200):])
		}
		if !strings.Contains(got, "server=a x=1 g.y=2") {
			t.Error("attributes and groups are lost")
		}
		out.Reset()
		for range 3 * Burst {
			time.Sleep(time.Second / Rate)
			log.Info("slow")
		}
		time.Sleep(countedFor)
		synctest.Wait()
		if n := strings.Count(out.String(), "\n"); n != 3*Burst {
			t.Errorf("%d of %d slow lines", n, 3*Burst)
		}
	})
}
