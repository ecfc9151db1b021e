package lint

import (
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
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
	// malicious says that it was made to do harm, and is not started.
	malicious bool
}

// knownPackages are servers, and programs in front of them, that let strangers run
// code, read files or mails. The list is short and of 2026-11: it names what many
// configurations hold, and is no scanner.
var knownPackages = []knownPackage{
	{"mcp-remote", "", "0.1.16", "an address that a server names is handed to a shell", "CVE-2025-6514", false},
	{"@modelcontextprotocol/inspector", "", "0.14.1", "any web page can run commands through its proxy", "CVE-2025-49596", false},
	{"@modelcontextprotocol/server-filesystem", "", "2025.7.1", "links and folders with a like name lead out of the allowed ones", "CVE-2025-53109, CVE-2025-53110", false},
	{"mcp-server-git", "", "2026.1.14", "git_add reads files outside of the repository", "CVE-2026-27735", false},
	{"mcp-server-kubernetes", "", "3.6.0", "tools that were not allowed are hidden, and run when they are called", "CVE-2026-46519", false},
	{"figma-developer-mcp", "", "0.6.3", "an argument reaches a shell", "CVE-2025-53967", false},
	{"postmark-mcp", "1.0.16", "", "it sends a copy of each mail to a stranger", "postmark-mcp 1.0.16 (npm, 2025-09)", true},
}

// packageVersion takes a specification of npm (name@1.2.3, also behind the "npm:" of an
// alias), of PyPI (name==1.2.3, name@1.2.3, name[extra]==1.2.3) or a plain name apart, and
// tarball the address of a package of npm.
var (
	packageVersion = pattern.Of(`^(@?[^@=<>~!\[\]]+)(?:\[[^\]]*\])?(?:(?:@|==)v?([0-9]+(?:\.[0-9]+)*))?`)
	tarball        = pattern.Of(`/((?:@[^/]+/)?[^/]+)/-/[^/]+?-([0-9]+(?:\.[0-9]+)*)[^/]*\.tgz$`)
)

// knownBad says what is wrong with the package that a command starts; empty where
// nothing is known of it, or its version is not.
func knownBad(c *Config) string {
	k, version := knownIn(c)
	if k == nil || k.malicious {
		return ""
	}
	return quote(k.name+" "+version) + ": " + k.what + " (" + k.where + "); mended in " + k.fixed
}

// knownMalicious says the same of a package that was made to do harm. Without an exact
// version it is malicious, too: nobody knows which one would run.
func knownMalicious(c *Config) string {
	k, version := knownIn(c)
	if k == nil || !k.malicious {
		return ""
	}
	return quote(strings.TrimSpace(k.name+" "+version)) + ": " + k.what + " (" + k.where + ")"
}

// knownIn returns the known package that a command names, a malicious one before others,
// and the version. Whatever stands between spaces in an argument, or behind an equals
// sign, may be a package: a shell may be told to start it.
func knownIn(c *Config) (found *knownPackage, version string) {
	for _, arg := range append([]string{c.Command}, c.Args...) {
		for _, word := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`", r) }) {
			if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "-") {
				word = value
			}
			if _, target, ok := strings.Cut(word, "@npm:"); ok {
				word = target
			}
			m := packageVersion.FindStringSubmatch(strings.TrimPrefix(word, "npm:"))
			if t := tarball.FindStringSubmatch(word); t != nil {
				m = t
			}
			if m == nil {
				continue
			}
			if k := knownPackageOf(m[1], m[2]); k != nil && (found == nil || k.malicious) {
				found, version = k, m[2]
			}
		}
	}
	return found, version
}

func knownPackageOf(name, version string) *knownPackage {
	for i := range knownPackages {
		k := &knownPackages[i]
		switch {
		case k.name != strings.ToLower(name):
		case version == "":
			if k.malicious && k.fixed == "" {
				return k
			}
		case (k.since == "" || !older(version, k.since)) && (k.fixed == "" || older(version, k.fixed)):
			return k
		}
	}
	return nil
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
