package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
)

// scheme is that of a URI which says whose resource it is: x-mcp:label:uri.
const scheme = "x-mcp:"

// NameEntries returns a copy of entries with public names and URIs, sorted by
// server. Prompts and skills are named like tools, but for the characters, which no
// provider limits; where two get one name, which only strategies other than the
// label allow, each gets a digest of whose it is behind it. A resource, and a skill,
// keeps its URI, since tools and other resources refer to it by that; where a server
// before it, by label, has the same one, it says whose it is. What a server lists
// twice is there once: nobody could ask for the second.
func NameEntries(entries []dragoman.Entry, config Config) []dragoman.Entry {
	named := slices.Clone(entries)
	slices.SortStableFunc(named, func(a, b dragoman.Entry) int { return strings.Compare(a.Server, b.Server) })
	type identity struct {
		kind             dragoman.EntryKind
		server, original string
	}
	seen := make(map[identity]bool, len(named))
	named = slices.DeleteFunc(named, func(e dragoman.Entry) bool {
		id := identity{e.Kind, e.Server, e.Original}
		double := seen[id]
		seen[id] = true
		return double
	})
	prefixes := map[string]string{}
	owners := map[string]string{}
	count := map[[2]string]int{} // of names, by kind
	for i := range named {
		e := &named[i]
		prefix, ok := prefixes[e.Server]
		if !ok {
			prefix = config.prefix(e.Server)
			prefixes[e.Server] = prefix
		}
		switch e.Kind {
		case dragoman.Prompt:
			e.Name = prefix + e.Original
		case dragoman.Skill:
			e.Name = prefix + e.Name
		}
		count[[2]string{string(e.Kind), e.Name}]++
		if e.Kind == dragoman.Prompt {
			continue
		}
		owner, taken := owners[e.Original]
		if root := rootOwner(named, e.Original); root != "" {
			owner, taken = root, true
		}
		if taken && owner != e.Server {
			e.URI = PublicURI(e.Server, e.Original)
		} else {
			e.URI = e.Original
			owners[e.Original] = e.Server
		}
	}
	for i := range named {
		e := &named[i]
		if e.Name != "" && count[[2]string{string(e.Kind), e.Name}] > 1 {
			sum := sha256.Sum256([]byte(e.Server + "\x00" + e.Original))
			e.Name += "_" + hex.EncodeToString(sum[:4])
		}
	}
	return named
}

// rootOwner returns the server of the first skill that a skill:// URI is a file of;
// empty where there is none. What another server has there is not that skill's
// (SEP-2640, "Origin-scoped resource reads").
func rootOwner(named []dragoman.Entry, uri string) string {
	if !strings.HasPrefix(uri, "skill://") {
		return ""
	}
	for i := range named {
		if e := &named[i]; e.Kind == dragoman.Skill && strings.HasPrefix(uri, strings.TrimSuffix(e.Original, "SKILL.md")) {
			return e.Server
		}
	}
	return ""
}

// PublicURI returns the URI of a server's resource that says whose it is.
func PublicURI(server, original string) string { return scheme + server + ":" + original }

// SplitURI takes a URI that says whose resource it is apart.
func SplitURI(uri string) (label, original string, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return "", "", false
	}
	label, original, ok = strings.Cut(rest, ":")
	return label, original, ok && label != "" && original != ""
}

// OriginalURI returns the URI by which a server knows what is public as uri.
func OriginalURI(server, uri string) string {
	if label, original, ok := SplitURI(uri); ok && label == server {
		return original
	}
	return uri
}
