package result

import (
	"bytes"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// askedForMarkdown reports whether a call asks its tool for text in Markdown: many
// servers give their tools a parameter response_format with "markdown" and "json".
// A model that asks for one of them is not to get the other.
func askedForMarkdown(call *dragoman.Call) bool {
	const parameter = "response_format"
	if call.Tool == nil || !bytes.Contains(call.Arguments, []byte(`"`+parameter+`"`)) {
		return false
	}
	if memberAt(call.Tool.InputSchema, "properties", parameter) == nil {
		return false // not the tool's own
	}
	asked, _ := rawjson.String(memberAt(call.Arguments, parameter))
	asked = strings.ToLower(asked)
	return asked == "markdown" || asked == "md"
}

// memberAt returns the value at a path of members; nil where there is none.
func memberAt(document []byte, path ...string) []byte {
	for _, name := range path {
		o, err := rawjson.ParseObject(document)
		if err != nil {
			return nil
		}
		if document = o.Get(name); document == nil {
			return nil
		}
	}
	return document
}

// texts reports whether a result has text for the model.
func (r *reading) texts() bool {
	for i := range r.blocks {
		if b := &r.blocks[i]; b.isText() && !b.people && b.text.end > b.text.start+len(`""`) {
			return true
		}
	}
	return false
}
