package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

const (
	specBasic = "MCP 2026-07-28, Basic; JSON-RPC 2.0"
	specPages = "MCP 2026-07-28, Pagination"
)

// protocolRules hold for servers of both eras.
var protocolRules = []Rule{
	{
		ID: "P001", Severity: Error, Title: "no connection",
		Why:     "A server that does not start, does not answer or speaks no known version is of no use to anybody.",
		Advice:  "Try it by hand: start the same command, or go to the same address, and send an initialize request.",
		Source:  "MCP, Lifecycle and versioning",
		Gateway: "The gateway goes on without the server and tries again with growing pauses.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.Failure == nil || l.Web != nil && l.Web.TLS != "" || l.protected() || l.Flooded != "" {
				return
			}
			why := explainFailure(l.Failure)
			if _, _, refused := unauthorized(l.Failure); refused && l.Web != nil && l.Web.Token {
				why = "it does not take the credentials that it was given"
			}
			say(here, "%s", why+lastWords(l))
		},
	},
	{
		ID: "P005", Severity: Error, Title: "unknown methods are not refused as such",
		Why:    "Clients find out by -32601 what a server does not know, the era of its protocol among it.",
		Advice: "Answer -32601 to every method that you do not know; over HTTP in the modern era with status 404.",
		Source: specBasic,
		Live: func(_ *Server, l *Live, say Say) {
			a, ok := l.Answers[askUnknown]
			switch {
			case !ok:
			case !(a.failed() && a.Code == -32601), l.Era == modern && l.Web != nil && a.Status < 400:
				say(here, "an unknown method got %s", a.says())
			}
			if a := l.Answers[askEnvelope]; a.Result != nil {
				say(here, "initialize, which is no method of the modern era, was answered to a client that speaks it")
			}
			if a, ok := l.Answers[askPing]; ok && a.failed() && a.Code == -32601 {
				say(here, "ping, which every server of the legacy era answers, got %s", a.says())
			}
		},
	},
	{
		ID: "P008", Severity: Error, Title: "error code that is reserved for something else",
		Why:    "Clients act on -32020 to -32099: they change headers, or versions, or ask again.",
		Advice: "Use the codes of the specification for what it says, and -32603 or an isError result for everything else.",
		Source: "MCP 2026-07-28, Error codes",
		Live: func(_ *Server, l *Live, say Say) {
			for code, text := range l.Errors {
				if l.Era == modern && code <= -32020 && code >= -32099 && (code < -32022 || code > -32020) {
					say(here, "the code %d came with %s", code, quote(text))
				}
			}
		},
	},
	{
		ID: "P009", Severity: Warning, Title: "tools in another order each time",
		Why:     "Model providers cache the beginning of a prompt; a list in another order makes every request pay in full.",
		Advice:  "Sort the tools, or keep the order of registration; do not range over a map.",
		Source:  specTools + " (deterministic order)",
		Gateway: "The gateway sorts the tools that it offers.",
		Live: func(_ *Server, l *Live, say Say) {
			if a, b, ok := firstDifference(l.Lists); ok && sameSet(a.Items, b.Items) {
				say(here, "two answers to tools/list have the same tools in different order")
			}
		},
	},
	{
		ID: "P010", Severity: Warning, Title: "tools that differ from one request to the next",
		Why:    "What was approved and planned with is not what is called; lists may vary by authorization, and not by connection or time alone.",
		Advice: "Answer the same list, and announce changes with notifications/tools/list_changed.",
		Source: specTools,
		Live: func(_ *Server, l *Live, say Say) {
			if a, b, ok := firstDifference(l.Lists); ok && !l.Announced && !sameSet(a.Items, b.Items) {
				say(here, "two answers to tools/list have different tools or definitions (%d and %d entries)%s", len(a.Items), len(b.Items), firstChange(a.Items, b.Items))
			}
		},
	},
	{
		ID: "P015", Severity: Error, Title: "something on standard output that is no message",
		Why:     "Standard output is the wire; a banner or a log line there breaks clients, some of them at the first byte.",
		Advice:  "Write logs to standard error.",
		Source:  "MCP, stdio transport",
		Gateway: "The gateway skips such lines.",
		Live: func(_ *Server, l *Live, say Say) {
			if n := len(l.Stray); n > 0 {
				say(here, "%s, the first one %s", count(n, "line"), l.Stray[0])
			}
		},
	},
	{
		ID: "P018", Severity: Warning, Title: "slow to start or to list",
		Why:     "Clients wait for every server before they show anything, and give up after some seconds.",
		Advice:  "Start at once and do heavy work with the first call; keep the list in memory.",
		Source:  ours,
		Gateway: "The gateway keeps the last list and does not wait for slow servers.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.Failure == nil && !l.Busy && l.Startup > 10*time.Second {
				say(here, "the handshake took %v", l.Startup.Round(100*time.Millisecond))
			}
			var slowest, fastest time.Duration
			for i, list := range l.Lists {
				slowest = max(slowest, list.Took)
				if fastest = min(fastest, list.Took); i == 0 {
					fastest = list.Took
				}
			}
			if len(l.Lists) > 1 && !l.Busy && fastest > 500*time.Millisecond && l.Lists[0].Endless == "" {
				say(here, "tools/list took between %v and %v", fastest.Round(time.Millisecond), slowest.Round(time.Millisecond))
			}
		},
	},
	{
		ID: "P019", Severity: Error, Title: "capability that is declared and not there",
		Why:    "Clients ask for what was declared, and show an error to people who did nothing wrong.",
		Advice: "Declare only what you answer.",
		Source: "MCP, Capability negotiation",
		Live: func(_ *Server, l *Live, say Say) {
			for _, list := range l.Lists {
				if list.Err != nil && !l.misanswered(list.Err) {
					say(here, "tools/list failed: %s", list.Err)
					break
				}
			}
			for _, method := range []string{"prompts/list", "resources/list"} {
				if list, ok := l.Others[method]; ok && list.Err != nil && !l.misanswered(list.Err) {
					say(here, "%s failed: %s", method, list.Err)
				}
			}
		},
	},
	{
		ID: "P020", Severity: Warning, Title: "unknown tools are not refused as the protocol says",
		Why:    "A call of a tool that is not there is a mistake of the client; as a result of a tool it reads as if the tool had run.",
		Advice: "Answer the error -32602.",
		Source: specTools + " (error handling)",
		Live: answered(askUnknownTool, func(a Answer, say Say) {
			if !(a.failed() && (a.Code == -32602 || a.Code == -32601)) {
				if a.Result != nil && isError(a.Result) {
					say(here, "a call of an unknown tool got a result with isError, not the error -32602")
				} else {
					say(here, "a call of an unknown tool got %s", a.says())
				}
			}
		}),
	},
	{
		ID: "P021", Severity: Info, Title: "no answer to what is not JSON",
		Why:    "Without -32700 the other side waits until its time is over.",
		Advice: "Answer the error -32700 with the id null.",
		Source: "JSON-RPC 2.0, 5.1",
		Live: func(_ *Server, l *Live, say Say) {
			a, ok := l.Answers[askMalformed]
			if ok && !(a.failed() && a.Code == -32700) && a.Status/100 != 4 && l.Rough.Died == "" {
				say(here, "a message that is not JSON got %s", a.says())
			}
		},
	},
	{
		ID: "P022", Severity: Error, Title: "answers that nobody asked for",
		Why:    "A client that believes them answers one call with the result of another.",
		Advice: "Answer each request once, with its own id, to the one who asked.",
		Source: "JSON-RPC 2.0, 5",
		Live: func(_ *Server, l *Live, say Say) {
			if len(l.Odd) > 0 {
				say(here, "%s", l.Odd[0])
			}
		},
	},
	{
		ID: "P037", Severity: Error, Title: "answers that are not JSON-RPC 2.0",
		Why:     "Clients that check messages drop an answer without jsonrpc or id, one with a result and an error, and an error whose code is no number; then they wait for it until their time is over.",
		Advice:  "Send jsonrpc \"2.0\", the id of the request, and either a result or an error with an integer code.",
		Source:  "JSON-RPC 2.0, 5 and 5.1; " + sdk,
		Gateway: "The gateway reads such answers where what they mean is certain.",
		Live: func(_ *Server, l *Live, say Say) {
			if len(l.Malformed) > 0 {
				say(here, "%s", l.Malformed[0])
			}
		},
	},
	{
		ID: "P023", Severity: Error, Title: "more than anybody can read",
		Why:     "A message of many megabytes exhausts the memory of clients that have no limit, and is refused by those that have one.",
		Advice:  "Send pages, or a resource link.",
		Source:  "CWE-770; " + ours,
		Gateway: "The gateway stops reading at 16 MiB and fails the one call.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.Flooded != "" {
				say(here, "the server sent %s", l.Flooded)
			}
		},
	},
	{
		ID: "O007", Severity: Error, Title: "list that never ends",
		Why:     "Clients follow the cursor until there is none; this one keeps them at it, or makes them give up without a tool.",
		Advice:  "Leave nextCursor out on the last page, and never name the same cursor twice.",
		Source:  specPages,
		Gateway: "The gateway stops at a repeated cursor and after 1,000 pages.",
		Live: func(_ *Server, l *Live, say Say) {
			for _, list := range l.Lists {
				if list.Endless != "" {
					say(here, "tools/list: %s", list.Endless)
					return
				}
			}
			for method, list := range l.Others {
				if list.Endless != "" {
					say(here, "%s: %s", method, list.Endless)
				}
			}
		},
	},
	{
		ID: "O008", Severity: Warning, Title: "made-up cursors are accepted",
		Why:    "A client with an old cursor gets the first page again and takes it for the next.",
		Advice: "Answer the error -32602.",
		Source: specPages,
		Live: answered(askCursor, func(a Answer, say Say) {
			if !a.failed() && a.Status < 400 {
				say(here, "a cursor that was never given out got %s", a.says())
			}
		}),
	},
	{
		ID: "T003", Severity: Error, Title: "missing resource that is not refused",
		Why:    "Without an error an empty resource and one that does not exist are the same to the reader.",
		Advice: "Answer the error -32602, or -32002 to legacy clients.",
		Source: "MCP 2026-07-28, Server features: Resources",
		Live: answered(askResource, func(a Answer, say Say) {
			if !(a.failed() && (a.Code == -32602 || a.Code == -32002)) {
				say(here, "a resource that does not exist got %s", a.says())
			}
		}),
	},
}

const modern = "modern"

// lastWords are the last line that a process wrote before it was gone.
func lastWords(l *Live) string {
	// Programs end with an error, and some with a stack or a dump behind it.
	last := ""
	for _, line := range slices.Backward(strings.Split(l.Stderr, "\n")) {
		line = strings.TrimSpace(line)
		if last == "" && wordPattern.MatchString(line) {
			last = line
		}
		if errorLine.MatchString(line) && !strings.HasPrefix(line, "at ") {
			last = line
			break
		}
	}
	if last == "" {
		return ""
	}
	return "; on standard error: " + quote(last)
}

var errorLine = pattern.Of(`(?i)error|not found|cannot|failed|fatal|panic`)

// firstDifference returns the first answer to tools/list and one that differs.
func firstDifference(lists []Listing) (a, b Listing, ok bool) {
	for i, list := range lists {
		if list.Err != nil || list.Endless != "" {
			return a, b, false
		}
		if i > 0 && !slices.EqualFunc(lists[0].Items, list.Items, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			return lists[0], list, true
		}
	}
	return a, b, false
}

// sameSet reports whether two lists hold the same entries, in any order and
// whatever the order of their members.
func sameSet(a, b []json.RawMessage) bool {
	return slices.Equal(digests(a), digests(b))
}

func digests(items []json.RawMessage) []string {
	keys := make([]string, len(items))
	for i, item := range items {
		var value any
		keys[i] = string(item)
		if json.Unmarshal(item, &value) == nil {
			b, _ := json.Marshal(value) // of a value that was just read
			keys[i] = string(b)
		}
	}
	slices.Sort(keys)
	return keys
}

func isError(result json.RawMessage) bool {
	o, err := rawjson.ParseObject(result)
	return err == nil && string(o.Get("isError")) == "true"
}

// firstChange says how the first tool that two lists define differently changed;
// empty where they have other tools.
func firstChange(was, is []json.RawMessage) string {
	now := map[string]json.RawMessage{}
	for _, item := range is {
		now[nameOf(item)] = item
	}
	for _, item := range was {
		name := nameOf(item)
		if other, ok := now[name]; ok && name != "" {
			if changes := pin.Changes(item, other); len(changes) > 0 {
				return fmt.Sprintf("; of %s %s", quote(name), changes[0])
			}
		}
	}
	return ""
}

func nameOf(tool json.RawMessage) string {
	o, err := rawjson.ParseObject(tool)
	if err != nil {
		return ""
	}
	name, _ := rawjson.String(o.Get("name"))
	return name
}
