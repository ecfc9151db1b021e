package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

//go:embed pages assets
var files embed.FS

// A view is what a page shows. Data is its own.
type view struct {
	Title   string
	Here    string // which entry of the menu
	Sent    bool   // a form made this page, and would be sent again with it
	Lang    string
	Menu    []entry
	Who     caller.Caller
	Said    string // what came of what the person just did
	Version string
	Node    string
	Data    any
}

// An entry is one of the menu. Key is what follows g on the keyboard.
type entry struct {
	Name, Path, Key string
}

// menu are the pages that somebody may see.
func menu(who caller.Caller) []entry {
	all := []entry{
		{"Overview", Root, "o"}, {"Catalogue", Root + "tools", "c"}, {"Inbox", Root + "inbox", "i"}, {"Live", Root + "live", "l"},
		{"Usage", Root + "usage", "u"},
		{"Playground", Root + "playground", "p"},
	}
	if who.May(permission.Audit) {
		all = append(all, entry{"Audit", Root + "audit", "a"})
	}
	if who.May(permission.Config) {
		all = append(all, entry{"Configuration", Root + "configuration", "f"})
	}
	return all
}

// show answers with a page.
func (c *Console) show(r *request, name string, v view) error {
	v.Menu, v.Who = menu(r.who), r.who
	c.write(r.w, r.Request, http.StatusOK, name, v)
	return nil
}

// write writes a page; whole, or an error in its place.
func (c *Console) write(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	lang := language(r)
	v.Lang, v.Version, v.Node, v.Sent = lang, c.o.Version, c.node(), r.Method == http.MethodPost
	var page bytes.Buffer
	if err := pages()[lang][name].ExecuteTemplate(&page, "page", v); err != nil {
		c.o.Log.Error("a page of the console could not be made", "page", name, "error", err)
		http.Error(w, "This page could not be made. The log tells more.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", lang)
	w.WriteHeader(status)
	_, _ = page.WriteTo(w)
}

// pages are the templates by language and file. They are read when the first page
// is asked for: most gateways, and every other command, never show one.
var pages = sync.OnceValue(parsePages)

func parsePages() map[string]map[string]*template.Template {
	all := map[string]map[string]*template.Template{}
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	for _, lang := range languages {
		all[lang] = map[string]*template.Template{}
		for _, name := range names {
			if base := path.Base(name); base != "page.html" && base != "parts.html" {
				all[lang][base] = template.Must(template.New(base).Funcs(functions(lang)).ParseFS(files, "pages/page.html", "pages/parts.html", name))
			}
		}
	}
	return all
}

// functions are what templates can call, in a language.
func functions(lang string) template.FuncMap {
	return template.FuncMap{
		"t":      func(text string, more ...any) string { return say(lang, text, more...) },
		"pieces": pieces,
		"blanks": blanks,
		"time":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clock":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"ms":     func(d time.Duration) string { return d.Round(10 * time.Microsecond).String() },
		"seg":    url.PathEscape,
		"query":  url.QueryEscape,
		"count":  thousands,
		"bytes":  func(b []byte) string { return string(b) },
		"dict":   dict,
		"lower":  strings.ToLower,
		"brief":  brief,
		"host":   hostOf,
		"may":    func(who caller.Caller, right string) bool { return who.May(right) },
		"rights": func() map[string]string {
			return map[string]string{"Reload": permission.Reload, "Audit": permission.Audit, "Config": permission.Config, "Live": permission.Live}
		},
		"initial": func(n, most int) bool { return n < most },
	}
}

// maxBrief is how much of a description stands in a list, in bytes.
const maxBrief = 160

// brief is the beginning of a text, in whole words where it has such.
func brief(text string) string {
	if len(text) <= maxBrief {
		return text
	}
	cut := strings.ToValidUTF8(text[:maxBrief], "")
	if at := strings.LastIndexByte(cut, ' '); at > maxBrief/2 {
		cut = cut[:at]
	}
	return cut + " …"
}

// hostOf is what people know an authorization server by.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// dict makes one value of several, for a part of a page.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict of %d", len(pairs))
	}
	all := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		all[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return all, nil
}

// thousands writes a number with spaces between its thousands.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// A piece is a part of a text: as it is, or a character that shows nothing, spelled out.
type piece struct {
	Text string
	Odd  bool
}

// pieces takes a text of others apart at what shows nothing, or shows others in another
// order. Line feeds and tabs stay.
func pieces(text string) []piece { return apart(text, invisible.Hidden) }

// blanks is [pieces] for what a person approves, where one space is not another.
func blanks(text string) []piece { return apart(text, invisible.Blank) }

func apart(text string, odd func(rune) bool) (all []piece) {
	from := 0
	for i, r := range text {
		if r == '\n' || r == '\t' || !odd(r) {
			continue
		}
		if from < i {
			all = append(all, piece{Text: text[from:i]})
		}
		all = append(all, piece{fmt.Sprintf("U+%04X", r), true})
		from = i + len(string(r))
	}
	if from < len(text) {
		all = append(all, piece{Text: strings.ToValidUTF8(text[from:], "\uFFFD")})
	}
	return all
}

// kinds are the types of the assets.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// asset answers with the script or the style sheet.
func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, err := files.ReadFile("assets/" + name)
	kind := kinds[path.Ext(name)]
	if err != nil || kind == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(text)
}
