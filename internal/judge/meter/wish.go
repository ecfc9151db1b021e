package meter

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// asksUsage returns the body of a request for a stream with the wish for usage in it;
// ok is false where it is there, or is no such body.
func asksUsage(body [][]byte) (asking [][]byte, ok bool) {
	if !slices.ContainsFunc(body, maySay) {
		return body, false // and is not read: histories are long
	}
	if asking, ok, sure := addsWish(body); sure {
		return asking, ok
	}
	whole := body[0]
	if len(body) > 1 {
		whole = bytes.Join(body, nil)
	}
	o, err := rawjson.ParseObject(whole)
	if err != nil || string(o.Get("stream")) != "true" || o.Get("messages") == nil && o.Get("prompt") == nil {
		return body, false
	}
	options := &rawjson.Object{}
	if given := o.Get("stream_options"); !rawjson.IsNull(given) {
		if options, err = rawjson.ParseObject(given); err != nil {
			return body, false
		}
	}
	if string(options.Get("include_usage")) == "true" {
		return body, false
	}
	options.Set("include_usage", json.RawMessage("true"))
	o.Set("stream_options", options.Bytes())
	return [][]byte{o.Bytes()}, true
}

// maySay reports whether a part of a body may have a member "stream" or "stream_options",
// however it is spelled.
func maySay(part []byte) bool {
	return bytes.Contains(part, []byte(`"stream`)) || bytes.Contains(part, []byte(`\u00`))
}

// wishMember is what is added to a body, and its end.
const wishMember = `"stream_options":{"include_usage":true}}`

// addsWish is asksUsage where the first and the last part say all that counts, so that what
// stands between, which is most of a long request, is not taken apart: a body begins and ends
// with members of its own, and not with those of what it holds. Where it is not sure, it has
// to be.
func addsWish(body [][]byte) (asking [][]byte, ok, sure bool) {
	n := len(body)
	if n < 2 || slices.ContainsFunc(body[1:n-1], maySay) {
		return body, false, false
	}
	first, err := rawjson.ParseObject(append(slices.Clip(body[0]), "0}"...)) // it ends with a name, or inside a value
	if err != nil {
		return body, false, false
	}
	if cut := first.Members[len(first.Members)-1].Name; cut == "stream" || cut == "stream_options" {
		return body, false, false
	}
	last, rest := &rawjson.Object{}, body[n-1]
	if string(rest) != "}" {
		if !bytes.HasPrefix(rest, []byte(",")) {
			return body, false, false
		}
		if last, err = rawjson.ParseObject(append([]byte{'{'}, rest[1:]...)); err != nil {
			return body, false, false
		}
	}
	get := func(name string) json.RawMessage {
		if value := first.Get(name); value != nil {
			return value
		}
		return last.Get(name)
	}
	switch options := get("stream_options"); {
	case string(get("stream")) != "true":
		return body, false, true
	case options != nil:
		o, err := rawjson.ParseObject(options)
		return body, false, err == nil && string(o.Get("include_usage")) == "true"
	case get("messages") == nil && get("prompt") == nil:
		return body, false, false // they may stand between
	}
	asking = slices.Clone(body)
	asking[n-1] = slices.Concat(rest[:len(rest)-1], []byte(","+wishMember))
	return asking, true, true
}
