package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// longText is how many characters of text the guide lets a result have.
const longText = 25_000

// formRules look at the form of results: pages, formats, lengths, and what is in them.
var formRules = []Rule{
	{
		ID: "O020", Severity: Error, Title: "page that says that there is no more, and there is",
		Why:     "A model that is told that this is all answers its user that there is no more.",
		Advice:  "Ask for one entry more than the limit, and say has_more by whether it came.",
		Source:  seedPages,
		Gateway: "The gateway cannot know that something is missing.",
		Live:    checkLastPage,
	},
	{
		ID: "O021", Severity: Warning, Title: "response format that is ignored",
		Why:    "A program that asked for JSON gets text to guess at, or a person gets braces.",
		Advice: "Send what response_format names, or leave the argument out.",
		Source: "MCP server best practices: response formats",
		Live:   eachProbe(CallFormat, checkFormat),
	},
	{
		ID: "O022", Severity: Warning, Title: "result of over 25,000 characters",
		Why:     "It crowds the conversation out of small contexts, and most of it is never looked at.",
		Advice:  "Cut at 25,000 characters, say so, and say how to get the rest.",
		Source:  "MCP server best practices: character limit",
		Gateway: "The gateway cuts by structure, says so, and lets the model read on.",
		Live: oncePerTool(func(c Called, say Say) {
			if c.Result == nil || c.Probe != CallValid && !isError(c.Result) {
				return
			}
			text := strings.Join(readResult(c.Result).texts, "")
			if n := len([]rune(text)); n > longText && tokens([]byte(text)) <= longResult && len(c.Result) <= hugeResult {
				say(of(c, ""), "a call %s got %d characters", c.fault(), n)
			}
		}),
	},
	{
		ID: "O023", Severity: Warning, Title: "JSON that breaks off",
		Why:     "What was cut in the middle is read by no program, and a model cannot tell that the rest is missing.",
		Advice:  "Leave out whole entries, and say how many.",
		Source:  "MCP server best practices: truncation",
		Gateway: "The gateway passes it on as text.",
		Live: eachValid(func(c Called, r *result, say Say) {
			for _, text := range r.texts {
				if breaksOff(text) {
					say(of(c, ""), "a text of %d characters begins as JSON and ends in the middle of it", len([]rune(text)))
					return
				}
			}
		}),
	},
	{
		ID: "E009", Severity: Warning, Title: "failure of a tool as an error of the protocol",
		Why:     "Clients show errors of the protocol to nobody, or end the conversation; a result with isError is read by the model.",
		Advice:  "Answer a result with isError and say what failed and what to do.",
		Source:  specTools + " (error handling: tool execution errors)",
		Gateway: "The gateway gives the model the text of such an error.",
		Live: oncePerTool(func(c Called, say Say) {
			if c.Probe == CallValid && c.failed() && !c.unnamed() && c.Code != -32602 && c.Code != -32042 {
				say(of(c, ""), "a call with %s got the error %d of the protocol (%s)", shorten(c.Arguments), c.Code, quote(c.Message))
			}
		}),
	},
	{
		ID: "X029", Severity: Error, Title: "secret in a result",
		Why:    "What a tool answers goes to the provider of the model, and into logs of conversations.",
		Advice: "Leave secrets out of results, or show their last four characters.",
		Source: "OWASP MCP01",
		Live: eachValid(func(c Called, r *result, say Say) {
			if kind := secretIn(strings.Join(r.texts, "\n")); kind != "" {
				say(of(c, ""), "the result of a call with %s holds what looks like %s", shorten(c.Arguments), kind)
			}
		}),
	},
	{
		ID: "X028", Severity: Error, Title: "tools that depend on the client's name",
		Why:     "A client under whose name the server is looked at, such as a scanner, sees other tools than the one that is used.",
		Advice:  "Show the same tools to every client with the same rights.",
		Source:  specTools + " (lists vary by authorization alone)",
		Gateway: "The gateway holds back each definition that nobody approved.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.OtherClient != nil {
				say(here, "a client called %s is shown other tools or definitions than one called %s (%d and %d entries)%s",
					quote(otherName), quote(ownName), len(l.OtherClient.Items), len(l.Lists[0].Items), firstChange(l.Lists[0].Items, l.OtherClient.Items))
			}
		},
	},
	{
		ID: "P032", Severity: Warning, Title: "progress that goes back, or comes after the end",
		Why:    "A client that shows it shows nonsense; one that keeps a request open while there is progress keeps it forever.",
		Advice: "Send progress that rises, and none once the answer is sent.",
		Source: "MCP, Basic: Progress (MUST increase, MUST stop)",
		Live: func(_ *Server, l *Live, say Say) {
			if len(l.Progress) > 0 {
				say(here, "%s", l.Progress[0])
			}
		},
	},
	{
		ID: "P033", Severity: Info, Title: "noise on standard error",
		Why:     "Clients show it to people as trouble, or keep it; what matters is lost in it.",
		Advice:  "Log at a level that is set by a variable, and little by default.",
		Source:  "MCP, stdio transport (logging); " + ours,
		Gateway: "The gateway keeps the last lines for those who ask, and shows none.",
		Live: func(_ *Server, l *Live, say Say) {
			if most := 20 + 2*len(l.Log); l.StderrLines > most {
				say(here, "%d lines on standard error, for %s", l.StderrLines, count(len(l.Log), "request"))
			}
		},
	},
}

// checkLastPage looks for a page of one entry that says that there is no more, where a
// page of two has another one.
func checkLastPage(_ *Server, l *Live, say Say) {
	one := map[*Tool]Called{}
	for _, c := range l.Calls {
		switch c.Probe {
		case CallOne:
			one[c.Tool] = c
		case CallTwo:
			before := one[c.Tool]
			a, okA := entries(before.Result)
			b, okB := entries(c.Result)
			if !okA || !okB || a != 1 || b != 2 {
				continue
			}
			if what := saysLast(before.Result); what != "" {
				say(of(c, ""), "with %s 1 the tool returned one entry and %s, and with 2 it returned two", quote(c.Field), what)
			}
		}
	}
}

// saysLast returns the member by which a page of one entry says that it is all there is;
// empty where it says nothing like it.
func saysLast(raw json.RawMessage) string {
	for _, m := range document(raw).Members() {
		name, value := fold(m.Name), m.Value
		last := value.IsBool(false) && (name == "hasmore" || name == "hasnext" || name == "more" || name == "truncated" || name == "istruncated") ||
			(name == "total" || name == "totalcount" || name == "totalresults" || name == "totalitems") && value.Text() == "1" ||
			(name == "remaining") && value.Text() == "0"
		if last {
			return fmt.Sprintf("%s %s", quote(m.Name), value.Bytes())
		}
	}
	return ""
}

// checkFormat looks whether a tool sends what it was asked for: what is asked for as JSON
// has to be JSON, and what is asked for as Markdown must not be.
func checkFormat(c Called, say Say) {
	r := readResult(c.Result)
	if c.Result == nil || r.failed || r.bad != "" || len(r.texts) != 1 || len(r.texts[0]) == 0 {
		return
	}
	n, err := schema.Parse([]byte(r.texts[0]))
	isJSON := err == nil && (n.Kind() == schema.Object || n.Kind() == schema.Array)
	switch wants := strings.ToLower(strings.Trim(c.Field, `"`)); {
	case wants == "json" && !isJSON && r.structured == nil:
		say(of(c, ""), "asked for json, the tool sent a text that is no JSON")
	case wants == "markdown" && isJSON && r.structured == nil:
		say(of(c, ""), "asked for markdown, the tool sent JSON")
	}
}

// breaksOff reports whether a text is the beginning of a JSON document, and not one.
func breaksOff(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) < 40 || text[0] != '{' && text[0] != '[' {
		return false
	}
	if json.Valid([]byte(text)) {
		return false
	}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err != nil {
			return err == io.EOF || err == io.ErrUnexpectedEOF
		}
	}
}
