package rehearsal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reply is one message of the model.
type reply struct {
	reasoning string
	content   string
	calls     []call
	finish    string
	tokens    int
}

// turn is what happened since the user spoke last.
type turn struct {
	text    string // of the user
	rounds  []message
	results []outcome
}

// outcome is a result with the name and the arguments of its call.
type outcome struct {
	tool, arguments string
	text            string
	attached        bool
}

// turn finds the last message of the user and what followed it. A user
// message with a picture straight after results is a part of these: it is how
// pictures that a tool returned are handed over.
func (r *request) turn() turn {
	start := -1
	for i, m := range r.messages {
		pictures := m.attached && i > 0 && start >= 0 &&
			(r.messages[i-1].role == "tool" || r.messages[i-1].attached && i-1 > start)
		if m.role == "user" && !pictures {
			start = i
		}
	}
	var t turn
	if start >= 0 {
		t.text = r.messages[start].text
	}
	made := make(map[string]call)
	for _, m := range r.messages[start+1:] {
		switch {
		case m.role == "assistant" && len(m.calls) > 0:
			t.rounds = append(t.rounds, m)
			for _, c := range m.calls {
				made[c.id] = c
			}
		case m.role == "tool":
			c := made[m.callID]
			t.results = append(t.results, outcome{c.name, c.arguments, m.text, m.attached})
		case m.role == "function":
			t.results = append(t.results, outcome{m.name, made[""].arguments, m.text, m.attached})
		case m.role == "user" && m.attached && len(t.results) > 0:
			t.results[len(t.results)-1].attached = true
		}
	}
	return t
}

// decide is the whole of the model's thinking.
func (r *request) decide() reply {
	t := r.turn()
	forced := r.choice == "required" && len(t.results) == 0
	script := parseDirectives(t.text)
	if !r.parallel {
		script = oneByOne(script)
	}
	if len(script) > 0 {
		if answer, ok := r.play(script, len(t.rounds), t, forced); ok {
			return answer
		}
	}
	chinese := isChinese(t.text)
	if len(t.results) > 0 {
		return reply{content: r.shape(answer(t.results, chinese), t)}
	}
	if calls, question := r.choose(t.text, forced); calls != nil {
		return reply{calls: calls}
	} else if question != "" {
		return reply{content: r.shape(question, t)}
	}
	return reply{content: r.shape(introduce(t.text, r.offered(), chinese), t)}
}

// play follows the script. It has no answer where the script has ended, or
// where the request forces a call and the script has none now.
func (r *request) play(script []round, at int, t turn, forced bool) (reply, bool) {
	if last := len(script) - 1; at > last {
		if len(script[last].calls) > 0 {
			return reply{}, false
		}
		at = last
	}
	now := script[at]
	text := strings.Join(now.say, "\n")
	if len(now.calls) == 0 {
		return reply{content: r.shape(text, t)}, !forced
	}
	tools := r.offered()
	if len(tools) == 0 && len(t.results) > 0 {
		return reply{}, false // the rounds were used up: answer with what there is
	}
	out := reply{content: text}
	for _, d := range now.calls {
		found, complaint := find(d.tool, tools)
		if found == nil {
			return reply{content: r.shape(strings.TrimSpace(text+"\n"+complaint), t)}, true
		}
		out.calls = append(out.calls, call{name: found.name, arguments: d.arguments})
	}
	return out, true
}

// finish gives the calls their ids, cuts the reply as the request asks, and
// counts it.
func (r *request) finish(out reply, choice int) reply {
	out.finish = "stop"
	for _, s := range r.stop {
		if s == "" {
			continue
		}
		if before, _, found := strings.Cut(out.content, s); found {
			out.content, out.calls = before, nil
		}
	}
	if len(out.calls) > 0 {
		out.finish = "tool_calls"
		if r.legacy {
			out.finish = "function_call"
		}
	}
	left := r.limit
	if left == 0 {
		left = math.MaxInt
	}
	cut := func(s string) string {
		n := 0
		for _, piece := range pieces(s) {
			if left == 0 {
				out.finish = "length"
				break
			}
			left--
			out.tokens++
			n += len(piece)
		}
		return s[:n]
	}
	out.reasoning, out.content = cut(out.reasoning), cut(out.content)
	calls := out.calls
	out.calls = nil
	for i, c := range calls {
		if left == 0 {
			out.finish = "length"
			break
		}
		left-- // the name
		out.tokens++
		c.arguments = cut(c.arguments)
		c.id = "call_" + r.id(choice, i)
		out.calls = append(out.calls, c)
	}
	return out
}

// id is made of the request alone, so that the same request always gets the
// same answer, ids included.
func (r *request) id(parts ...int) string {
	text := r.digest
	for _, n := range parts {
		text += "/" + strconv.Itoa(n)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// signature stands for Gemini's thought signature on a call of that tool.
func signature(tool string) string {
	sum := sha256.Sum256([]byte("rehearsal thought about " + tool))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// pieces splits a text into what the model counts as tokens and streams as
// deltas: a word with the space after it, twelve characters of a longer one,
// two characters of Chinese, Japanese or Korean. Joined they are the text.
func pieces(s string) []string {
	const longest, longestCJK = 12, 2
	var list []string
	start, runes, wide, spaced := 0, 0, false, false
	for i, c := range s {
		size := runes
		full := size >= longest || wide && size >= longestCJK
		if i > start && !unicode.IsSpace(c) && (spaced || full || wide != isCJK(c)) {
			list = append(list, s[start:i])
			start, runes, spaced = i, 0, false
		}
		if unicode.IsSpace(c) {
			spaced = true
		} else {
			wide = isCJK(c)
			runes++
		}
	}
	if start < len(s) {
		list = append(list, s[start:])
	}
	return list
}

// clip cuts a text after so many characters, never inside one.
func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most-1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
