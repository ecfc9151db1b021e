package lint

import (
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

const seedErrors = "MCP server best practices: error handling"

// errorRules look at what comes of calls that should fail.
var errorRules = []Rule{
	{
		ID: "E001", Severity: Error, Title: "bad arguments that the model does not learn about",
		Why:     "Clients show errors of the protocol to nobody, and a success to the model; only a result with isError lets it correct itself.",
		Advice:  "Answer a result with isError and say what is wrong with which argument.",
		Source:  specTools + " (SEP-1303)",
		Gateway: "The gateway judges arguments itself and turns such errors into words for the model.",
		Live: func(_ *Server, l *Live, say Say) {
			for _, c := range l.Calls {
				if (c.Probe == CallMissing || c.Probe == CallWrong) && c.failed() && !c.unnamed() {
					say(of(c, ""), "a call %s got the error %d of the protocol instead of a result with isError", c.fault(), c.Code)
					return
				}
				if c.Probe == CallWrong && c.Result != nil && !isError(c.Result) && errorText.MatchString(strings.Join(readResult(c.Result).texts, "\n")) {
					say(of(c, ""), "a call %s got a success whose text is an error", c.fault())
					return
				}
			}
		},
	},
	{
		ID: "E002", Severity: Warning, Title: "error that does not help",
		Why:    "A model that reads which argument is wrong, and how, does it right the second time.",
		Advice: "Name the argument and what would be right.",
		Source: seedErrors,
		Live: eachFailure(func(c Called, text string, say Say) {
			if (c.Probe == CallMissing || c.Probe == CallWrong) && !c.unnamed() && !noKey.MatchString(text) && (c.Result == nil || readResult(c.Result).bad == "") && !strings.Contains(strings.ToLower(text), strings.ToLower(c.Field)) && !helpful.MatchString(text) {
				say(of(c, ""), "a call %s got %s", c.fault(), quote(text))
			}
		}),
	},
	{
		ID: "E003", Severity: Error, Title: "error that shows the inside of the server",
		Why:     "Stack traces, file paths, queries and addresses help attackers and confuse models.",
		Advice:  "Log the details under an id, and answer what the caller can do.",
		Source:  "CWE-209; " + seedErrors,
		Gateway: "The text of a tool's own error reaches the model as it is.",
		Live: eachFailure(func(c Called, text string, say Say) {
			if m := leaked(text); m != "" {
				say(of(c, ""), "the error of a call %s holds %s", c.fault(), quote(m))
			}
		}),
	},
	{
		ID: "E004", Severity: Error, Title: "a required argument may be missing",
		Why:     "What the tool does without it nobody said, and the model believes that it was understood.",
		Advice:  "Check arguments by the schema, or do not call the argument required.",
		Source:  seedInput,
		Gateway: "The gateway judges arguments by the schema before it calls.",
		Live: eachProbe(CallMissing, func(c Called, say Say) {
			if c.succeeded() {
				say(of(c, "/inputSchema/required"), "a call without %s succeeded", quote(c.Field))
			}
		}),
	},
	{
		ID: "E005", Severity: Warning, Title: "an unknown argument is dropped in silence",
		Why:     "The schema says that there are no other arguments, and the server takes them; a misspelt one is lost.",
		Advice:  "Refuse arguments that the schema does not have.",
		Source:  seedInput,
		Gateway: "The gateway judges arguments by the schema before it calls.",
		Live: eachProbe(CallUnknown, func(c Called, say Say) {
			if c.succeeded() {
				say(of(c, "/inputSchema/additionalProperties"), "a call with an argument that does not exist succeeded")
			}
		}),
	},
	{
		ID: "E006", Severity: Error, Title: "bad input ends the server",
		Why:     "One odd call of one model takes the server away from everybody.",
		Advice:  "Catch errors of each request by itself, and check arguments before using them.",
		Source:  "CVE-2026-47427; CWE-248",
		Gateway: "The gateway judges arguments first, and starts the server again.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.Rough.Died != "" && l.Rough.Gone {
				say(here, "after %s %s", l.Rough.Died, l.Rough.Why)
			}
		},
	},
	{
		ID: "E008", Severity: Error, Title: "an argument of the wrong type is accepted",
		Why:     "What the tool makes of it nobody said.",
		Advice:  "Check arguments by the schema.",
		Source:  seedInput,
		Gateway: "The gateway judges arguments by the schema before it calls.",
		Live: eachProbe(CallWrong, func(c Called, say Say) {
			if c.succeeded() && !errorText.MatchString(strings.Join(readResult(c.Result).texts, "\n")) {
				say(of(c, "/inputSchema"+schema.Pointer("properties", c.Field)), "a call with %s of the wrong type succeeded", quote(c.Field))
			}
		}),
	},
}

// reliabilityRules look at how a server holds up.
var reliabilityRules = []Rule{
	{
		ID: "R001", Severity: Warning, Title: "no answer in time",
		Why:     "Clients give up after a while, and then nobody knows whether the tool ran.",
		Advice:  "Send progress, or run long work as a task.",
		Source:  "MCP 2026-07-28, Progress and tasks",
		Gateway: "The gateway tells the model that the outcome is unknown, and repeats only what provably did not run.",
		Live: func(_ *Server, l *Live, say Say) {
			for _, c := range l.Calls {
				if c.Err == errSilent && c.Took > time.Second {
					say(of(c, ""), "a call %s got no answer in %v", c.fault(), c.Took.Round(time.Second))
					return
				}
			}
		},
	},
	{
		ID: "R002", Severity: Warning, Title: "many requests at once are too much",
		Why:     "Models call several tools in one message, and several users share a server.",
		Advice:  "Answer requests side by side.",
		Source:  ours,
		Gateway: "The gateway sends a server at most max_in_flight calls at a time.",
		Live:    checkCrowd,
	},
	{
		ID: "R009", Severity: Error, Title: "calls at the same time disturb each other",
		Why:     "Models call several tools in one message; what is shared between calls without a lock answers one of them with what belongs to another.",
		Advice:  "Keep the state of a call in the call, and lock what calls share.",
		Source:  "MCP, Basic: requests may be in flight at the same time; " + ours,
		Gateway: "The gateway runs calls of tools that only read side by side; max_in_flight: 1 keeps a server from it.",
		Live:    checkTogether,
	},
	{
		ID: "R003", Severity: Error, Title: "one bad request ends the session",
		Why:     "Every later call fails, and most clients show the user an error until they are restarted.",
		Advice:  "Answer a bad request with an error, and go on.",
		Source:  "JSON-RPC 2.0; measured on several SDKs",
		Gateway: "The gateway makes a new session.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.Rough.Died != "" && !l.Rough.Gone {
				say(here, "after %s, %s", l.Rough.Died, l.Rough.Why)
			}
		},
	},
	{
		ID: "R008", Severity: Info, Title: "long call without progress",
		Why:    "After some seconds people believe that it hangs, and stop it.",
		Advice: "Send notifications/progress when the request has a progressToken.",
		Source: "MCP server best practices: progress",
		Live: func(_ *Server, l *Live, say Say) {
			for _, c := range l.Calls {
				if c.Result != nil && !l.Busy && c.Took > 5*time.Second && c.Progress == 0 {
					say(of(c, ""), "a call took %v without a sign of progress", c.Took.Round(100*time.Millisecond))
					return
				}
			}
		},
	},
	{
		ID: "P017", Severity: Warning, Title: "work that cannot be cancelled",
		Why:    "The person who stopped it has gone on to something else, and the server still pays for the work, and may still change something.",
		Advice: "Give each call a context that notifications/cancelled for its id ends, and send no answer after that.",
		Source: "MCP, Basic: Cancellation",
		Live: func(_ *Server, l *Live, say Say) {
			c := l.Cancelled
			if c != nil && !l.Busy && c.Result != nil && c.Took > 2*c.After && c.Took > c.Usual*3/4 {
				round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
				say(At{Tool: c.Tool.Name}, "a call that was cancelled after %v was answered after %v; without that it took %v", round(c.After), round(c.Took), round(c.Usual))
			}
		},
	},
	{
		ID: "X020", Severity: Warning, Title: "arguments stand in the logs",
		Why:     "Logs are kept longer and read by more people than conversations.",
		Advice:  "Log the tool and the outcome, never arguments or results.",
		Source:  "OWASP MCP01",
		Gateway: "The gateway never logs arguments.",
		Live: func(_ *Server, l *Live, say Say) {
			for where, text := range map[string]string{"standard error": l.Stderr, "its log messages": l.Logs} {
				if strings.Contains(text, canary) {
					say(here, "an argument was written to %s", where)
					return
				}
			}
		},
	},
}

// fault says what is wrong with a call.
func (c *Called) fault() string {
	switch c.Probe {
	case CallMissing:
		return "without " + quote(c.Field)
	case CallWrong:
		return "with " + quote(c.Field) + " of the wrong type"
	case CallUnknown:
		return "with an argument that does not exist"
	}
	return "with " + shorten(c.Arguments)
}

// succeeded reports whether the tool ran and says that all is well.
func (c *Called) succeeded() bool {
	if c.Result == nil {
		return false
	}
	r := readResult(c.Result)
	return !r.failed && !r.question && r.bad == ""
}

// leaked returns what of the inside of a server stands in a text; empty for nothing. An
// example of what an argument may be is none of it.
func leaked(text string) string {
	for {
		at := inside.FindStringIndex(text)
		if at == nil {
			return ""
		}
		if !asExample.MatchString(text[:at[0]]) {
			return text[at[0]:at[1]]
		}
		text = text[at[1]:]
	}
}

var (
	asExample = pattern.Of("(?i)\\b(such as|e\\.g\\.,?|for example,?|like|begins? with|starts? with)\\s*[\"'(`]*$")
	errorText = pattern.Of(`(?i)^\s*\W{0,3}(error|failed|exception|invalid|traceback)\b`)
	helpful   = pattern.Of(`(?i)\b(required|missing|expected|must be|should be|needs? to be|not a valid|use)\b`)
	inside    = pattern.Of(strings.Join([]string{
		`Traceback \(most recent call last\)`,
		`(?m)^\s+at [\w.$<>\[\] ]+ \(.*:\d+:\d+\)`,
		`(?m)^\s+at (async )?(file|node):.*:\d+`,
		`(?m)^\s+at [\w.$]+\([\w.]+\.java:\d+\)`,
		`goroutine \d+ \[`,
		`\bpanic: `,
		`File "[^"]+", line \d+`,
		`/(home|Users|root)/[\w.-]+/[\w./-]+`,
		`[A-Z]:\\Users\\[\w.-]+`,
		`/node_modules/|/site-packages/|/dist-packages/`,
		// Statements, and not "Select one from the list" or "Update it where it was made".
		`\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\s.{1,80}\s(FROM|WHERE|SET|VALUES)\s`,
		`(?i)\bselect\s+\*\s+from\s`,
		`(?i)\b(select\s.{1,80}\sfrom|delete\s+from)\s+[\w."\x60\[\]]+\s+where\s+[\w."\x60\[\]]+\s*(=|<|>|in\b|like\b|is\b)`,
		`(?i)\bselect\s.{1,80}\sfrom\s.{1,80}\swhere\s+[\w."\x60\[\]]+\s*[=<>]`,
		`(?i)\bupdate\s+[\w."\x60\[\]]+\s+set\s+[\w."\x60\[\]]+\s*=`,
		`(?i)\binsert\s+into\s+[\w."\x60\[\]]+\s*(\(|values\b)`,
		`(?i)\b(postgres(ql)?|mysql|mongodb|redis|amqp)://\S+`,
		`ECONNREFUSED \d+\.\d+\.\d+\.\d+`,
	}, "|"))
)

func checkCrowd(_ *Server, l *Live, say Say) {
	if len(l.Crowd) == 0 || len(l.Lists) == 0 {
		return
	}
	failed, slowest := 0, time.Duration(0)
	for _, a := range l.Crowd {
		if a.Result == nil {
			failed++
		}
		slowest = max(slowest, a.Took)
	}
	single := l.Lists[0].Took
	for _, list := range l.Lists {
		single = min(single, list.Took)
	}
	switch {
	case failed > 0:
		say(here, "of %d requests at once %d failed", len(l.Crowd), failed)
	case slowest > time.Second && slowest > 5*single && single > 0 && l.Lists[0].Endless == "":
		say(here, "of %d requests at once the slowest took %v, a single one takes %v", len(l.Crowd), slowest.Round(time.Millisecond), single.Round(time.Millisecond))
	}
}
