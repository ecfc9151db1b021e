package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// What Markdown looks like without colours, where its marks stay, on a narrow screen.
func TestMarkdownPlain(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a heading", "# One\n## *Two*", "# One\n\n## *Two*"},
		{"a paragraph is wrapped", "The quick brown fox jumps over the lazy dog.", "The quick brown fox jumps\nover the lazy dog."},
		{"its own line ends are not kept", "one\ntwo  \nthree", "one two\nthree"},
		{"wide characters", "北京的天气今天是晴朗的温度是二十二度", "北京的天气今天是晴朗的温度\n是二十二度"},
		{"emphasis", "a **b** *c* ~~d~~ `e*f`", "a **b** *c* ~~d~~ `e*f`"},
		{"code is not wrapped", "```go\nfunc main() {\n\tprintln(\"a long line of code\")\n}\n```", "  func main() {\n      println(\"a long line of code\")\n  }"},
		{"indented code", "    a\n     b", "  a\n   b"},
		{"a list", "- one\n- two\n  - three", "• one\n• two\n  • three"},
		{"a list with numbers", "9. one\n10. two words that go on and on", "9. one\n10. two words that go on\n    and on"},
		{"a loose list", "- one\n\n  more\n- two", "• one\n\n  more\n\n• two"},
		{"tasks", "- [x] done\n- [ ] open", "• [x] done\n• [ ] open"},
		{"a quotation", "> one\n>\n> > two", "│ one\n│\n│ │ two"},
		{"links", "[the page](https://a.test/b) <https://c.test> https://d.test ![a cat](cat.png)", "the page\n(https://a.test/b)\nhttps://c.test\nhttps://d.test a cat\n(cat.png)"},
		{"a rule", "one\n\n---\n\ntwo", "one\n\n──────────────────────────\n\ntwo"},
		{"escapes and entities", `\*a\* &amp; &lt;b&gt; ` + "`&amp;`", "*a* & <b> `&amp;`"},
		{"HTML", "<details>\nx\n</details>\n\nan <b>inline</b> one", "<details>\nx\n</details>\n\nan <b>inline</b> one"},
		{"an empty item", "-\n- a", "•\n• a"},
		{"nothing", "", ""},
	} {
		if diff := cmp.Diff(tt.want+"\n", markdown(tt.text, 26, false)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestMarkdownTable(t *testing.T) {
	const source = "| city | **weather** |\n|---|---|\n| Oslo | cloudy with a chance of rain |\n| Rome | sunny |"
	wide := markdown(source, 80, false)
	for _, want := range []string{"city", "**weather**", "cloudy with a chance of rain"} {
		if !strings.Contains(wide, want) {
			t.Errorf("%q is lost:\n%s", want, wide)
		}
	}
	for line := range strings.Lines(markdown(source, 30, false)) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 30 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

func TestMarkdownColours(t *testing.T) {
	got := markdown("# A b\n\nsome **bold words** and `code`", 80, true)
	want := "\x1b[1;4mA\x1b[0m \x1b[1;4mb\x1b[0m\n\nsome \x1b[1mbold\x1b[0m \x1b[1mwords\x1b[0m and \x1b[36mcode\x1b[0m\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is spelled in another way than plainly cannot take the terminal over either.
func TestMarkdownIsNoWayToTheTerminal(t *testing.T) {
	for _, source := range []string{
		"&#27;[31m red", "&#x1b;]0;title&#7;", "[a](https://x.test/&#27;[31m)", "[a](<\\u{1b}>)", "`&#27;`", "<a&#27;>",
		"```\n&#27;[31m\n```", "| &#27; |\n|---|\n| &#155; |", "![&#27;](x)", "&#x202e;", "# &#27;",
	} {
		for _, r := range markdown(Visible(source), 40, false) {
			if invisible.Hidden(r) {
				t.Errorf("%q brings %q", source, r)
			}
		}
	}
}
