package rehearsal

import (
	"fmt"
	"strings"
)

// round is what one message of the model says and calls.
type round struct {
	say   []string
	calls []directive
}

type directive struct {
	tool      string // a name, or a part of one
	arguments string // verbatim; "{}" where the line gave none
}

// parseDirectives reads the script in a user message. It is empty for a
// message without directives.
func parseDirectives(text string) []round {
	var script []round
	var now round
	flush := func() {
		// Text alone would end the turn, so unless it comes last it opens the
		// next round instead.
		if len(now.calls) > 0 {
			script, now = append(script, now), round{}
		}
	}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch {
		case word == "SAY":
			flush() // what is said after calls follows their results
			now.say = append(now.say, rest)
		case word == "CALL" && rest != "":
			name, arguments, _ := strings.Cut(rest, " ")
			if at := strings.IndexByte(name, '{'); at > 0 { // CALL name{"a":1}
				name, arguments = rest[:at], rest[at:]
			}
			if arguments = strings.TrimSpace(arguments); arguments == "" {
				arguments = "{}"
			}
			now.calls = append(now.calls, directive{name, arguments})
		case word == "THEN" && rest == "":
			flush()
		}
	}
	if len(now.say)+len(now.calls) > 0 {
		script = append(script, now)
	}
	return script
}

// oneByOne gives each call a round of its own.
func oneByOne(script []round) []round {
	var spread []round
	for _, r := range script {
		if len(r.calls) < 2 {
			spread = append(spread, r)
			continue
		}
		for i := range r.calls {
			one := round{calls: r.calls[i : i+1]}
			if i == 0 {
				one.say = r.say
			}
			spread = append(spread, one)
		}
	}
	return spread
}

// find resolves the name in a directive: the name itself, the name without
// the prefix that a gateway put before it, either in any case, or a part of
// one name only. The complaint is a sentence that names the candidates.
func find(name string, tools []tool) (found *tool, complaint string) {
	lower := strings.ToLower(name)
	for _, fits := range []func(string) bool{
		func(t string) bool { return t == name },
		func(t string) bool { return strings.HasSuffix(t, "__"+name) },
		func(t string) bool {
			t = strings.ToLower(t)
			return t == lower || strings.HasSuffix(t, "__"+lower)
		},
		func(t string) bool { return strings.Contains(strings.ToLower(t), lower) },
	} {
		var all []*tool
		for i := range tools {
			if fits(tools[i].name) {
				all = append(all, &tools[i])
			}
		}
		if len(all) == 1 {
			return all[0], ""
		}
		if len(all) > 1 {
			return nil, fmt.Sprintf("CALL %s fits several tools: %s. Write more of the name.", name, names(all))
		}
	}
	if len(tools) == 0 {
		return nil, fmt.Sprintf("CALL %s fits no tool: the request offers none.", name)
	}
	var all []*tool
	for i := range tools {
		all = append(all, &tools[i])
	}
	return nil, fmt.Sprintf("CALL %s fits no tool. The request offers: %s.", name, names(all))
}

// names lists tools for people, the first twenty of them.
func names(tools []*tool) string {
	const most = 20
	var b strings.Builder
	for i, t := range tools {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(tools)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.name)
	}
	return b.String()
}
