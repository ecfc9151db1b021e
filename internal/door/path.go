package door

import (
	"net/url"
	"strings"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// plainPath refuses a path that can be read as more than one: what is judged is what
// whoever gets it reads. Names of models have slashes, which clients may spell as %2F.
func plainPath(u *url.URL) *model.Error {
	escaped := strings.ToLower(u.EscapedPath())
	odd := []string{"%2f", "%5c", "%2e", "%25", "%3b", `\`, ";"}
	if strings.HasPrefix(u.Path, "/v1/models/") {
		odd = odd[1:]
	}
	for _, each := range odd {
		if strings.Contains(escaped, each) {
			return oddPath(each)
		}
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return oddPath(segment)
		}
	}
	if strings.Contains(u.Path, "//") {
		return oddPath("//")
	}
	if strings.ContainsFunc(u.Path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return oddPath("control characters")
	}
	return nil
}

func oddPath(what string) *model.Error {
	return model.Invalid("", "The path can be read as more than one, for it has "+what+" in it: write it plainly.")
}
