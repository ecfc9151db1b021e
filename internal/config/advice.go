package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/commandline"
)

// Advice is a doubt about a server that can be read and may still not be what
// was meant.
type Advice struct {
	// Key is the key that is concerned.
	Key string
	// Message says what looks wrong, Hint what was probably meant.
	Message, Hint string
}

// Advise returns the doubts about a server: a command with its arguments in one
// text, which no program is called, and a package whose name is almost that of a
// well-known server, which is a slip of the finger or somebody's trap.
func Advise(c servers.Config) []Advice {
	var advice []Advice
	if escaped(c.Command) {
		advice = append(advice, Advice{Key: "command", Message: escapedPath, Hint: escapeHint})
	} else if words := strings.Fields(c.Command); len(words) > 1 && !isPath(words) {
		args := make([]string, len(words)-1)
		for i, word := range words[1:] {
			args[i] = fmt.Sprintf("%q", word)
		}
		advice = append(advice, Advice{
			Key:     "command",
			Message: "this is the name of one program, spaces included",
			Hint:    fmt.Sprintf("Did you mean command: %s with args: [%s]?", words[0], strings.Join(args, ", ")),
		})
	}
	if slices.ContainsFunc(c.Args, escaped) {
		advice = append(advice, Advice{Key: "args", Message: escapedPath, Hint: escapeHint})
	}
	for _, name := range packages(c) {
		if known := almost(name); known != "" {
			advice = append(advice, Advice{
				Key:     "args",
				Message: fmt.Sprintf("the package %s is not a server that is known here, and almost is %s", name, known),
				Hint:    fmt.Sprintf("Did you mean %s?", known),
			})
		}
	}
	return advice
}

// escapedPath is what is said of a path in which \n or the like was read as an escape.
const escapedPath = "a path here has a character that is none of a path's, since \\ and the letter behind it were read as an escape"

// escaped reports whether a text was meant for a path of Windows, such as C:\nodejs, and
// has the character that an escape stands for in place of its first backslash.
func escaped(text string) bool {
	drive, path, ok := strings.Cut(text, ":")
	if !ok || len(drive) != 1 || !unicode.IsLetter(rune(drive[0])) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(path)
	return unicode.In(first, unicode.Cc, unicode.Zl, unicode.Zp) || first == '\u00a0'
}

// isPath reports whether a command with spaces is a path that has them, such as
// C:\Program Files\node.exe, and not a command line.
func isPath(words []string) bool {
	return strings.ContainsAny(words[0], `/\`) && !slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
}

// packages returns the names, without versions, of the packages that a server's
// command fetches and runs.
func packages(c servers.Config) []string {
	s := commandline.Read(c.Command, c.Args)
	if s.Kind != commandline.NPM && s.Kind != commandline.PyPI {
		return nil
	}
	return s.Names()
}

// almost returns the well-known package whose name is at most two letters away;
// nothing for a name that is known, or like no other.
func almost(name string) string {
	best, bestDistance := "", 3
	for _, known := range knownPackages {
		switch d := distance(strings.ToLower(name), known); {
		case d == 0:
			return ""
		case d < bestDistance:
			best, bestDistance = known, d
		}
	}
	return best
}

// knownPackages are packages of well-known MCP servers on npm and PyPI. The list
// need not be complete: what is not on it raises no doubt unless it looks like
// one that is.
var knownPackages = []string{
	"@antv/mcp-server-chart",
	"@azure/mcp",
	"@browsermcp/mcp",
	"@bytebase/dbhub",
	"@drawio/mcp",
	"@eslint/mcp",
	"@modelcontextprotocol/server-brave-search",
	"@modelcontextprotocol/server-everything",
	"@modelcontextprotocol/server-filesystem",
	"@modelcontextprotocol/server-github",
	"@modelcontextprotocol/server-gitlab",
	"@modelcontextprotocol/server-google-maps",
	"@modelcontextprotocol/server-memory",
	"@modelcontextprotocol/server-postgres",
	"@modelcontextprotocol/server-puppeteer",
	"@modelcontextprotocol/server-redis",
	"@modelcontextprotocol/server-sequential-thinking",
	"@modelcontextprotocol/server-slack",
	"@notionhq/notion-mcp-server",
	"@playwright/mcp",
	"@postman/postman-mcp-server",
	"@sentry/mcp-server",
	"@softeria/ms-365-mcp-server",
	"@stripe/mcp",
	"@supabase/mcp-server-supabase",
	"@upstash/context7-mcp",
	"airtable-mcp-server",
	"chrome-devtools-mcp",
	"firecrawl-mcp",
	"mcp-mermaid",
	"mcp-remote",
	"mcp-server-fetch",
	"mcp-server-git",
	"mcp-server-kubernetes",
	"mcp-server-sqlite",
	"mcp-server-time",
	"n8n-mcp",
}
