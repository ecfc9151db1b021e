package safehttp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// CheckHeaders says which of a configuration's headers cannot be sent.
func CheckHeaders(headers map[string]secret.Text) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !validHeaderName(name) {
			return invalid.Key("headers", fmt.Sprintf("%q cannot be the name of a header", name))
		}
		if !ValidHeaderValue(headers[name].Reveal()) {
			return invalid.Key("headers", fmt.Sprintf("the value of %s has a line break or a control character", name))
		}
	}
	return nil
}

// validHeaderName reports whether name is a token of RFC 9110, section 5.6.2,
// and so can be the name of a header.
func validHeaderName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

// ValidHeaderValue reports whether value can be sent as the value of a header:
// no control characters but the tab, so no line breaks (RFC 9110, section 5.5).
func ValidHeaderValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
