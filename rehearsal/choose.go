package rehearsal

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How much a match counts, by where in the tool the word stands. A tool is
// called from threshold on: a word of its name, or two of its description.
const (
	inName        = 3.0
	inArgument    = 1.5 // the name of a parameter, one of its allowed values
	inDescription = 1.5
	inDetail      = 0.5 // the description of a parameter
	inForm        = 1.5 // numbers, or a path, where the tool requires such
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
	every := []string{arguments}
	if r.parallel {
		every = spread(text, tools[best], arguments)
	}
	for _, one := range every {
		calls = append(calls, call{name: tools[best].name, arguments: one})
	}
	return calls, ""
}

// listed stands between the names of a list.
var listed = regexp.MustCompile(`^(?:\s*[,，、&]\s*(?:and\s+)?|\s+and\s+|[和与與])$`)

// spread makes a call for each name of a list, "Oslo, Rome and Paris", where
// the tool's only required argument took the first.
func spread(text string, t tool, arguments string) []string {
	f := newFiller(text, t)
	f.cover(t)
	var only property
	for _, p := range f.properties(t.parameters) {
		if p.required && only.name != "" {
			return []string{arguments}
		}
		if p.required {
			only = p
		}
	}
	filled, err := parse([]byte(arguments))
	first := filled.get(only.name)
	if err != nil || first.kind != isString || only.loose {
		return []string{arguments}
	}
	var names []span
	for _, s := range f.singly() {
		name := f.text[s.start:s.end]
		switch c, _ := utf8.DecodeRuneInString(name); {
		case len(names) == 0:
			if strings.HasPrefix(first.text, name) {
				names = append(names, s)
			}
		case listed.MatchString(f.text[names[len(names)-1].end:s.start]) && (isCJK(c) || unicode.IsUpper(c)):
			names = append(names, s)
		}
	}
	if len(names) < 2 {
		return []string{arguments}
	}
	var every []string
	for _, s := range names {
		var members []string
		for _, m := range filled.members {
			raw := string(m.value.raw)
			if m.name == only.name {
				raw = quote(f.text[s.start:s.end])
			}
			members = append(members, quote(m.name)+":"+raw)
		}
		every = append(every, "{"+strings.Join(members, ",")+"}")
	}
	return every
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
type profile map[string]float64

func (p profile) add(list []term, weight float64) {
	for _, t := range list {
		p[t.text] = max(p[t.text], weight)
	}
}

func (t tool) profile() profile {
	p := make(profile)
	name := t.name
	if _, after, found := strings.Cut(name, "__"); found && after != "" {
		p.add(nameTerms(name), inDescription) // the server's label is a hint, no more
		name = after
	}
	p.add(nameTerms(name), inName)
	p.add(terms(head(t.description)), inDescription)
	for _, m := range t.parameters.get("properties").members {
		p.add(nameTerms(m.name), inArgument)
		p.add(terms(head(m.value.get("description").text)), inDetail)
		for _, e := range examples(m.value) {
			p.add(terms(e), inArgument)
		}
		for _, e := range m.value.get("enum").items {
			p.add(terms(e.text), inArgument)
		}
	}
	return p
}

// rank returns the tool that fits best. Among tools that reach the threshold
// the rarity of the words they share with the text decides; the first wins a
// tie.
func rank(text string, tools []tool) (best int, score float64) {
	profiles := make([]profile, len(tools))
	usedBy := make(map[string]int)
	for i, t := range tools {
		profiles[i] = t.profile()
		for w := range profiles[i] {
			usedBy[w]++
		}
	}
	asked := terms(text)
	slices.SortFunc(asked, func(a, b term) int { return strings.Compare(a.text, b.text) })
	asked = slices.CompactFunc(asked, func(a, b term) bool { return a.text == b.text })
	var bestRare float64
	for i, p := range profiles {
		var plain, rare float64
		for _, w := range asked {
			weight := p[w.text]
			plain += weight
			if weight > 0 {
				rare += weight * math.Log(1+float64(len(tools))/float64(usedBy[w.text]))
			}
		}
		if plain > 0 {
			form := formFits(text, tools[i])
			plain, rare = plain+form, rare+form
		}
		rare *= 1 + tools[i].named(asked)
		if passes := plain >= threshold; i == 0 || (passes || score < threshold) && rare > bestRare || passes && score < threshold {
			best, score, bestRare = i, plain, rare
		}
	}
	return best, score
}

// named is the part of the tool's own name that the message says, up to 1.
func (t tool) named(asked []term) float64 {
	name := t.name
	if _, after, found := strings.Cut(name, "__"); found {
		name = after
	}
	list := nameTerms(name)
	said := 0
	for _, n := range list {
		if slices.ContainsFunc(asked, func(a term) bool { return a.text == n.text }) {
			said++
		}
	}
	return float64(said) / float64(max(1, len(list)))
}

// formFits adds to a tool that requires numbers or a path where the message
// holds them.
func formFits(text string, t tool) float64 {
	f := &filler{text: text, root: t.parameters}
	numbers, lists, paths := 0, 0, 0
	for _, p := range f.properties(t.parameters) {
		if !p.required {
			continue
		}
		form := typeOf(p.schema)
		if form == "array" {
			form = typeOf(settle(f.root, p.schema.get("items")))
			if form == "number" || form == "integer" {
				lists++
				continue
			}
		}
		switch {
		case form == "number" || form == "integer":
			numbers++
		case pathLike(p):
			paths++
		}
	}
	given := len(f.numbers())
	switch {
	case numbers > 0 && given == numbers, lists > 0 && given > 1, paths > 0 && len(f.fields(pathPattern)) >= paths:
		return inForm
	case numbers > 0 && given > numbers:
		return inForm / 2 // one is left over
	}
	return 0
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
