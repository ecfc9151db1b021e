package lint

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/internal/text/poison"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// poisonRules look for texts that give the model orders, wherever a model reads. What
// such texts say is in package poison, by which the gateway's pins judge, too.
var poisonRules = []Rule{
	{
		ID: "X002", Severity: Error, Title: "instructions to the model",
		Why:     "Text that tells the model to ignore its orders, to hide something from the user or to fetch files is how poisoned tools steal data. It is as good in a parameter's description, an enum or a property's name as in the description, in any language, and in base64.",
		Advice:  "Describe the tool; leave what the model does to its user.",
		Source:  "OWASP MCP03 (tool poisoning); agent-scan E001; full-schema poisoning",
		Gateway: "Where the gateway keeps pins, it holds the tool back until somebody has approved it. Descriptions reach the model as data of the tool, never as a system message.",
		Tool: func(t *Tool, say Say) {
			if p := t.poison(); p != nil {
				say(at(p.pointer), "the text gives the model orders: %s", p)
			}
		},
	},
	{
		ID: "X023", Severity: Error, Title: "instructions to the model in the server's own text",
		Why:     "The instructions of a server stand near the system prompt; poison there reaches every conversation.",
		Advice:  "Say how the tools belong together, and nothing else.",
		Source:  "OWASP MCP03 (tool poisoning)",
		Gateway: "Where the gateway keeps pins, it passes such instructions on to nobody until somebody has approved them; to people it spells out what is hidden.",
		Server: func(s *Server, say Say) {
			if f := poison.Judge([]poison.Text{{Text: s.Instructions, Place: poison.Instructions}}); f != nil {
				say(here, "the server's instructions give the model orders: %s", &poisoned{f, ""})
			} else if what := hiddenIn(s.Instructions); what != "" {
				say(here, "in the server's instructions %s", what)
			}
			if f := poison.Judge([]poison.Text{{Text: s.Title}, {Text: s.Name, Place: poison.Name}}); f != nil {
				say(here, "what the server calls itself gives the model orders: %s", &poisoned{f, ""})
			}
		},
	},
	{
		ID: "X025", Severity: Error, Title: "instructions to the model in a prompt, a resource or a template",
		Why:     "Models read the names and descriptions of resources and prompts as they read those of tools, and what prompts/get answers stands in the user's own place.",
		Advice:  "Say what the entry is; leave what the model does to its user.",
		Source:  "OWASP MCP03 (tool poisoning)",
		Gateway: "Where the gateway keeps pins, it holds prompts and skills back until somebody has approved them.",
		Server: func(s *Server, say Say) {
			for _, list := range []struct {
				what    string
				entries []json.RawMessage
			}{{"prompt", s.Prompts}, {"resource", s.Resources}, {"template", s.Templates}} {
				for _, raw := range list.entries {
					if what := entryPoison(raw); what != "" {
						say(here, "the %s %s %s", list.what, quote(entryName(raw)), what)
					}
				}
			}
			if s.Live == nil {
				return
			}
			for _, r := range s.Live.Texts {
				if p := answerPoison(r.Result); r.Method == "prompts/get" && p != nil {
					say(here, "what the prompt %s answers gives the model orders: %s", quote(r.Name), p)
				}
			}
		},
	},
	{
		ID: "X026", Severity: Warning, Title: "instructions to the model in a result",
		Why:     "What a tool or a resource answers is read by the same model. Where the server relays what strangers wrote it may be theirs; the model obeys all the same.",
		Advice:  "Answer with data. Where the text is a stranger's, say so in the tool's openWorldHint and in the result.",
		Source:  "OWASP MCP06; \"advanced tool poisoning\" (poisoned outputs)",
		Gateway: "Results reach the model marked as data, never as a system message.",
		Live: func(_ *Server, l *Live, say Say) {
			told := map[*Tool]bool{}
			for _, c := range l.Calls {
				if p := calledPoison(c); p != nil && !told[c.Tool] {
					told[c.Tool] = true
					say(of(c, ""), "the result gives the model orders: %s", p)
				}
			}
			for _, r := range l.Texts {
				if p := answerPoison(r.Result); r.Method == "resources/read" && p != nil {
					say(here, "the resource %s gives the model orders: %s", quote(r.Name), p)
				}
			}
		},
	},
}

// A poisoned text is what was found, and where.
type poisoned struct {
	*poison.Finding
	pointer string
}

// String says what was found in one line.
func (p *poisoned) String() string {
	text := fmt.Sprintf("%s (%s", quote(p.Excerpt), strings.Join(p.Signs, "; "))
	if p.Disguise != "" {
		text += "; hidden by " + p.Disguise
	}
	return text + ")"
}

func judgePassages(passages []passage) *poisoned {
	texts := make([]poison.Text, len(passages))
	for i, p := range passages {
		texts[i].Text = p.text
		if p.name {
			texts[i].Place = poison.Name
		}
	}
	f := poison.Judge(texts)
	if f == nil {
		return nil
	}
	return &poisoned{f, passages[f.Index].pointer}
}

// entryPoison says what is poisonous or hidden in an entry of a list; empty for nothing.
func entryPoison(raw json.RawMessage) string {
	n, err := schema.Parse(raw)
	if err != nil {
		return ""
	}
	var passages []passage
	readTexts(n, "", 0, func(p passage) { passages = append(passages, p) })
	if p := judgePassages(passages); p != nil {
		return "gives the model orders: " + p.String()
	}
	for _, p := range passages {
		if p.hidden != "" {
			return "hides something: " + p.hidden
		}
	}
	return ""
}

// entryName returns what an entry is called, or its address.
func entryName(raw json.RawMessage) string {
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return ""
	}
	for _, key := range []string{"name", "uri", "uriTemplate"} {
		if name, _ := rawjson.String(o.Get(key)); name != "" {
			return name
		}
	}
	return ""
}

// calledPoison judges the result of a call, or the words of its error. Words that were
// sent are the linter's own.
func calledPoison(c Called) *poisoned {
	if c.failed() {
		return judgeTexts([]string{c.Message})
	}
	return answerPoison(c.Result)
}

// saidAnyway is where each modern result repeats who the server is; X023 judges that.
const saidAnyway = "/_meta/io.modelcontextprotocol~1serverInfo/"

// answerPoison judges all texts of a result.
func answerPoison(result json.RawMessage) *poisoned {
	n, err := schema.Parse(result)
	if result == nil || err != nil {
		return nil
	}
	var texts []string
	readTexts(n, "", 0, func(p passage) {
		if !p.name && !strings.HasPrefix(p.pointer, saidAnyway) {
			texts = append(texts, p.text)
		}
	})
	return judgeTexts(texts)
}

// longestAnswer is how much of an answer is judged, in bytes.
const longestAnswer = 1 << 20

func judgeTexts(texts []string) *poisoned {
	left := longestAnswer
	var all []poison.Text
	for _, text := range texts {
		text = text[:min(len(text), left)]
		left -= len(text)
		all = append(all, poison.Text{Text: text, Place: poison.Result})
	}
	if f := poison.Judge(all); f != nil {
		return &poisoned{f, ""}
	}
	return nil
}

// read asks for what the first prompts and resources say, which changes nothing.
func (w *watcher) read() {
	for _, raw := range w.server.Prompts[:min(len(w.server.Prompts), mostRead)] {
		name := entryName(raw)
		arguments, invented := promptArguments(raw)
		w.readOne("prompts/get", name, invented, params("name", string(rawjson.Quote(name)), "arguments", string(arguments)))
	}
	for _, raw := range w.server.Resources[:min(len(w.server.Resources), mostRead)] {
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		if uri, _ := rawjson.String(o.Get("uri")); uri != "" {
			w.readOne("resources/read", uri, false, params("uri", string(o.Get("uri"))))
		}
	}
}

// mostRead is how many prompts and how many resources are read.
const mostRead = 8

func (w *watcher) readOne(method, name string, invented bool, params rawjson.Object) {
	if w.over() || name == "" {
		return
	}
	w.live.Texts = append(w.live.Texts, Read{name, invented, w.ask(w.main, method, params)})
}

// promptArguments fills in what a prompt wants: the example that an argument's
// description gives, or else a value that is invented.
func promptArguments(raw json.RawMessage) (arguments json.RawMessage, invented bool) {
	var filled rawjson.Object
	n, err := schema.Parse(raw)
	if err != nil {
		return json.RawMessage(`{}`), false
	}
	for _, a := range n.Get("arguments").Items() {
		if name := a.Get("name").Text(); name != "" && a.Get("required").IsBool(true) {
			value := "example"
			if m := suchAs.FindStringSubmatch(a.Get("description").Text()); m != nil {
				value = m[1]
			} else {
				invented = true
			}
			filled.Set(name, rawjson.Quote(value))
		}
	}
	return filled.Bytes(), invented
}

// suchAs is an example of one word in a description.
var suchAs = pattern.Of(`(?i)\b(?:such as|e\.g\.,?|for example,?)\s+["'“` + "`" + `]?([\p{L}\p{N}][^\s"'”` + "`" + `,;:()]*[\p{L}\p{N}])`)
