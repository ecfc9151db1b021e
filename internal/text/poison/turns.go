package poison

import "strings"

// roles are who speaks in the transcript of a conversation.
var roles = []string{"human", "user", "assistant", "system"}

// turnMark stands before a line with which somebody else begins to speak.
const turnMark = "<turn> "

// markTurns marks the lines behind an empty one that begin as a turn of a conversation
// does, such as "Human:". Examples in descriptions seldom leave a line empty.
func markTurns(text string) string {
	if !strings.Contains(text, "\n") || !strings.Contains(text, ":") {
		return text
	}
	var b strings.Builder
	empty, first := false, true
	for line := range strings.Lines(text) {
		bare := strings.Trim(line, " \t\r\n*#_")
		if empty && !first && speaks(bare) {
			b.WriteString(turnMark)
		}
		b.WriteString(line)
		empty, first = bare == "", first && bare == ""
	}
	return b.String()
}

// speaks reports whether a line begins with the name of a role and a colon.
func speaks(line string) bool {
	who, _, ok := strings.Cut(line, ":")
	who = strings.Trim(who, "* _")
	for _, role := range roles {
		if ok && strings.EqualFold(who, role) {
			return true
		}
	}
	return false
}
