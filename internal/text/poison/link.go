package poison

import "strings"

// longestLink is how much of a link is looked at, and longestBefore of what stands before
// it, in bytes.
const longestLink, longestBefore = 300, 80

// linkAt returns what is to be said of the link at an offset of a folded text, beside that
// it is one. In some there is something to be filled in that a model knows, such as
// https://example.com/x.png?q={conversation}: whoever shows such a picture sends it.
func linkAt(text string, at int) concept {
	if !speaksOfData(placeholder(text[at:min(len(text), at+longestLink)])) {
		return 0
	}
	if before := text[max(0, at-longestBefore):at]; strings.Contains(before, "![") || strings.Contains(before, "<img") {
		return dataLink
	}
	return link
}

var address, link, dataLink = named("url"), named("link"), named("datalink")

// placeholder returns what is to be filled in behind an equals sign of a link; empty for
// nothing.
func placeholder(rest string) string {
	for _, open := range []string{"={", "=[", "=<", "=$", "=%7b"} {
		if _, filled, ok := strings.Cut(rest, open); ok {
			if end := strings.IndexAny(filled, "}]>&\n"); end >= 0 {
				filled = filled[:end]
			}
			return clip(filled, 80)
		}
	}
	return ""
}

// known are words for what a model knows, and an interface seldom takes.
var known = named("conv secret sysp yoursys sens")

// speaksOfData reports whether a placeholder is for what a model knows, and not for what
// an interface takes.
func speaksOfData(filled string) bool {
	if filled == "" {
		return false
	}
	if hasAny(filled, "conversation", "message", "history", "summary", "chat", "context", "prompt", "user's", "user data", "answer") {
		return true
	}
	var s scan
	s.add(0, filled, Definition)
	for _, has := range s.has {
		if has&known != 0 {
			return true
		}
	}
	return false
}
