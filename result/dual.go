package result

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Wrapped is the member under which Dual puts a structuredContent that is no
// object, for legacy peers.
const Wrapped = "result"

// Dual returns a result for an MCP client whose model may read either form: when
// there is a structuredContent and no text block says the same, its JSON is
// added to content as plain text (MCP specification 2025-06-18, "Structured
// Content": a server that returns it SHOULD also return the serialized JSON in a
// text block). Nothing is removed and everything else stays byte for byte;
// errors stay as they are.
//
// A legacy peer (2025-11-25 and before) accepts nothing but an object there, and
// common clients take null, 0 and false for missing. With legacy such a value is
// put into an object under Wrapped; the tool's output schema has to be wrapped
// in the same way.
//
// A result that is a Problem becomes an MCP result with isError and the
// problem's JSON as text.
func Dual(res dragoman.Result, legacy bool) dragoman.Result {
	if res.Problem != nil {
		return problemResult(res)
	}
	o, err := rawjson.ParseObject(res.Content)
	if err != nil || res.Failed || string(o.Get("isError")) == "true" {
		return res
	}
	structured := o.Get("structuredContent")
	if structured == nil {
		return res
	}
	said := says(res.Content)
	if legacy && rawjson.Kind(structured) != '{' {
		wrapped := append([]byte(`{"`+Wrapped+`":`), structured...)
		structured = append(wrapped, '}')
		o.Set("structuredContent", structured)
	} else if said {
		return res
	}
	if !said {
		block := appendQuoted([]byte(`{"type":"text","text":`), string(structured))
		o.Set("content", appendElement(o.Get("content"), append(block, '}')))
	}
	res.Content = o.Bytes()
	return res
}

// says reports whether a text block of a result has its structuredContent as
// JSON.
func says(content []byte) bool {
	r, err := read(content)
	if err != nil || r.structured == nil {
		return false
	}
	for _, b := range r.blocks {
		if b.isText() && r.doc.sameText(*r.structured, appendDecoded(nil, r.doc.b[b.text.start:b.text.end])) {
			return true
		}
	}
	return false
}

// appendElement returns an array with one more element; the rest of it stays
// byte for byte. What is no array is replaced by one.
func appendElement(array, element []byte) json.RawMessage {
	array = bytes.TrimSpace(array)
	elements, err := rawjson.Elements(array)
	if err != nil || len(elements) == 0 {
		return rawjson.AppendArray(nil, []json.RawMessage{element})
	}
	out := append([]byte(nil), array[:len(array)-1]...)
	return append(append(append(out, ','), element...), ']')
}

func problemResult(res dragoman.Result) dragoman.Result {
	out := appendQuoted([]byte(`{"content":[{"type":"text","text":`), string(appendProblem(nil, res.Problem)))
	res.Content = append(out, `}],"isError":true}`...)
	res.Failed, res.Problem = true, nil
	return res
}
