package lint

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// untrueRules look for answers that say something which is not so.
var untrueRules = []Rule{
	{
		ID: "E010", Severity: Warning, Title: "failure that is called a success",
		Why:    "The model reads it as what the tool found, and clients count it as a success.",
		Advice: "Answer a result with isError and say what failed and what to do.",
		Source: specTools + " (error handling: tool execution errors)",
		Live: eachValid(func(c Called, r *result, say Say) {
			wanted := bytes.Contains(bytes.ToLower(c.Arguments), []byte("error")) // it may have been asked for
			if text := strings.Join(r.texts, "\n"); !r.failed && !wanted && failure.MatchString(text) {
				say(of(c, ""), "a call with %s succeeded with %s", shorten(c.Arguments), quote(text))
			}
		}),
	},
	{
		ID: "O026", Severity: Warning, Title: "page that contradicts itself, or another",
		Why:     "A model that is told of more asks for it until it gives up; one that gets the same page again counts its entries twice.",
		Advice:  "Count what is there, and begin a page where it was asked to begin.",
		Source:  seedPages,
		Gateway: "The gateway cannot know what is there.",
		Live:    checkPages,
	},
	{
		ID: "T004", Severity: Error, Title: "listed, and not to be had",
		Why:    "People choose it from a menu, and get an error.",
		Advice: "List only what prompts/get and resources/read answer.",
		Source: "MCP, Prompts and Resources; " + ours,
		Live: func(_ *Server, l *Live, say Say) {
			for _, r := range l.Texts {
				if r.failed() && !r.Invented && (r.Code == -32603 || r.Code == -32601) {
					say(here, "%s of %s got %s", r.Method, quote(r.Name), r.says())
				}
			}
		},
	},
	{
		ID: "X034", Severity: Info, Title: "path of the machine in a result",
		Why:    "It tells whoever reads the conversation how the machine is built and who its user is; where files are the tool's business it is right.",
		Advice: "Answer names and ids, or paths below the folder that the tool was given.",
		Source: "CWE-209; OWASP MCP01",
		Live: eachValid(func(c Called, r *result, say Say) {
			if m := homes.FindString(strings.Join(r.texts, "\n")); m != "" && c.Tool.param("path", "file", "filepath", "dir", "directory", "folder", "paths") == nil {
				say(of(c, ""), "the result of a call with %s holds %s", shorten(c.Arguments), quote(m))
			}
		}),
	},
}

var (
	failure = pattern.Of(`(?i)^\s*(error|fatal|exception|unhandled \w+|internal server error|traceback)\b\s*[:(]|^\s*(http )?(error )?50[0234]\b|<title>\s*50[0234]\b|^\s*(failed|unable) to (connect|reach|load|fetch|open)\b`)
	homes   = pattern.Of(`(/home/|/Users/|/root/|/srv/|/var/lib/|/opt/)[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+|[A-Z]:\\Users\\[A-Za-z0-9_. \\-]+`)
)

// checkPages compares what pages say with what they hold.
func checkPages(_ *Server, l *Live, say Say) {
	first := map[*Tool]Called{}
	told := map[*Tool]bool{}
	for _, c := range l.Calls {
		if told[c.Tool] || c.Result == nil {
			continue
		}
		what := ""
		switch c.Probe {
		case CallValid:
			what = contradiction(c)
		case CallOne:
			first[c.Tool] = c
		case CallNext:
			one := first[c.Tool]
			n, ok := entries(c.Result)
			if ok && n == 1 && one.Result != nil && string(listed(one.Result)) != "" && bytes.Equal(listed(one.Result), listed(c.Result)) {
				what = fmt.Sprintf("with %s 1 the tool returned the same entry as without", quote(c.Field))
			}
		}
		if what != "" {
			told[c.Tool] = true
			say(of(c, ""), "%s", what)
		}
	}
}

// contradiction says how the first page of a list contradicts itself: there are more, and
// no way to them, where fewer came than were asked for; or all came, and the total is
// another number.
func contradiction(c Called) string {
	n, ok := entries(c.Result)
	if !ok {
		return ""
	}
	var more, last, way bool
	total := -1
	for _, m := range document(c.Result).Members() {
		switch name := fold(m.Name); name {
		case "hasmore", "hasnext", "more":
			more, last = m.Value.IsBool(true), m.Value.IsBool(false)
		case "total", "totalcount", "totalresults", "totalitems":
			if t, err := strconv.Atoi(m.Value.Text()); err == nil {
				total = t
			}
		default:
			way = way || strings.HasPrefix(name, "next") && !rawjson.IsNull(m.Value.Bytes())
		}
	}
	switch {
	case more && !way && total == n:
		return fmt.Sprintf("of a total of %d entries %d came, and it says that there are more", total, n)
	case last && total > n && !bytes.Contains(c.Arguments, []byte(`offset`)):
		return fmt.Sprintf("it says that %d entries are all, and that the total is %d", n, total)
	}
	return ""
}

// listed returns the one list in a result, as it is written; nil for none.
func listed(raw []byte) []byte {
	for _, m := range document(raw).Members() {
		if items := m.Value.Items(); len(items) > 0 {
			return m.Value.Bytes()
		}
	}
	return nil
}
