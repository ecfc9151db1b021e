// Package clip shortens text that somebody else wrote to what fits into a
// message or a line of the log.
package clip

import "strings"

// Text returns s in at most n bytes, with "…" behind it where something was left
// out. What is cut stays valid UTF-8.
func Text(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
