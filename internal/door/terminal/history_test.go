package terminal

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "history")
	h := OpenHistory(path)
	for _, text := range []string{"one", "one", "", "two\nlines", strings.Repeat("x", maxEntry+1), "one"} {
		h.Add(text)
	}
	want := []string{"one", "two\nlines", "one"}
	if !slices.Equal(h.Entries(), want) {
		t.Errorf("entries %q", h.Entries())
	}
	if got := OpenHistory(path).Entries(); !slices.Equal(got, want) {
		t.Errorf("the file has %q", got)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("\"good\"\nnonsense\n7\n\"cut o"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := OpenHistory(path).Entries(); !slices.Equal(got, []string{"good"}) {
		t.Errorf("of a damaged file %q", got)
	}
	(&History{}).Add("nowhere to keep it")
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var lines strings.Builder
	for i := range 2*maxEntries + 1 {
		lines.WriteString(strconv.Quote(strconv.Itoa(i)) + "\n")
	}
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := OpenHistory(path).Entries(); len(got) != maxEntries || got[len(got)-1] != strconv.Itoa(2*maxEntries) {
		t.Errorf("%d entries", len(got))
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Count(string(data), "\n") != maxEntries {
		t.Errorf("the file is as long as it was: %v", err)
	}
}

func TestStateFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	if got, err := StateFile("history"); err != nil || got != filepath.Join(dir, "dragoman", "history") {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	if got, err := StateFile("history"); err != nil || strings.Contains(got, "relative") {
		t.Errorf("%q, %v", got, err)
	}
}
