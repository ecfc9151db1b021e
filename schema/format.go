package schema

import (
	"maps"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// judgedFormats are the formats that values are judged by, beside regex. JSON
// Schema 2020-12 leaves it open whether format judges ("Format", section 7);
// servers that name one of these usually mean it.
var judgedFormats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer",
	"relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// Formats returns the formats that a [Validator] judges values by, sorted. Any
// other is left to the server, and [Validator.Unchecked] says so.
func Formats() []string { return slices.Sorted(maps.Keys(formatJudges())) }

// formatJudges judge values by formats.
var formatJudges = sync.OnceValue(func() map[string]func(any) error {
	judges := map[string]func(any) error{"regex": judgeRegex}
	for _, name := range judgedFormats {
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		at := location + name
		if err := c.AddResource(at, map[string]any{"format": name}); err != nil {
			panic(err) // the resource is ours
		}
		judges[name] = c.MustCompile(at).Validate
	}
	return judges
})

func judgeRegex(v any) error {
	if s, ok := v.(string); ok {
		budget := maxPatternCost
		_, err := compilePattern(s, &budget)
		return err
	}
	return nil
}

// forStrings reports whether n can be meant for strings. The formats of numbers,
// such as int64, are no restriction that anybody relies on.
func forStrings(n *Node) bool {
	t := n.Get("type")
	return t == nil || t.IsString("string") || slices.ContainsFunc(t.Items(), func(item *Node) bool { return item.IsString("string") })
}

// formatWords says what a format wants, with an example where people differ.
func formatWords(name string) string {
	switch name {
	case "date-time":
		return "a date and time such as 2024-01-15T10:30:00Z"
	case "date":
		return "a date such as 2024-01-15"
	case "time":
		return "a time with its zone, such as 10:30:00Z"
	case "duration":
		return "a duration such as PT1H30M"
	case "email":
		return "an email address"
	case "uri":
		return "an absolute URI such as https://example.com/"
	case "uuid":
		return "a UUID"
	case "regex":
		return "a regular expression"
	}
	return "a string in the format " + name
}
