package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

func newLogger(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// A stored log is all that is in the file, in memory.
type stored struct {
	rows []row
	head Head
}

func load(t *testing.T, l *Log) (s stored) {
	t.Helper()
	err := readLog(l.snapshot(context.Background()), l.name, Filter{}, func(r *row) error { s.rows = append(s.rows, *r); return nil }, func(tx *store.Tx, _ bool) (err error) {
		s.head, err = head(tx, l.name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s stored) clone() stored {
	s.rows = slices.Clone(s.rows)
	for i := range s.rows {
		s.rows[i].hash, s.rows[i].body = bytes.Clone(s.rows[i].hash), bytes.Clone(s.rows[i].body)
	}
	return s
}

// verify does what Verify does, without a database. It begins where s differs from
// whole, with what Verify would have found until there.
func (s stored) verify(whole stored, until []verifier) error {
	slices.SortStableFunc(s.rows, func(a, b row) int { return int(a.seq - b.seq) })
	same := 0
	for same < min(len(s.rows), len(whole.rows)) && s.rows[same].equal(&whole.rows[same]) {
		same++
	}
	v := until[same]
	for i := same; i < len(s.rows); i++ {
		if err := v.next(&s.rows[i]); err != nil {
			return err
		}
	}
	return v.ends(s.head)
}

func (r row) equal(other *row) bool {
	if !bytes.Equal(r.hash, other.hash) || !bytes.Equal(r.body, other.body) {
		return false
	}
	return r.seq == other.seq && r.time == other.time && r.kind == other.kind && r.call == other.call && r.caller == other.caller &&
		r.server == other.server && r.target == other.target && r.verdict == other.verdict
}

// A mutation changes a stored log, and returns the numbers of which one has to be
// named.
type mutation struct {
	name  string
	apply func(s *stored, i int, r *rand.Rand) (named []int64)
}

// bytesOf changes one byte of text: flips a bit of it, drops it, or doubles it.
func bytesOf(text []byte, r *rand.Rand) []byte {
	if len(text) == 0 {
		return []byte("x")
	}
	at := r.IntN(len(text))
	switch r.IntN(3) {
	case 0:
		return slices.Delete(bytes.Clone(text), at, at+1)
	case 1:
		return slices.Insert(bytes.Clone(text), at, text[at]^1)
	}
	out := bytes.Clone(text)
	out[at] ^= 1 << r.IntN(8)
	return out
}

func textOf(field func(*row) *string) func(*stored, int, *rand.Rand) []int64 {
	return func(s *stored, i int, r *rand.Rand) []int64 {
		text := field(&s.rows[i])
		*text = string(bytesOf([]byte(*text), r))
		return []int64{s.rows[i].seq}
	}
}

var mutations = []mutation{
	{"a byte of the body", func(s *stored, i int, r *rand.Rand) []int64 {
		s.rows[i].body = bytesOf(s.rows[i].body, r)
		return []int64{s.rows[i].seq}
	}},
	{"a byte of the body, and its hash anew", func(s *stored, i int, r *rand.Rand) []int64 {
		s.rows[i].body = bytesOf(s.rows[i].body, r)
		hash := sha256.Sum256(s.rows[i].body)
		s.rows[i].hash = hash[:]
		return []int64{s.rows[i].seq, s.rows[i].seq + 1}
	}},
	{"a byte of the hash", func(s *stored, i int, r *rand.Rand) []int64 {
		s.rows[i].hash = bytesOf(s.rows[i].hash, r)
		return []int64{s.rows[i].seq}
	}},
	{"the number", func(s *stored, i int, r *rand.Rand) []int64 {
		seq := s.rows[i].seq
		s.rows[i].seq = 1000 + r.Int64N(1000)
		return []int64{seq, s.rows[i].seq}
	}},
	{"the time", func(s *stored, i int, r *rand.Rand) []int64 {
		s.rows[i].time += 1 + r.Int64N(1e6)
		return []int64{s.rows[i].seq}
	}},
	{"the kind", textOf(func(r *row) *string { return &r.kind })},
	{"the call", textOf(func(r *row) *string { return &r.call })},
	{"the caller", textOf(func(r *row) *string { return &r.caller })},
	{"the server", textOf(func(r *row) *string { return &r.server })},
	{"the target", textOf(func(r *row) *string { return &r.target })},
	{"the verdict", textOf(func(r *row) *string { return &r.verdict })},
	{"removed", func(s *stored, i int, _ *rand.Rand) []int64 {
		seq := s.rows[i].seq
		s.rows = slices.Delete(s.rows, i, i+1)
		return []int64{seq}
	}},
	{"everything from here on removed", func(s *stored, i int, _ *rand.Rand) []int64 {
		seq := s.rows[i].seq
		s.rows = s.rows[:i]
		return []int64{seq}
	}},
	{"everything before it removed", func(s *stored, i int, _ *rand.Rand) []int64 {
		i = max(i, 1)
		s.rows = s.rows[i:]
		return []int64{s.rows[0].seq - 1}
	}},
	{"exchanged with another", func(s *stored, i int, r *rand.Rand) []int64 {
		j := (i + 1 + r.IntN(len(s.rows)-1)) % len(s.rows)
		s.rows[i].seq, s.rows[j].seq = s.rows[j].seq, s.rows[i].seq
		return []int64{min(s.rows[i].seq, s.rows[j].seq)}
	}},
	{"a second one put behind", func(s *stored, i int, _ *rand.Rand) []int64 {
		double := s.rows[i]
		double.seq = s.rows[len(s.rows)-1].seq + 1
		s.rows = append(s.rows, double)
		return []int64{double.seq}
	}},
	{"the head", func(s *stored, _ int, r *rand.Rand) []int64 {
		s.head.Hash[r.IntN(32)] ^= 1 << r.IntN(8)
		return []int64{s.rows[len(s.rows)-1].seq}
	}},
}

// TestMutations: of 10,000 changes to a log, every one is found, and the record
// that is named is the one that was changed (fault 29).
func TestMutations(t *testing.T) {
	l := logged(t, func(c *Config) { c.Arguments = Full })
	for i := range 8 {
		r := intent(fmt.Sprint("call-", i))
		r.Target = fmt.Sprint("tool-", i)
		l.Append(r)
	}
	flush(t, l)
	whole := load(t, l)
	until := []verifier{{log: l.name}}
	for i := range whole.rows {
		v := until[i]
		if err := v.next(&whole.rows[i]); err != nil {
			t.Fatal(err)
		}
		until = append(until, v)
	}
	if err := until[len(whole.rows)].ends(whole.head); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 10_000 {
		m := mutations[n%len(mutations)]
		s := whole.clone()
		i := r.IntN(len(s.rows))
		named := m.apply(&s, i, r)
		bad, ok := errors.AsType[*Bad](s.verify(whole, until))
		if !ok || !slices.Contains(named, int64(bad.Seq)) {
			t.Fatalf("%s, at record %d: found %v; want record %v", m.name, i+1, bad, named)
		}
	}
}

// TestTamperedFile does a few of them to a file, and asks Verify.
func TestTamperedFile(t *testing.T) {
	for query, want := range map[string]uint64{
		"UPDATE audit_records SET body = replace(body, 'write_file', 'read_file') WHERE seq = 7": 7,
		"UPDATE audit_records SET caller = 'somebody else' WHERE seq = 3":                        3,
		"DELETE FROM audit_records WHERE seq = 9":                                                9,
		"DELETE FROM audit_records WHERE seq > 10":                                               11,
		"DELETE FROM audit_records WHERE seq = 1":                                                1,
		"DELETE FROM audit_records":                                                              1,
		"DELETE FROM audit_head":                                                                 12,
		"UPDATE audit_head SET seq = 11":                                                         12,
		"UPDATE audit_records SET seq = -5 WHERE seq = 5":                                        0,
		"UPDATE audit_records SET hash = x'00' WHERE seq = 2":                                    2,
	} {
		l := logged(t, nil)
		for range 12 {
			l.Append(intent("a"))
		}
		flush(t, l)
		tamper(t, l, query)
		_, err := l.Verify(t.Context())
		if bad, ok := errors.AsType[*Bad](err); !ok || bad.Seq != want {
			t.Errorf("%s: %v; want record %d", query, err, want)
		}
	}
}

// TestHeads: a log that was written anew from the start fits in itself, and not to
// a head that was kept.
func TestHeads(t *testing.T) {
	l := logged(t, nil)
	for range 5 {
		l.Append(intent("a"))
	}
	flush(t, l)
	kept := verified(t, l).Head
	if again, err := ParseHead(kept.String()); err != nil || again != kept {
		t.Errorf("%v, %v", again, err)
	}
	for _, text := range []string{"", "5", "5:", "-1:" + kept.Hash.String(), "5:" + kept.Hash.String() + "00", "x:" + kept.Hash.String()} {
		if h, err := ParseHead(text); err == nil {
			t.Errorf("%q is %v", text, h)
		}
	}
	l.Append(intent("b"))
	flush(t, l)
	verified(t, l, kept)

	forged := logged(t, nil)
	for range 6 {
		forged.Append(intent("c"))
	}
	flush(t, forged)
	_, err := forged.Verify(t.Context(), kept)
	if bad, ok := errors.AsType[*Bad](err); !ok || bad.Seq != kept.Seq {
		t.Errorf("forged: %v", err)
	}
	tamper(t, l, "DELETE FROM audit_records WHERE seq > 3")
	tamper(t, l, "UPDATE audit_head SET seq = 3, hash = (SELECT hash FROM audit_records WHERE seq = 3)")
	verified(t, l) // a cut that was made with care …
	if _, err := l.Verify(t.Context(), kept); err == nil {
		t.Error("… is found by a head that was kept")
	}
}
