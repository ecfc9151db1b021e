package rehearsal

import (
	"fmt"
	"slices"
	"strings"
)

// How much a match counts, by where in the tool the word stands. A tool is called from
// threshold on: a word of its name, or two of its description.
const (
	inName        = 3.0
	inDescription = 1.5
	threshold     = 3.0
)

// choose picks the tool that fits the text best and fills its arguments. It
// returns a question for the user where a required one cannot be found, and
// nothing where no tool fits. A forced choice always ends in a call.
func (r *request) choose(text string, forced bool) (calls []call, question string) {
	tools := r.offered()
	if len(tools) == 0 {
		return nil, ""
	}
	text = head(text)
	best, score := rank(text, tools)
	if score < threshold && !forced {
		return nil, ""
	}
	arguments, missing := fill(text, tools[best], forced)
	if len(missing) > 0 {
		return nil, ask(tools[best], missing, isChinese(text))
	}
	return []call{{name: tools[best].name, arguments: arguments}}, ""
}

// head is as much of a text as is compared with another.
func head(s string) string {
	const most = 8000 // bytes
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// profile is what a tool is known by: the terms and what each counts.
func (t tool) profile() map[string]float64 {
	p := make(map[string]float64)
	add := func(list []term, weight float64) {
		for _, t := range list {
			p[t.text] = max(p[t.text], weight)
		}
	}
	name := t.name
	if label, after, found := strings.Cut(name, "__"); found && after != "" {
		add(nameTerms(label), inDescription) // the server's label is a hint, no more
		name = after
	}
	add(nameTerms(name), inName)
	for _, w := range terms(head(t.description)) {
		weight := inDescription
		if isCJK([]rune(w.text)[0]) {
			weight = inName // names have no such characters
		}
		add([]term{w}, weight)
	}
	for _, m := range t.parameters.get("properties").members {
		add(nameTerms(m.name), inDescription)
		for _, e := range m.value.get("enum").items {
			add(terms(e.text), inDescription)
		}
	}
	return p
}

// rank returns the tool that fits best, the first of several.
func rank(text string, tools []tool) (best int, score float64) {
	asked := terms(text)
	slices.SortFunc(asked, func(a, b term) int { return strings.Compare(a.text, b.text) })
	asked = slices.CompactFunc(asked, func(a, b term) bool { return a.text == b.text })
	for i, t := range tools {
		p, own := t.profile(), 0.0
		for _, w := range asked {
			own += p[w.text]
		}
		if own > score {
			best, score = i, own
		}
	}
	return best, score
}

// ask asks for the arguments that the message does not hold.
func ask(t tool, missing []string, chinese bool) string {
	var b strings.Builder
	if chinese {
		fmt.Fprintf(&b, "要使用 %s，还需要：", t.name)
	} else {
		fmt.Fprintf(&b, "To use %s I still need: ", t.name)
	}
	separator, end := ", ", "."
	if chinese {
		separator, end = "、", "。"
	}
	for i, name := range missing {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(name)
		schema := t.parameters.get("properties").get(name)
		if d := schema.get("description").text; d != "" {
			fmt.Fprintf(&b, " (%s)", strings.TrimRight(clip(d, 120), ".。 "))
		}
		var allowed []string
		for _, e := range schema.get("enum").items {
			allowed = append(allowed, string(e.raw))
		}
		if len(allowed) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(allowed, ", "))
		}
	}
	return b.String() + end
}

// introduce says what the model is and what it sees, where it can do nothing
// else.
func introduce(text string, tools []tool, chinese bool) string {
	var all []*tool
	for i := range tools {
		all = append(all, &tools[i])
	}
	said := clip(strings.TrimSpace(text), 200)
	switch {
	case chinese && len(tools) == 0:
		return "我是 rehearsal，一个确定性的替身，不是语言模型；这次请求没有提供工具。您说的是：" + said
	case chinese:
		return fmt.Sprintf("我是 rehearsal，一个确定性的替身，不是语言模型。在 %d 个工具中没有一个与您的话相符：%s。", len(tools), names(all))
	case len(tools) == 0:
		return "I am rehearsal, a deterministic stand-in, not a language model, and this request offers no tools. You wrote: " + said
	}
	return fmt.Sprintf("I am rehearsal, a deterministic stand-in, not a language model. None of the %d tools I see fits what you wrote: %s.", len(tools), names(all))
}
