package main

import (
	"os"
	"path/filepath"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
)

// TestPicture runs what the README shows and compares it.
func TestPicture(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	if _, err := os.Stat("/dev/ptmx"); err != nil {
		t.Skip("SKIPPED, NOT TESTED: there are no pseudo-terminals here")
	}
	// A machine that is busy shows what people see where something takes long.
	var err error
	for range 3 {
		if err = run(filepath.Join("..", ".."), filepath.Join(docs, "demo.txtar"), filepath.Join(docs, "demo.svg"), false); err == nil {
			return
		}
	}
	t.Error(err)
}

func TestTimeless(t *testing.T) {
	one := `<text x="20.0" textLength="67.2">decide        1ms x</text> 348 bytes, 3ms in all`
	other := `<text x="28.4" textLength="58.8">decide      474µs x</text> 348 bytes, 12.5s in all`
	if timeless(one) != timeless(other) {
		t.Errorf("%q and %q differ", timeless(one), timeless(other))
	}
	if timeless(one) == timeless(`<text x="20.0" textLength="67.2">decide        1ms y</text> 348 bytes, 3ms in all`) {
		t.Error("two texts are the same")
	}
}

func TestRuns(t *testing.T) {
	bold := uv.Style{Attrs: uv.AttrBold}
	got := runs([]uv.Cell{
		{Content: " ", Width: 1}, {Content: "a", Width: 1}, {Content: " ", Width: 1},
		{Content: "b", Width: 1, Style: bold}, {Content: "语", Width: 2, Style: bold},
	})
	want := []stretch{{"", 1, uv.Style{}}, {"a", 1, uv.Style{}}, {"", 1, uv.Style{}}, {"b", 1, bold}, {"语", 2, bold}}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range got {
		if got[i].text != want[i].text || got[i].width != want[i].width || got[i].style.Attrs != want[i].style.Attrs {
			t.Errorf("%d: got %v, want %v", i, got[i], want[i])
		}
	}
}
