package lint

import (
	"regexp"
	"strconv"
	"strings"
)

// A known package is one that configurations start and of which some versions are
// known to be dangerous.
type knownPackage struct {
	// name is that of npm or PyPI.
	name string
	// since is the first bad version, empty for all before fixed, and fixed the first
	// good one, empty where none is known.
	since, fixed string
	// what is wrong with it, and where to read of it.
	what, where string
}

// knownPackages are servers, and programs in front of them, that let strangers run
// code, read files or mails. The list is short and of 2026-11: it names what many
// configurations hold, and is no scanner.
var knownPackages = []knownPackage{
	{"mcp-remote", "", "0.1.16", "an address that a server names is handed to a shell", "CVE-2025-6514"},
	{"@modelcontextprotocol/inspector", "", "0.14.1", "any web page can run commands through its proxy", "CVE-2025-49596"},
	{"@modelcontextprotocol/server-filesystem", "", "2025.7.1", "links and folders with a like name lead out of the allowed ones", "CVE-2025-53109, CVE-2025-53110"},
	{"mcp-server-git", "", "2026.1.14", "git_add reads files outside of the repository", "CVE-2026-27735"},
	{"mcp-server-kubernetes", "", "3.6.0", "tools that were not allowed are hidden, and run when they are called", "CVE-2026-46519"},
	{"figma-developer-mcp", "", "0.6.3", "an argument reaches a shell", "CVE-2025-53967"},
	{"postmark-mcp", "1.0.16", "", "it sends a copy of each mail to a stranger", "postmark-mcp 1.0.16 (npm, 2025-09)"},
}

// packageVersion takes a specification of npm (name@1.2.3) or of PyPI (name==1.2.3,
// name@1.2.3, name[extra]==1.2.3) apart.
var packageVersion = regexp.MustCompile(`^(@?[^@=\[\]]+)(?:\[[^\]]*\])?(?:@|==)v?([0-9]+(?:\.[0-9]+)*)`)

// knownBad says what is wrong with the package that a command starts; empty where
// nothing is known of it, or its version is not.
func knownBad(c *Config) string {
	for _, arg := range append([]string{c.Command}, c.Args...) {
		m := packageVersion.FindStringSubmatch(strings.TrimSpace(arg))
		if m == nil {
			continue
		}
		for _, k := range knownPackages {
			if m[1] != k.name || k.since != "" && older(m[2], k.since) || k.fixed != "" && !older(m[2], k.fixed) {
				continue
			}
			text := quote(m[1]+" "+m[2]) + ": " + k.what + " (" + k.where + ")"
			if k.fixed != "" {
				text += "; mended in " + k.fixed
			}
			return text
		}
	}
	return ""
}

// older reports whether version a comes before b: numbers between dots, the first
// one counting most.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		var m, n int
		if i < len(x) {
			m, _ = strconv.Atoi(x[i]) // digits alone; what overflows is the greatest
		}
		if i < len(y) {
			n, _ = strconv.Atoi(y[i])
		}
		if m != n {
			return m < n
		}
	}
	return false
}
