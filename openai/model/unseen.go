package model

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// leftOut stands where pictures of tools were.
const leftOut = "(A tool returned pictures here. They were left out, since the model's API refused a request with them.)"

// notePictures notes the pictures in a message that the client does not see: what tools of
// servers returned. The client cannot take those out of the conversation.
func (d *Dialogue) notePictures(o *rawjson.Object) {
	content := o.Get("content")
	if rawjson.Kind(content) != '[' {
		return
	}
	parts, err := rawjson.Elements(content)
	if err != nil || len(parts) == 0 || !isOf("tool", o.Get("role")) && string(parts[0]) != string(textPart(shownFirst)) {
		return
	}
	for _, part := range parts {
		if !isText(part) {
			d.pictures = append(d.pictures, part)
		}
	}
}

func isText(part json.RawMessage) bool { return rawjson.Kind(rawjson.Find(part, "text")) == '"' }

// An unseen is a request that is made once more without the pictures that tools of servers
// returned, where it may have failed for those. Nobody knows which models see pictures, and the
// API of one that sees none refuses the request, in words of its own; all later ones of the
// conversation, too. As with tools, it shows when the same request is taken without them;
// from then on the conversation goes on so, and nothing is concluded for others.
type unseen struct {
	refused *Error            // what was said to the request with the pictures; nil for nothing
	without bool              // they are left out
	history []json.RawMessage // with them
	from    int
}

// leave leaves the pictures out of a request that failed, once, and reports whether it did.
func (u *unseen) leave(d *Dialogue, failure *Error) bool {
	if u.refused != nil || !failure.mayBePictures() {
		return false
	}
	history := d.history
	if u.without = d.leavePictures(); u.without {
		u.refused, u.history, u.from = failure, history, d.from
	}
	return u.without
}

// meant returns what is wrong with a request that failed. One that is refused without the
// pictures, too, is refused for something else, and has them again. What fails in another way,
// as where an API is busy, says nothing of them.
func (u *unseen) meant(d *Dialogue, failure *Error) *Error {
	if !u.without || !failure.mayBePictures() {
		return failure
	}
	u.end(d)
	return u.refused
}

// taken says that the request was taken as it is.
func (u *unseen) taken(d *Dialogue) {
	if !u.without {
		return
	}
	u.without, d.blind = false, true
	model, _ := rawjson.String(d.Request.Object.Get("model"))
	d.Client.log().Warn("pictures of tools left out: the upstream refused a request with them", "upstream_model", strings.ToValidUTF8(model, ""), "error", u.refused)
}

// end puts pictures back that nobody took the request without.
func (u *unseen) end(d *Dialogue) {
	if u.without {
		u.without, d.history, d.from = false, u.history, u.from
	}
}

// leavePictures leaves the pictures that tools of servers returned out of the history, and
// reports whether there were any.
func (d *Dialogue) leavePictures() (left bool) {
	if len(d.pictures) == 0 {
		return false
	}
	history := slices.Clone(d.history) // messages may be shared with others
	for i, message := range history {
		content := rawjson.Find(message, "content")
		if rawjson.Kind(content) != '[' {
			continue
		}
		o, err := rawjson.ParseObject(message)
		parts, wrong := rawjson.Elements(content)
		if err != nil || wrong != nil {
			continue
		}
		var kept, texts []json.RawMessage
		noted, seen := false, false
		for _, part := range parts {
			switch {
			case slices.ContainsFunc(d.pictures, func(p json.RawMessage) bool { return bytes.Equal(p, part) }):
				if noted {
					continue
				}
				noted, part = true, textPart(leftOut)
			case !isText(part):
				seen = true
			}
			kept = append(kept, part)
			if string(part) != string(textPart(shownFirst)) {
				texts = append(texts, rawjson.Find(part, "text"))
			}
		}
		switch {
		case !noted:
			continue
		case seen:
			o.Set("content", rawjson.AppendArray(nil, kept))
		default: // templates of many models take nothing but one text
			o.Set("content", rawjson.JoinStrings("\n\n", texts))
		}
		history[i], left = o.Bytes(), true
	}
	if left {
		d.history = history
	}
	return left
}

// mayBePictures reports whether an error can be about the pictures of a request, by its
// status; llama.cpp says it as an error of its own, and in words.
func (e *Error) mayBePictures() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return !e.TooLong()
	case http.StatusInternalServerError:
		return strings.Contains(strings.ToLower(e.Message), "image input")
	}
	return false
}
