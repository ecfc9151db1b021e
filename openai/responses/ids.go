package responses

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// IDPrefix is what the ids of responses begin with that are made here.
const IDPrefix = "resp_dg"

// idLength is how long the random part of an id is.
const idLength = 26

// newID returns a new id that begins with a prefix.
func newID(prefix string) string {
	id := append(make([]byte, 0, 48), prefix...)
	for _, c := range []byte(rand.Text()) {
		id = append(id, c|0x20) // in lower case; digits are as they were
	}
	return string(id)
}

// What the ids of a response's items have behind its random part, and a number behind that.
const (
	ofInput  = 'i'
	ofOutput = 'o'
)

// itemNamer returns what makes the ids of a response's items: they have its own in them, so that
// whoever keeps the response need not keep each of them to find it; see [Holder].
func itemNamer(response string, of byte) func(prefix string) string {
	n := 0
	return func(prefix string) string {
		n++
		id := append(append(make([]byte, 0, 64), prefix...), response[len(IDPrefix):]...)
		return string(strconv.AppendInt(append(id, of), int64(n), 10))
	}
}

// Holder returns the id of the response for which the id of an item was made; empty where
// that does not tell. There need not be such a response, nor need it still have the item, and
// another one may have it, too, since clients send items again.
func Holder(item string) string {
	random, place, ok := madeOf(item)
	if !ok || place == "" {
		return ""
	}
	return IDPrefix + random
}

// tells reports whether the id of an item tells that it is of a response.
func tells(item, response string) bool {
	random, place, ok := madeOf(item)
	of, made := strings.CutPrefix(response, IDPrefix)
	return ok && place != "" && made && of == random
}

// madeHere reports whether an id of an item was made here. Those of OpenAI's are longer, and
// have no letters behind f.
func madeHere(id string) bool {
	_, _, ok := madeOf(id)
	return ok
}

// madeOf returns what an id was made of: what is random, and the place of an item, which is
// empty where the id does not tell of which response it is. ok is false for one that was not
// made here.
func madeOf(id string) (random, place string, ok bool) {
	_, random, _ = strings.Cut(id, "_")
	if len(random) < idLength {
		return "", "", false
	}
	random, place = random[:idLength], random[idLength:]
	for _, c := range []byte(random) {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return "", "", false
		}
	}
	if place == "" {
		return random, "", true
	}
	numbered := len(place) > 1 && strings.Trim(place[1:], "0123456789") == ""
	return random, place, numbered && (place[0] == ofInput || place[0] == ofOutput)
}

// itemPrefixes are what the ids of items begin with, by their types, beside those of calls of
// [clientRuns]; others begin with item_.
var itemPrefixes = map[string]string{"message": "msg_", "function_call": "fc_", "function_call_output": "fco_", "reasoning": "rs_"}

// withIDs returns items that all have an id of their own, and those that get one also a type:
// by two that had the same, a client that reads them page by page would never come to the end.
func withIDs(items []json.RawMessage, name func(prefix string) string) []json.RawMessage {
	all := make([]json.RawMessage, len(items))
	var ids map[string]bool // that clients gave
	var room []byte         // of all that get one
	for i, item := range items {
		all[i] = item
		var id, kind, role json.RawMessage
		members := 0
		err := rawjson.Each(item, func(name string, value json.RawMessage) {
			members++
			switch name {
			case "id":
				id = value
			case "type":
				kind = value
			case "role":
				role = value
			}
		})
		given, _ := rawjson.String(id)
		if err != nil {
			continue
		}
		if given != "" && !ids[given] {
			enter(&ids, given, true)
			continue
		}
		is, _ := rawjson.String(kind)
		if is == "" && role != nil {
			is = "message"
		}
		prefix := itemPrefixes[is]
		if _, run := runOf(is); run != nil {
			prefix = run.prefix
		}
		if prefix == "" {
			prefix = "item_"
		}
		if id != nil { // one that is none, or another item's
			o, _ := rawjson.ParseObject(item) // which it was found to be
			o.Delete("id")
			item, members = o.Bytes(), len(o.Members)
		}
		if room == nil {
			room = make([]byte, 0, roomFor(items[i:]))
		}
		start := len(room)
		room = append(room, item[:bytes.LastIndexByte(item, '}')]...)
		if kind == nil {
			room = rawjson.AppendQuote(append(comma(room, members), `"type":`...), is)
			members++
		}
		room = rawjson.AppendQuote(append(comma(room, members), `"id":`...), name(prefix))
		room = append(room, '}')
		all[i] = room[start:len(room):len(room)]
	}
	return all
}

// roomFor is how many bytes items take with a type and an id.
func roomFor(items []json.RawMessage) (n int) {
	for _, item := range items {
		n += len(item) + len(`"type":"message","id":"",`) + 2*idLength
	}
	return n
}

// comma appends what stands between a member and those before it.
func comma(dst []byte, before int) []byte {
	if before == 0 {
		return dst
	}
	return append(dst, ',')
}
