package dialect

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/schema"
)

const (
	// maxListed is the number of enum values that a description lists.
	maxListed = 20
	// maxSaid is the length of what is added to a description: room for a schema
	// that is cut off with all that it says.
	maxSaid = maxSchemaText + 400
	// maxEnumWords is the length of the values that a description lists.
	maxEnumWords = 1200
	// maxDefault is the length of a default that is worth telling.
	maxDefault = 200
)

func itoa(n int) string { return strconv.Itoa(n) }

func addDecimal(literal string, step int64) string {
	n, ok := new(big.Int).SetString(literal, 10)
	if !ok {
		return literal
	}
	return n.Add(n, big.NewInt(step)).String()
}

// spillDefault writes a default into the description, in the words that models
// know from everywhere: (default: 'bio1').
func (c *conversion) spillDefault(n, value *schema.Node) {
	c.say("describeDefaults", n, "default is not taken; the description says it")
	text := literal(value)
	if len(text) > maxDefault || saysDefault(n.Get("description").Text(), value) {
		return
	}
	m := c.mark(n)
	m.def = value
}

// saysDefault reports whether a description tells the default already.
func saysDefault(description string, value *schema.Node) bool {
	lower := strings.ToLower(description)
	if !strings.Contains(lower, "default") {
		return false
	}
	text := strings.ToLower(value.Text())
	if value.Kind() == schema.Object || value.Kind() == schema.Array {
		text = strings.ToLower(string(value.Bytes()))
	}
	return containsWord(lower, text)
}

// containsWord reports whether text holds a word, not as a part of another.
func containsWord(text, word string) bool {
	if word == "" {
		return true
	}
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start := from + i
		end := start + len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if !partOfWord(before, word[0]) && !partOfWord(after, word[len(word)-1]) {
			return true
		}
		from = start + 1
	}
}

func partOfWord(r rune, edge byte) bool {
	letter := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	return r != utf8.RuneError && letter(r) && letter(rune(edge))
}

// describe writes into the descriptions what left the schema, and the values of
// enums.
func (c *conversion) describe() {
	c.each(func(n *schema.Node) {
		if n.Kind() != schema.Object {
			return
		}
		m := c.mark(n)
		text := n.Get("description").Text()
		added := text
		if values := c.enumWords(n, text); values != "" && !c.rules.Enforced {
			added = sentence(added, "Must be one of: "+values)
			c.say("describeEnums", n, "models keep to values better that the description names")
		}
		var said []string
		for _, words := range m.said {
			if !strings.Contains(text, words) {
				said = append(said, words)
			}
		}
		if len(said) > 0 {
			added = strings.TrimLeft(added+" ("+cut(strings.Join(said, ", "), maxSaid)+")", " ")
		}
		if m.def != nil {
			added = strings.TrimLeft(added+" (default: "+literal(m.def)+")", " ")
		}
		if added == text || n.Has("$ref") && c.rules.bad(RefSiblings) {
			return
		}
		if n == c.root {
			if words := strings.TrimSpace(strings.TrimPrefix(added, text)); words != "" {
				c.notes = append(c.notes, words)
			}
			return
		}
		n.Set("description", schema.NewString(added))
	})
}

// sentence adds a sentence to a text.
func sentence(text, next string) string {
	text = strings.TrimRight(text, " \n\t")
	switch {
	case text == "":
		return next
	case strings.HasSuffix(text, "."), strings.HasSuffix(text, "!"), strings.HasSuffix(text, "?"),
		strings.HasSuffix(text, ":"), strings.HasSuffix(text, "。"):
		return text + " " + next
	}
	return text + ". " + next
}

// enumWords lists the values of an enum, unless the text names them all.
func (c *conversion) enumWords(n *schema.Node, text string) string {
	values := n.Get("enum").Items()
	if len(values) == 0 || len(values) > maxListed {
		return ""
	}
	names := make([]string, 0, len(values))
	said, length := true, 0
	for _, v := range values {
		names = append(names, literal(v))
		length += len(names[len(names)-1])
		said = said && text != "" && containsWord(text, v.Text())
	}
	if said || length > maxEnumWords || len(values) == 1 && values[0].Kind() == schema.Null {
		return ""
	}
	return strings.Join(names, ", ")
}

// toolDescription is the description of the whole tool: the server's words,
// then what the conversion has to say, then what comes back.
func (c *conversion) toolDescription(description string, output *schema.Node) string {
	text := strings.TrimRight(description, " \n\t")
	for _, note := range c.notes {
		if !strings.Contains(text, note) {
			text = sentence(text, note)
		}
	}
	if fields := outputFields(output); len(fields) > 0 && !saysFields(text, fields) {
		text = sentence(text, "Returns JSON with fields "+strings.Join(fields, ", ")+".")
	}
	if text == strings.TrimRight(description, " \n\t") {
		return description
	}
	return text
}

// outputFields are the names of the members that a tool returns, as many as are
// worth telling.
func outputFields(output *schema.Node) []string {
	var fields []string
	for i, p := range output.Get("properties").Members() {
		if i == maxListed {
			return append(fields, "…")
		}
		fields = append(fields, cut(p.Name, 60))
	}
	return fields
}

func saysFields(text string, fields []string) bool {
	for _, f := range fields {
		if !containsWord(text, f) {
			return false
		}
	}
	return true
}

// literal is a value as text for a person: strings in single quotes.
func literal(v *schema.Node) string {
	if v.Kind() == schema.String {
		return "'" + v.Text() + "'"
	}
	return strings.TrimSpace(string(v.Bytes()))
}
