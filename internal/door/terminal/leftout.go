package terminal

import (
	"fmt"
	"strings"
)

// LeftOut says which tools a model is not offered, and what changes that.
func LeftOut(names []string) string {
	shown := names[:min(len(names), 8)]
	text := OneLine(strings.Join(shown, ", "), 400)
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	left := "1 tool is"
	if len(names) > 1 {
		left = fmt.Sprintf("%d tools are", len(names))
	}
	return fmt.Sprintf("%s left out, since the model's API takes no more, or cannot take them: %s. Choose with tools.include of their servers, let models search for tools (tools.search: auto), or set the right dialect of the model (models: dialect).", left, text)
}
