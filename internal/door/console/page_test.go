package console

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

// TestLinksAreEscapedOnce: a template escapes what stands behind the ? of an address it can
// see, so that nothing of ours may have done so before.
func TestLinksAreEscapedOnce(t *testing.T) {
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	twice := regexp.MustCompile(`"[^"{]*\?[^"]*\{\{query `)
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range twice.FindAllString(string(text), -1) {
			t.Errorf("%s escapes twice: %s", name, found)
		}
	}
	var page bytes.Buffer
	d := serverData{Server: dragoman.Server{Label: "a b&c%/ü", Quarantined: 1}, Use: serverUse{Audited: true, Others: true, Errors: []serverError{{Call: "c&d"}}}}
	if err := pages()["en"]["server.html"].ExecuteTemplate(&page, "page", view{Lang: "en", Data: d}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`?server=a%20b%26c%25%2f%c3%bc"`, `&amp;server=a%20b%26c%25%2f%c3%bc"`, `?call=c%26d"`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("there is no %s in\n%s", want, page.String())
		}
	}
}

// TestBarsSpellOut: a picture has no mark for characters that show nothing, so their names
// stand in it.
func TestBarsSpellOut(t *testing.T) {
	d := runData{Run: session.Run{Steps: []session.Step{{Phase: "execute", Tool: "a\u202eb\u200b"}, {Passed: true, In: 1}}}}
	bars := d.Bars()
	if len(bars) != 2 || strings.ContainsAny(bars[0].Label, "\u202e\u200b") || !strings.Contains(strings.ToUpper(bars[0].Label), "202E") || !strings.HasPrefix(bars[1].Label, "model · ") {
		t.Errorf("%+v", bars)
	}
}

// TestBrief: a description in a list ends with a word, and one that has none is cut all the
// same.
func TestBrief(t *testing.T) {
	long := strings.Repeat("word ", 100)
	if got := brief(long); len(got) > maxBrief+len(" …") || !strings.HasSuffix(got, "word …") {
		t.Errorf("%q", got)
	}
	if got := brief(strings.Repeat("字", 1000)); len(got) > maxBrief+len(" …") || !strings.HasSuffix(got, "字 …") {
		t.Errorf("%q", got)
	}
	if got := brief("short"); got != "short" {
		t.Errorf("%q", got)
	}
}

// TestMarksAreMarks: what is said of a call, a server or a step is a class of its mark, too,
// and looks like nothing else that has a class of that name.
func TestMarksAreMarks(t *testing.T) {
	style, err := files.ReadFile("assets/console.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{audit.Allow, audit.Ask, audit.Deny, string(dragoman.Decide), string(dragoman.Execute), string(dragoman.Summarise)} {
		if found := regexp.MustCompile(`(?m)(^|[,}])\s*\.` + said + `\b[^{]*\{`).FindString(string(style)); found != "" {
			t.Errorf("a mark that says %q would look as %s", said, strings.TrimSpace(found))
		}
	}
}

// What is too long for its place scrolls, and whoever has no mouse can do that, too: boxes of
// text that somebody else wrote can be focused.
func TestScrolledByKeyboard(t *testing.T) {
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range regexp.MustCompile(`<pre[^>]*>{{`).FindAllString(string(text), -1) {
			if !strings.Contains(at, `tabindex="0"`) {
				t.Errorf("%s: %s cannot be focused", name, at)
			}
		}
	}
}

// TestHeadings: no page leaves out a level of headings, by which readers who do not see it
// find their way.
func TestHeadings(t *testing.T) {
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`<h([1-6])`)
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		above := "1"
		for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
			if found[1] > above && found[1][0]-above[0] > 1 {
				t.Errorf("%s: h%s stands below h%s", name, found[1], above)
			}
			above = found[1]
		}
	}
}
