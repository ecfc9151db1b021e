package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A byte order mark, which editors of Windows write, is no part of a file.
func TestReadOptional(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lint.yaml")
	if err := os.WriteFile(path, []byte("\ufefflint: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := readOptional(path, "none"); string(text) != "lint: {}\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
