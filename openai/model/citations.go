package model

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// citations returns the annotations of an item, a message, in the form of the Chat API. before
// is how many characters of the text of the whole answer stand before its own.
func citations(item *rawjson.Object, before int) (all []json.RawMessage) {
	parts, _ := rawjson.Elements(item.Get("content"))
	for _, raw := range parts {
		if part, err := rawjson.ParseObject(raw); err == nil {
			all = append(all, chatAnnotations(part.Get("annotations"), before)...)
			text, _ := rawjson.String(part.Get("text"))
			before += utf8.RuneCountInString(text)
		}
	}
	return all
}

// chatAnnotations returns annotations of a text, which so many characters stand before, in the
// form of the Chat API, which has those that cite a page of the web.
func chatAnnotations(raw json.RawMessage, before int) (all []json.RawMessage) {
	given, _ := rawjson.Elements(raw)
	for _, each := range given {
		o, err := rawjson.ParseObject(each)
		if err != nil {
			continue
		}
		if kind, _ := rawjson.String(o.Get("type")); kind != "url_citation" {
			continue
		}
		o.Delete("type")
		shift(o, before)
		all = append(all, (&rawjson.Object{Members: []rawjson.Member{quoted("type", "url_citation"), {Name: "url_citation", Value: o.Bytes()}}}).Bytes())
	}
	return all
}

// ShiftCitations returns annotations of the Chat API as they are of a text that has so many
// characters more before it.
func ShiftCitations(annotations json.RawMessage, by int) []json.RawMessage {
	all, _ := rawjson.Elements(annotations)
	for i, each := range all {
		o, err := rawjson.ParseObject(each)
		if err != nil {
			continue
		}
		if page, err := rawjson.ParseObject(o.Get("url_citation")); err == nil {
			shift(page, by)
			o.Set("url_citation", page.Bytes())
			all[i] = o.Bytes()
		}
	}
	return all
}

// shift moves the place that a citation is of.
func shift(page *rawjson.Object, by int) {
	for _, name := range []string{"start_index", "end_index"} {
		if at, ok := rawjson.Int(page.Get(name)); ok {
			page.Set(name, strconv.AppendInt(nil, int64(at+by), 10))
		}
	}
}
