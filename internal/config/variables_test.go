package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVariables(t *testing.T) {
	tests := []struct {
		text string
		want []variable
		line int
	}{
		{"", nil, 0},
		{"# a comment\n\nA=1\r\n B = two words # said\nexport C=\n", []variable{{"A", "1"}, {"B", "two words"}, {"C", ""}}, 0},
		{"A='a # b'\nB=\"c\\nd \\\"e\\\"\" # x\nC=`f'g`\n", []variable{{"A", "a # b"}, {"B", "c\nd \"e\""}, {"C", "f'g"}}, 0},
		{"A=\"one\ntwo\"\nB=3", []variable{{"A", "one\ntwo"}, {"B", "3"}}, 0},
		{"A=1\nB=2\nA=3\n", []variable{{"A", "3"}, {"B", "2"}}, 0},
		{"exported=1\n", []variable{{"exported", "1"}}, 0},
		{"A=x#y\n", []variable{{"A", "x#y"}}, 0},
		{"A=1\njust text\n", nil, 2},
		{"A='1\n2'\n\n\"B\"=2\n", nil, 4},
		{"A=1\nB='open\n", nil, 2},
		{"A='1' 2\n", nil, 1},
		{"9=1\n", nil, 1},
		{"A=\x00\n", nil, 1},
	}
	for _, tt := range tests {
		got, line := parseVariables([]byte(tt.text))
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(variable{})); diff != "" || line != tt.line {
			t.Errorf("%q: line %d, want %d (-want +got):\n%s", tt.text, line, tt.line, diff)
		}
	}
}

func FuzzParseVariables(f *testing.F) {
	f.Add([]byte("A=1\nexport B='two'\nC=\"x\\n\ny\" # z\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, line := parseVariables(text)
		if line < 0 || line > strings.Count(string(text), "\n")+1 || line > 0 && got != nil {
			t.Errorf("line %d of %q, and %v", line, text, got)
		}
		for i, v := range got {
			if !variableName(v.name) {
				t.Errorf("%q is no name", v.name)
			}
			for _, other := range got[:i] {
				if other.name == v.name {
					t.Errorf("%s stands there twice", v.name)
				}
			}
		}
	})
}

func FuzzParseTOML(f *testing.F) {
	f.Add([]byte("a.b = 1\n[c.\"d e\"]\nf = ['g', {h = 1979-05-27}]\n[[i]]\nj = 1\n[[i]]\n[i.k]\nl = '''\nm'''\n"))
	f.Add([]byte("[a]\nb = 1\n[a.c]\n[[a.d]]\ne.f.g = true\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 10_000 {
			t.Skip()
		}
		src := newSource("config.toml", string(data))
		src.unshown = true
		root, failed := parseTOML(src, data)
		if failed != nil {
			if strings.Contains(failed.Error(), "\n") {
				t.Errorf("an error with lines of the file: %v", failed)
			}
			return
		}
		checkPlaces(t, root, len(src.lines))
	})
}

// TestLargeFiles: what a place costs does not grow with what stands before it.
func TestLargeFiles(t *testing.T) {
	last := func(n *node) (at *node) {
		for at = n; len(at.entries)+len(at.items) > 0; {
			if len(at.items) > 0 {
				at = at.items[len(at.items)-1]
			} else {
				at = at.entries[len(at.entries)-1].value
			}
		}
		return at
	}
	for name, tt := range map[string]struct {
		text         string
		line, column int
	}{
		"line.json":   {`{"é":[` + strings.Repeat(`"ü",`, 300_000) + "1]}", 1, 7 + 4*300_000},
		"lines.json":  {`{"é":[` + strings.Repeat("\"ü\",\n", 300_000) + "  1]}", 300_001, 3},
		"line.toml":   {`"é" = [` + strings.Repeat(`"ü",`, 90_000) + "1]\n", 1, 8 + 4*90_000},
		"tables.toml": {strings.Repeat("[[x]]\r\n\"é\" = 1\r\n", 33_000) + `"ü" = [[2], 1]`, 66_001, 13},
	} {
		t.Run(name, func(t *testing.T) {
			src, root, failed := foreignTree(name, []byte(tt.text))
			if failed != nil {
				t.Fatal(failed)
			}
			if at := last(root); at.text != "1" || at.line != tt.line || at.column != tt.column {
				t.Errorf("%q stands at %d:%d of %d lines; want %d:%d", at.text, at.line, at.column, len(src.lines), tt.line, tt.column)
			}
		})
	}
}

// checkPlaces checks that each node has a place in the file, and no key stands twice.
func checkPlaces(t *testing.T, n *node, lines int) {
	if n.line < 1 || n.line > lines || n.column < 1 {
		t.Errorf("%q stands at %d:%d of %d lines", n.text, n.line, n.column, lines)
	}
	for label, twice := range several(n.entries) {
		if twice {
			t.Errorf("%q stands twice", label)
		}
	}
	for _, e := range n.entries {
		checkPlaces(t, e.value, lines)
	}
	for _, item := range n.items {
		checkPlaces(t, item, lines)
	}
}
