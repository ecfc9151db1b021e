package rawjson

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// members is an object of n members with short names.
func members(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"m"`)
	for i := range n {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	return []byte(b.String() + "}")
}

// TestCrowdedDocumentsTakeNoMemory: what is over a limit is refused before anything of
// it is kept, and only colons and commas outside of texts count.
func TestCrowdedDocumentsTakeNoMemory(t *testing.T) {
	for name, in := range map[string][]byte{
		"members": members(2_000_000),
		"objects": []byte(`[` + strings.Repeat(`{"a":0},`, 300_000) + `0]`),
		"values":  []byte(`[` + strings.Repeat(`0,`, 2_000_000) + `0]`),
	} {
		var err error
		if got := allocated(func() { err = Check(in) }); !errors.Is(err, ErrCrowded) || got > 10_000 {
			t.Errorf("%s: %v, %d bytes", name, err, got)
		}
	}
	for _, in := range [][]byte{members(MaxMembers - 1), []byte(`["` + strings.Repeat(`:,\"`, MaxValues) + `"]`), []byte(`[` + strings.Repeat(`0,`, MaxValues-1) + `0]`)} {
		if err := Check(in); err != nil {
			t.Error(err)
		}
	}
}

// TestParsingCostsInProportion: the most crowded document that is accepted costs no more
// than some hundred bytes a member, to judge and to take apart.
func TestParsingCostsInProportion(t *testing.T) {
	in := members(MaxMembers - 1)
	var o *Object
	got := allocated(func() {
		if err := Check(in); err != nil {
			t.Error(err)
		}
		o, _ = ParseObject(in)
	})
	if each := got / MaxMembers; len(o.Members) != MaxMembers || each > 400 {
		t.Errorf("%d bytes for each of %d members, %d in all", each, len(o.Members), got)
	}
	list := []byte(`[` + strings.Repeat(`0,`, MaxValues-1) + `0]`)
	if got := allocated(func() { _, _ = Elements(list) }); got/MaxValues > 200 {
		t.Errorf("%d bytes for each element", got/MaxValues)
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// BenchmarkDoor says what judging and taking apart a body costs, in bytes that are
// allocated for each byte of it.
func BenchmarkDoor(b *testing.B) {
	for name, in := range map[string][]byte{
		"chat":     []byte(`{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("word ", 100)+`"},`, 2000) + `{"role":"user","content":"x"}]}`),
		"crowded":  members(MaxMembers - 1),
		"too much": members(2_000_000),
		"numbers":  []byte(`[` + strings.Repeat(`0,`, MaxValues-1) + `0]`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			var got uint64
			for b.Loop() {
				got += allocated(func() {
					if Check(in) == nil {
						_, _ = ParseObject(in)
					}
				})
			}
			b.ReportMetric(float64(got)/float64(b.N)/float64(len(in)), "B/body-byte")
		})
	}
}
