package chat

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// TestCrowdedRequestIsRefused: 23 MB of two million members are refused with 413 before
// they take memory, and the most that is taken costs a bounded number of times its own
// length, so that a few at once do not take gigabytes.
func TestCrowdedRequestIsRefused(t *testing.T) {
	crowd := func(member string, n int) []byte {
		return []byte(`{"model":"m","messages":[{"role":"user","content":"x","extra":[` + strings.Repeat(member+",", n) + `0]}]}`)
	}
	for name, in := range map[string][]byte{"members": crowd(`{"abcdefg":0}`, 2_000_000), "values": crowd("[]", 2_000_000)} {
		var err error
		cost := allocated(func() { _, err = Parse(in) })
		if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != http.StatusRequestEntityTooLarge || e.Code != model.CodeBodyTooLarge || cost > 20_000 {
			t.Errorf("%s: %v, %d bytes", name, err, cost)
		}
	}
	for name, in := range map[string][]byte{
		"members":  crowd(`{"a":0}`, 120_000),
		"values":   crowd("0", 1_000_000),
		"messages": []byte(`{"model":"m","messages":[` + strings.Repeat(`{"role":"user"},`, 120_000) + `{"role":"user","content":"x"}]}`),
	} {
		var err error
		cost := allocated(func() { _, err = Parse(in) })
		if times := float64(cost) / float64(len(in)); err != nil || cost > 100<<20 {
			t.Errorf("%s: %v, %d bytes, %.1f for each byte of %d", name, err, cost, times, len(in))
		} else {
			t.Logf("%s: %d bytes, %.1f for each byte of %d", name, cost, times, len(in))
		}
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
