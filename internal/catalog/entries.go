package catalog

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
)

// scheme is that of a URI which says whose resource it is: x-mcp:label:uri.
const scheme = "x-mcp:"

// NameEntries returns a copy of entries with public names and URIs. Prompts and
// skills are named like tools, but for the characters, which no provider limits.
// A resource keeps its URI, since tools and other resources refer to it by that;
// where a server before it, by label, has the same one, it says whose it is.
func NameEntries(entries []dragoman.Entry, config Config) []dragoman.Entry {
	named := slices.Clone(entries)
	slices.SortStableFunc(named, func(a, b dragoman.Entry) int { return strings.Compare(a.Server, b.Server) })
	prefixes := map[string]string{}
	owners := map[string]string{}
	for i := range named {
		e := &named[i]
		prefix, ok := prefixes[e.Server]
		if !ok {
			prefix = config.prefix(e.Server)
			prefixes[e.Server] = prefix
		}
		switch e.Kind {
		case dragoman.Resource, dragoman.Template:
			e.URI = e.Original
			if owner, taken := owners[e.Original]; taken && owner != e.Server {
				e.URI = scheme + e.Server + ":" + e.Original
			} else {
				owners[e.Original] = e.Server
			}
		default:
			e.Name = prefix + e.Original
		}
	}
	return named
}

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
