package console

import "fmt"

// languages are those that pages are written in. The first is the one that is looked up.
var languages = []string{"en", "zh"}

// say returns one of our own texts in a language. A text that is not translated is shown as
// it is: errors of other packages are English everywhere. more are what its verbs stand
// for.
func say(lang, text string, more ...any) string {
	words := english
	if lang == "zh" {
		words = chinese
	}
	if there, ok := words[text]; ok {
		text = there
	}
	if len(more) > 0 {
		return fmt.Sprintf(text, more...)
	}
	return text
}

// english are words of other packages as people say them. Effects stand behind "May".
var english = map[string]string{
	"may_change": "change something", "read_only": "only read", "idempotent": "be called again",
	"used_up": "used up",
}
