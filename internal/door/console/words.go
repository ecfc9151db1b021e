package console

import "fmt"

// languages are those that pages are written in. The first is the one that is looked up.
var languages = []string{"en", "zh"}

// say returns one of our own texts in a language. A text that is not translated is shown as
// it is: errors of other packages are English everywhere. more are what its verbs stand
// for.
func say(lang, text string, more ...any) string {
	if lang == "zh" {
		if there, ok := chinese[text]; ok {
			text = there
		}
	}
	if len(more) > 0 {
		return fmt.Sprintf(text, more...)
	}
	return text
}
