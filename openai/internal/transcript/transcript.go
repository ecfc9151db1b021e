// Package transcript plays conversations that tests of the client halves have in files: what
// a client asks and what a model's API answers, in the order of events, and behind that what
// comes of it, which is compared, or written with -update.
package transcript

import (
	"bytes"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Test plays the transcripts that a pattern names, each with a clock of its own, and compares
// what comes of them with what they say, or writes it there.
func Test(t *testing.T, pattern string, write bool, play func(*testing.T, *txtar.Archive) *txtar.Archive) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			synctest.Test(t, func(t *testing.T) { got = txtar.Format(play(t, archive)) })
			if write {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Settings are the lines of a transcript's comment that say what is special, a word and a
// value each.
func Settings(archive *txtar.Archive) iter.Seq2[string, string] {
	return func(yield func(word, value string) bool) {
		for line := range strings.Lines(string(archive.Comment)) {
			if word, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !yield(word, value) {
				return
			}
		}
	}
}

// Play plays the events of a transcript, and returns it with what came of them. Events are
// requests ("request", with words behind it), each with the answers of the API behind it
// ("upstream"), and time that passes ("wait 2h").
func Play(t *testing.T, archive *txtar.Archive, request func(words string, body []byte, answers []string) []txtar.File) *txtar.Archive {
	played := &txtar.Archive{Comment: archive.Comment}
	var results []txtar.File
	for i, f := range archive.Files {
		switch word, rest, _ := strings.Cut(f.Name, " "); word {
		case "request":
			var answers []string
			for _, next := range archive.Files[i+1:] {
				if next.Name != "upstream" {
					break
				}
				answers = append(answers, string(next.Data))
			}
			results = append(results, request(rest, bytes.TrimSpace(f.Data), answers)...)
		case "wait":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(d)
		case "upstream":
		default:
			continue // what is expected
		}
		played.Files = append(played.Files, f)
	}
	played.Files = append(played.Files, results...)
	return played
}

// IDs gives ids that are random names that do not change, such as <read-1>.
type IDs struct {
	// Pattern finds ids. Where it has a group, that is the id.
	Pattern *regexp.Regexp
	// Kind names what an id is of, by what the pattern found.
	Kind func(found string) string

	names map[string]string // by id
	ids   map[string]string // by name
	count map[string]int
}

// Hide returns a text with names in place of ids.
func (m *IDs) Hide(s string) []byte {
	if m.names == nil {
		m.names, m.ids, m.count = map[string]string{}, map[string]string{}, map[string]int{}
	}
	var hidden []byte
	end := 0
	for _, at := range m.Pattern.FindAllStringSubmatchIndex(s, -1) {
		from, to := at[0], at[1]
		if len(at) > 2 && at[2] >= 0 {
			from, to = at[2], at[3]
		}
		id := s[from:to]
		name, ok := m.names[id]
		if !ok {
			kind := m.Kind(s[at[0]:at[1]])
			m.count[kind]++
			name = fmt.Sprintf("<%s-%d>", kind, m.count[kind])
			m.names[id], m.ids[name] = name, id
		}
		hidden = append(append(hidden, s[end:from]...), name...)
		end = to
	}
	return append(hidden, s[end:]...)
}

// Put returns a text with ids in place of the names that they were given.
func (m *IDs) Put(b []byte) []byte {
	for name, id := range m.ids {
		b = bytes.ReplaceAll(b, []byte(name), []byte(id))
	}
	return b
}

// Rendered is a response as it is on the wire, but for headers that are always the same.
func Rendered(w *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintln(&b, w.Code)
	h := w.Result().Header
	for _, name := range []string{"Cache-Control", "X-Accel-Buffering", "X-Content-Type-Options"} {
		h.Del(name)
	}
	_ = h.Write(&b)
	return strings.ReplaceAll(b.String(), "\r", "") + "\n" + w.Body.String()
}

// Came is what came of a request: the bodies that the upstream was sent ("asked"), the calls
// that ran ("ran"), and all that the client got ("got").
func Came(u *Upstream, shop *Shop, ids *IDs, w *httptest.ResponseRecorder) []txtar.File {
	if len(u.Answers) > 0 {
		u.Errorf("the upstream was not asked for its last %d answers", len(u.Answers))
	}
	files := []txtar.File{{Name: "asked", Data: ids.Hide(strings.Join(u.Asked, ""))}}
	if ran := shop.Ran(); len(ran) > 0 {
		files = append(files, txtar.File{Name: "ran", Data: ids.Hide(strings.Join(ran, ""))})
	}
	return append(files, txtar.File{Name: "got", Data: ids.Hide(Rendered(w))})
}

var resultMeta = regexp.MustCompile(`,\\"meta\\":\{.*?\}\}"`)

// WithoutMeta leaves out of a body for an upstream what results say of themselves.
func WithoutMeta(body []byte) string {
	return resultMeta.ReplaceAllString(string(body), `,\"meta\":{…}}"`)
}
