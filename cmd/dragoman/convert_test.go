package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Editors of Windows put a byte order mark before a list, and its shell may write UTF-16.
func TestReadInput(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                 "{}",
		"\ufeff{}":           "{}",
		"\xff\xfe{\x00}\x00": "UTF-16",
		"\xfe\xff\x00{\x00}": "UTF-16",
	} {
		path := filepath.Join(t.TempDir(), "tools.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := readInput([]string{path})
		if err == nil && string(list) != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %q, %v; want %q", text, list, err, want)
		}
	}
}
