package dialect

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// maxRounds bounds how often a value is changed and judged again.
const maxRounds = 24

// maxAttempts is the number of places that are changed at a time.
const maxAttempts = 1000

// coerce changes a value where it does not fit, and only so that it fits there:
// a number that was written as text becomes a number only where a number is
// asked for and no text would do. It returns the value, what was done, and what
// is still wrong; then nothing that it did counts. It may change the value that
// it got.
func coerce(value *schema.Node, judge *schema.Validator) (*schema.Node, []Repair, []schema.Violation) {
	before := judge.ValidateNode(value)
	if len(before) == 0 {
		return value, nil, nil
	}
	first := before
	var repairs []Repair
	tried := map[string]int{}
	for range maxRounds {
		// Each place is looked for from the root, among the members of each object.
		if before[0].Keyword == schema.CostKeyword || !judge.Spend(value, len(before)) {
			break
		}
		attempts := attemptsFor(value, before, tried)
		if len(attempts) == 0 {
			break
		}
		for _, a := range attempts {
			a.place.put(a.to)
		}
		after := judge.ValidateNode(value)
		wrong := map[string]bool{}
		for _, v := range after {
			wrong[v.Path] = true
		}
		reverted := false
		for _, a := range attempts {
			if wrong[a.path] {
				a.place.put(a.place.was)
				reverted = true
				continue
			}
			repairs = append(repairs, Repair{Rule: a.rule, Path: a.path})
		}
		if reverted {
			after = judge.ValidateNode(value)
		}
		if before = after; len(before) == 0 {
			return value, repairs, nil
		}
	}
	if len(repairs) == 0 {
		return value, nil, advise(value, first)
	}
	return value, repairs, advise(value, asWritten(before, first, repairs))
}

// reshaping are the repairs after which places inside are not those that the model
// wrote.
var reshaping = map[string]bool{"objectFromString": true, "arrayFromString": true, "wrapInArray": true}

// asWritten brings violations inside what was reshaped back to the place that the
// model wrote: there something else was expected in the first place.
func asWritten(violations, first []schema.Violation, repairs []Repair) []schema.Violation {
	var out []schema.Violation
	at := map[string]int{}
	for _, v := range violations {
		outer, reshaped := "", false
		for _, r := range repairs {
			if reshaping[r.Rule] && strings.HasPrefix(v.Path, r.Path+"/") && (!reshaped || len(r.Path) < len(outer)) {
				outer, reshaped = r.Path, true
			}
		}
		if !reshaped {
			out = append(out, v)
			continue
		}
		inside := v.Expected + " at " + v.Path[len(outer):]
		if v.Missing {
			inside += ", which is missing"
		}
		if i, known := at[outer]; known {
			out[i].Expected += "; " + inside
			continue
		}
		at[outer] = len(out)
		out = append(out, schema.Violation{Path: outer, Expected: strings.Join(expectedAt(first, outer), " or ") + ", and in it " + inside})
	}
	return out
}

// expectedAt is what violations say of one place.
func expectedAt(violations []schema.Violation, path string) (words []string) {
	for _, v := range violations {
		if v.Path == path && !slices.Contains(words, v.Expected) {
			words = append(words, v.Expected)
		}
	}
	if len(words) == 0 {
		return []string{"another form"}
	}
	return words
}

// An attempt is one change that may make a value fit.
type attempt struct {
	path  string
	rule  string
	place place
	to    *schema.Node // nil: take the member away
}

// attemptsFor chooses, for every path that is wrong, the next change that was
// not tried there; of two paths of which one leads to the other, the deeper.
func attemptsFor(root *schema.Node, violations []schema.Violation, tried map[string]int) []attempt {
	byPath := map[string][]schema.Violation{}
	var paths []string
	for _, v := range violations {
		if len(byPath[v.Path]) == 0 {
			paths = append(paths, v.Path)
		}
		byPath[v.Path] = append(byPath[v.Path], v)
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	var attempts []attempt
	above := map[string]bool{}
	own := map[*schema.Node]bool{} // arrays whose list of items is no other's
	for _, path := range paths {
		if above[path] {
			continue
		}
		at, ok := placeOf(root, path)
		if !ok {
			continue
		}
		candidates := candidatesFor(at, byPath[path])
		key := path + "\x00" + strconv.Itoa(int(at.was.Kind()))
		n := tried[key]
		if n >= len(candidates) {
			continue
		}
		tried[key] = n + 1
		a := candidates[n]
		a.path, a.place = path, at
		attempts = append(attempts, a)
		if at.parent.Kind() == schema.Array && !own[at.parent] {
			own[at.parent] = true
			at.parent.SetItems(slices.Clone(at.parent.Items()))
		}
		for up := path; up != ""; {
			up = up[:strings.LastIndexByte(up, '/')]
			above[up] = true
		}
		if len(attempts) == maxAttempts {
			break
		}
	}
	return attempts
}

// A place is where a value stands in another.
type place struct {
	parent *schema.Node
	name   string
	index  int
	was    *schema.Node
}

func placeOf(root *schema.Node, path string) (place, bool) {
	if path == "" {
		return place{was: root}, true
	}
	n := root
	var at place
	for _, token := range strings.Split(path, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		at = place{parent: n, name: token}
		switch n.Kind() {
		case schema.Object:
			at.was = n.Get(token)
		case schema.Array:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(n.Items()) {
				return place{}, false
			}
			at.index, at.was = i, n.Items()[i]
		}
		if at.was == nil {
			return place{}, false
		}
		n = at.was
	}
	return at, true
}

// put puts a value in its place; nil takes a member away.
func (p place) put(v *schema.Node) {
	switch {
	case p.parent == nil:
	case p.parent.Kind() == schema.Array:
		items := p.parent.Items() // not shared: see attemptsFor
		items[p.index] = v
		p.parent.SetItems(items)
	case v == nil:
		p.parent.Delete(p.name)
	default:
		p.parent.Set(p.name, v)
	}
}

// candidatesFor lists what a value may have meant, the surest first.
func candidatesFor(at place, violations []schema.Violation) []attempt {
	if at.parent == nil {
		return nil
	}
	var types, texts []string
	text := false // the schema would take some other string
	format := false
	for _, v := range violations {
		if v.Missing {
			return nil
		}
		types = append(types, v.Types...)
		texts = append(texts, v.Texts...)
		switch v.Keyword {
		case "minLength", "maxLength", "pattern", "format", "contentEncoding":
			text = true
		}
		format = format || v.Keyword == "format"
	}
	text = text || slices.Contains(types, "string")
	var out []attempt
	add := func(rule string, to *schema.Node) { out = append(out, attempt{rule: rule, to: to}) }
	v := at.was
	switch v.Kind() {
	case schema.Null:
		if at.parent.Kind() == schema.Object {
			add("dropNull", nil)
		}
		return out
	case schema.String:
		s := strings.TrimSpace(v.Text())
		if match := foldMatch(s, texts); match != "" {
			add("enumCase", schema.NewString(match))
		}
		if format && bareUUID.MatchString(s) {
			add("dashedUUID", schema.NewString(bareUUID.ReplaceAllString(s, "$1-$2-$3-$4-$5")))
		}
		if !text && len(texts) == 0 {
			out = append(out, fromText(s, types)...)
		}
	case schema.Number:
		switch flag := v.Text() == "0" || v.Text() == "1"; {
		case slices.Contains(types, "boolean") && flag: // a switch, or a text?
		case slices.Contains(types, "string"):
			add("stringFromNumber", schema.NewString(v.Text()))
		case slices.Contains(texts, v.Text()):
			add("stringFromNumber", schema.NewString(v.Text()))
		}
	case schema.Bool:
		number := slices.Contains(types, "number") || slices.Contains(types, "integer") // a text, or 1?
		if !number && slices.Contains(types, "string") || slices.Contains(texts, v.Text()) {
			add("stringFromBoolean", schema.NewString(v.Text()))
		}
	}
	if slices.Contains(types, "array") && v.Kind() != schema.Array && !severalInOne(v) {
		add("wrapInArray", schema.NewArray(v))
	}
	return out
}

// bareUUID is a UUID without its dashes, as addresses of pages have it.
var bareUUID = regexp.MustCompile(`^([0-9A-Fa-f]{8})([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})([0-9A-Fa-f]{12})$`)

// severalInOne reports whether a text can stand for a list in more ways than as
// its one item: nothing, several items, or a list that is written as text, and
// perhaps cut off.
func severalInOne(v *schema.Node) bool {
	if v.Kind() != schema.String {
		return false
	}
	text := strings.TrimSpace(v.Text())
	switch strings.ToLower(text) {
	case "", "null", "none", "nil", "undefined":
		return true
	}
	return strings.ContainsAny(text, ",;\n|") || strings.ContainsRune("[{(\"'`", rune(text[0]))
}

// advise adds to what was expected how to send it, where a repair would have had
// to guess.
func advise(root *schema.Node, violations []schema.Violation) []schema.Violation {
	for i, v := range violations {
		at, ok := placeOf(root, v.Path)
		if !ok || v.Missing {
			continue
		}
		switch kind := at.was.Kind(); {
		case kind == schema.String && (slices.Contains(v.Types, "array") || slices.Contains(v.Types, "object")):
			violations[i].Expected += ", sent as JSON and not as text"
		case kind == schema.Number && slices.Contains(v.Types, "boolean"):
			violations[i].Expected += ", such as true"
		}
	}
	return violations
}

// foldMatch returns the one text that differs from s in case alone.
func foldMatch(s string, texts []string) string {
	match := ""
	for _, t := range texts {
		if strings.EqualFold(t, s) && t != match {
			if match != "" {
				return ""
			}
			match = t
		}
	}
	return match
}

// fromText reads what a text may stand for, of the types that are asked for.
// Without any type the text is read as what it is.
func fromText(s string, types []string) []attempt {
	wants := func(t string) bool { return len(types) == 0 || slices.Contains(types, t) }
	value, err := schema.Parse([]byte(s))
	if err != nil {
		switch {
		case wants("boolean") && strings.EqualFold(s, "true"), wants("boolean") && strings.EqualFold(s, "false"):
			return []attempt{{rule: "booleanFromString", to: schema.NewBool(strings.EqualFold(s, "true"))}}
		case slices.Contains(types, "null") && s == "None":
			return []attempt{{rule: "nullFromString", to: schema.NewNull()}}
		}
		if len(s) > 1 && (s[0] == '{' || s[0] == '[') {
			var rules []string
			if value, rules, err = readTolerantly(s); err != nil {
				return nil
			}
			for _, rule := range rules {
				if likelyRules[rule] {
					return nil
				}
			}
		} else {
			return nil
		}
	}
	switch value.Kind() {
	case schema.Object:
		if wants("object") {
			return []attempt{{rule: "objectFromString", to: value}}
		}
	case schema.Array:
		if wants("array") {
			return []attempt{{rule: "arrayFromString", to: value}}
		}
	case schema.Number:
		if (wants("number") || wants("integer")) && inDouble(value) {
			return []attempt{{rule: "numberFromString", to: value}}
		}
	case schema.Bool:
		if wants("boolean") {
			return []attempt{{rule: "booleanFromString", to: value}}
		}
	case schema.Null:
		if slices.Contains(types, "null") {
			return []attempt{{rule: "nullFromString", to: value}}
		}
	}
	return nil
}

// inDouble reports whether a number is one for programs that compute with doubles,
// as those in JavaScript do: 1e400 would be infinite there, and 1e-400 nothing.
func inDouble(v *schema.Node) bool {
	f, err := strconv.ParseFloat(v.Text(), 64)
	zero := strings.Trim(strings.SplitN(strings.ToLower(v.Text()), "e", 2)[0], "-0.") == ""
	return err == nil && (f != 0 || zero)
}
