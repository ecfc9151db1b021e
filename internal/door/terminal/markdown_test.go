package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCutBlock(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // the whole blocks, and what is left
	}{
		{"no end", "one", []string{"one"}},
		{"a paragraph", "one\ntwo\n\nthree", []string{"one\ntwo\n\n", "three"}},
		{"its end is not known yet", "one\n\n", []string{"one\n\n"}},
		{"it may be a list", "one\n\n-", []string{"one\n\n", "-"}},
		{"a list that goes on", "- a\n\n- b\n\n  more\n\nend", []string{"- a\n\n- b\n\n  more\n\n", "end"}},
		{"a list, and something that may be one", "1. a\n\n2", []string{"1. a\n\n2"}},
		{"a fence", "```go\na\n\nb\n```\n\nend", []string{"```go\na\n\nb\n```\n\n", "end"}},
		{"a fence in a fence", "````\n```\n\nx\n````\n\ny", []string{"````\n```\n\nx\n````\n\n", "y"}},
		{"blank lines first", "\n\none\n\ntwo", []string{"\n\none\n\n", "two"}},
		{"several", "# a\n\nb\n\nc\n\n", []string{"# a\n\n", "b\n\n", "c\n\n"}},
	} {
		var got []string
		rest := tt.text
		for {
			block, more, whole := cutBlock(rest)
			if !whole {
				break
			}
			got, rest = append(got, block), more
		}
		if diff := cmp.Diff(tt.want, append(got, rest)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// However a text comes in pieces, all of it comes out, and elsewhere than on a
// terminal just as it is.
func TestAnswer(t *testing.T) {
	text := "# Heading\n\nSome **bold** text\nand more.\n\n- a\n\n- b\n\n```go\nfunc x() {}\n\n// y\n```\n\nThe end \x1b[31m"
	for n := range 12 {
		n++
		var plain, rendered, trace bytes.Buffer
		for _, out := range []*Screen{{Writer: &plain}, {Writer: &rendered, Live: true}} {
			chat := &Chat{Model: "m", Trace: &Screen{Writer: &trace}}
			a := newAnswer(out, newTrace(chat))
			for rest := text; rest != ""; {
				k := min(n, len(rest))
				a.say(rest[:k])
				rest = rest[k:]
			}
			a.end()
		}
		if want := Visible(text) + "\n"; plain.String() != want {
			t.Fatalf("in pieces of %d: %q", n, plain.String())
		}
		for _, want := range []string{"Heading", "bold", "and more.", "a", "b", "func x() {}", "// y", `The end \u{1b}[31m`} {
			if !strings.Contains(rendered.String(), want) {
				t.Errorf("in pieces of %d, %q is lost:\n%s", n, want, rendered.String())
			}
		}
		if strings.Contains(rendered.String(), "\x1b") {
			t.Errorf("a model has its way with the screen: %q", rendered.String())
		}
	}
}

func FuzzCutBlock(f *testing.F) {
	f.Add("a\n\n- b\n\n```\nc\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		rest, all := text, ""
		for {
			block, more, whole := cutBlock(rest)
			if !whole {
				break
			}
			if block == "" || block+more != rest {
				t.Fatalf("%q became %q and %q", rest, block, more)
			}
			all, rest = all+block, more
		}
		if all+rest != text {
			t.Fatalf("%q became %q", text, all+rest)
		}
		_ = markdown(Visible(text), 40, true)
	})
}
