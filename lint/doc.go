// Package lint audits MCP servers: it tells the author of a server what will
// hurt its users, before it does.
//
// It works offline and needs no model. [Run] takes one or more targets: a saved
// answer to tools/list, a program to start, an address, or a pair of pipes.
// Rules are values ([Rule]) of four kinds: those that look at one tool's
// definition, at one server, at a whole set of servers as one model would have
// them, and at how a running server behaves:
//
//	report, err := lint.Run(ctx, []lint.Target{{Label: "notes", List: saved}}, lint.Options{})
//	for _, f := range report.Findings {
//		fmt.Println(f.Rule, f.Tool, f.Message)
//	}
//
// # What a running server is put to
//
// A live target is watched on the wire: what the tolerant client of package mcp
// forgives is still seen. [ProbeSafe], the default, sends requests that no
// well-made server minds (unknown methods, bad cursors, a wrong header) and
// calls only tools that say they only read and whose names agree. It never makes
// up an identifier: a tool that needs one is called without, to see its error.
// [ProbeAll] calls the others, too. Everything stays within a budget of time,
// calls and bytes, and [Live.Log] tells what was sent. [Options.Found] is told of findings as
// they come: a server that hangs is waited for, and its definitions are judged by then.
//
// # Rules of one's own
//
// A rule needs an id, words and one check. Add it to [Rules] in Options.Rules:
//
//	own := lint.Rule{ID: "Z001", Severity: lint.Warning, Title: "…", Tool: func(t *lint.Tool, say lint.Say) {
//		if !strings.HasPrefix(t.Name, "acme_") {
//			say(lint.At{}, "the name %q does not begin with acme_", t.Name)
//		}
//	}}
//	lint.Run(ctx, targets, lint.Options{Rules: append(lint.Rules(), own)})
//
// # What is stable
//
// [Run], [Target], [Options], [Report], [Finding] and [Suppression] keep their form, and the
// id of a rule its meaning. What rules of one's own are given ([Server], [Tool], [Live],
// [Listing], [Answer] and the like) gains fields as more is looked at, and loses none
// without a word in CHANGELOG. Which findings a server gets may change with each release.
package lint
