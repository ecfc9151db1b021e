// Package permission has the words for what somebody may do. The gateway and servers
// written with the toolkit use the same ones, so that one key, and one line in a
// configuration, mean the same in both.
//
// A right is kind:what, such as
//
//	tickets:write        a permission that the author of a server named
//	tool:github__search  calling one tool of the gateway's, as label__name
//	model:gpt-5          using a model
//	route:/v1/files      using a route that is relayed
//	approve:github__*    saying yes or no to calls of others
//	ops:reload           operating the gateway, and audit:read: see the constants
//
// A grant is a right, or a pattern of rights with * for any text and ? for one
// character: tickets:*, tool:github__*, and * alone for everything. One right
// never implies another, so who may write and read is granted both.
//
// The scopes of OAuth tokens are rights as well, and never patterns: what an
// authorization server calls "*" is not ours to interpret.
package permission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// Rights of those who operate the gateway. No key has one that was not granted it.
const (
	// Reload is the right to have the configuration read again.
	Reload = "ops:reload"
	// Config is the right to read the configuration, without its secrets.
	Config = "ops:config"
	// Live is the right to watch what others do while they do it; what one does oneself
	// needs none.
	Live = "ops:live"
	// Runs is the right to see and to cancel what others let run in the background; for
	// what one let run oneself one needs none.
	Runs = "ops:runs"
	// Audit is the right to read the audit log.
	Audit = "audit:read"
	// Usage is the right to see what others used of models and tools, and what it cost; what
	// one used oneself needs none.
	Usage = "ops:usage"
	// Metrics is the right to read /metrics.
	Metrics = "ops:metrics"
)

// ofOperators are the rights above.
var ofOperators = []string{Reload, Config, Live, Runs, Audit, Usage, Metrics}

// maxLength of a right or a grant, in bytes.
const maxLength = 200

// Check says what is wrong with a right: it is not kind:what, or it holds a
// pattern, a space or a control character.
func Check(right string) error {
	if err := check(right); err != nil {
		return err
	}
	if !glob.Literal(right) {
		return fmt.Errorf("right %q: a pattern can be granted, not required", right)
	}
	return nil
}

// CheckGrant is Check for what is granted: patterns are allowed.
func CheckGrant(grant string) error {
	if grant == "*" {
		return nil
	}
	return check(grant)
}

func check(word string) error {
	kind, what, ok := strings.Cut(word, ":")
	if !ok || kind == "" || what == "" {
		return fmt.Errorf("right %q: a right is kind:what, such as tickets:write", word)
	}
	for _, r := range kind {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return fmt.Errorf("right %q: the kind is a word of lower-case letters, digits, _ and -", word)
		}
	}
	// As in the scopes of OAuth (RFC 6749 section 3.3): visible ASCII without " and \.
	if strings.ContainsFunc(what, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' || r == ',' }) {
		return fmt.Errorf("right %q: only visible ASCII, and no comma, quote or backslash", word)
	}
	if len(word) > maxLength {
		return errors.New("a right of more than 200 bytes")
	}
	return nil
}

// Granted reports whether one of the grants covers a right.
func Granted(grants []string, right string) bool { return glob.MatchAny(grants, right) }

// Scoped reports whether a right is one of the scopes of a token, letter by
// letter.
func Scoped(scopes []string, right string) bool { return slices.Contains(scopes, right) }
