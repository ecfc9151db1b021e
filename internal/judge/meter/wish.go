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
	if asking, ok = addsWish(body); ok {
		return asking, true
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
// with members of its own, and not with those of what it holds. False says nothing.
func addsWish(body [][]byte) (asking [][]byte, ok bool) {
	n := len(body)
	if n < 2 || slices.ContainsFunc(body[1:n-1], maySay) {
		return nil, false
	}
	first, err := rawjson.ParseObject(append(slices.Clip(body[0]), "0}"...)) // it ends with a name
	if err != nil {
		return nil, false
	}
	last, rest := &rawjson.Object{}, body[n-1]
	if string(rest) != "}" {
		if rest[0] != ',' {
			return nil, false
		}
		if last, err = rawjson.ParseObject(append([]byte{'{'}, rest[1:]...)); err != nil {
			return nil, false
		}
	}
	get := func(name string) json.RawMessage {
		if value := first.Get(name); value != nil {
			return value
		}
		return last.Get(name)
	}
	if string(get("stream")) != "true" || get("stream_options") != nil || get("messages") == nil && get("prompt") == nil {
		return nil, false
	}
	asking = slices.Clone(body)
	asking[n-1] = slices.Concat(rest[:len(rest)-1], []byte(","+wishMember))
	return asking, true
}
