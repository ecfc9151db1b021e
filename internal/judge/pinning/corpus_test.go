package pinning

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
)

// corpus returns the tools of the saved lists in the folder that DRAGOMAN_CORPUS names,
// by the name of the file.
func corpus(t testing.TB) map[string][]dragoman.Tool {
	t.Helper()
	dir := os.Getenv("DRAGOMAN_CORPUS")
	if dir == "" {
		t.Skip("DRAGOMAN_CORPUS is not set: no real lists to judge")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]dragoman.Tool{}
	for _, file := range files {
		label := strings.TrimSuffix(filepath.Base(file), ".json")
		if label == "MANIFEST" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, definition := range list.Tools {
			all[label] = append(all[label], dragoman.ReadTool(label, definition))
		}
	}
	return all
}

// TestCorpus: of the tools and texts of real servers none is held at first sight.
func TestCorpus(t *testing.T) {
	d := fresh(t, Config{Mode: pin.First})
	n, held, lists := 0, 0, corpus(t)
	for label, tools := range lists {
		n += len(tools)
		var texts []string
		var said []pin.Said
		for i := range tools {
			said = append(said, pin.OfTool(&tools[i]))
			texts = append(texts, tools[i].Description)
		}
		// No list has instructions. What a server says of all its tools is as long as
		// any, and as full of advice.
		said = append(said, pin.OfInstructions(label, strings.Join(texts, "\n\n")))
		for key, h := range d.Judge(t.Context(), pin.Subject{Label: label}, said) {
			held++
			t.Logf("%s/%s: %s", label, key, h.Problem.Message)
		}
	}
	t.Logf("%d of %d tools, and of the texts of %d servers, are held at first sight", held, n, len(lists))
	if held > 0 {
		t.Errorf("that is too many")
	}
}

// BenchmarkJudge judges the tools of all real servers as those of one: when they are
// seen for the first time (and forgotten), after somebody changed something, and while
// nobody did.
func BenchmarkJudge(b *testing.B) {
	var all []pin.Said
	for label, tools := range corpus(b) {
		for _, t := range tools {
			t.Original = label + "_" + t.Original
			t.Server = "all"
			t.Pin = dragoman.Pin(t.Server, t.Original, t.Definition)
			all = append(all, pin.OfTool(&t))
		}
	}
	b.Logf("%d tools", len(all))
	server := pin.Subject{Label: "all"}
	judge := func(b *testing.B, d *desk) {
		if held := d.Judge(b.Context(), server, all); len(held) > 0 {
			b.Fatalf("%d are held", len(held))
		}
	}
	b.Run("first", func(b *testing.B) {
		d := open(b, filepath.Join(b.TempDir(), "dragoman.db"), Config{})
		for b.Loop() {
			judge(b, d)
			if _, err := d.Forget(b.Context(), "all", pin.Key{}, "x"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("poison", func(b *testing.B) { // a part of it
		for b.Loop() {
			j := &judgement{suspect: map[pin.Digest]string{}}
			for i := range all {
				j.poison(&all[i])
			}
		}
	})
	d := open(b, filepath.Join(b.TempDir(), "dragoman.db"), Config{})
	judge(b, d)
	b.Run("anew", func(b *testing.B) {
		for b.Loop() {
			d.mu.Lock()
			d.move()
			d.mu.Unlock()
			judge(b, d)
		}
	})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			judge(b, d)
		}
	})
}
