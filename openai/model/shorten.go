package model

import (
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// CodeTooLong is what the OpenAI API calls a request that is longer than its model reads.
const CodeTooLong = "context_length_exceeded"

// CodeInvalidPrompt is what it calls one that is not to be made again as it is: clients show
// what is said of it, and change nothing.
const CodeInvalidPrompt = "invalid_prompt"

// TooLong reports whether an API refused a request because it is longer than its model
// reads. Some say so by a code, others in words alone: where a client wants its history
// cut, one try more than needed does no harm.
func (e *Error) TooLong() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return e.saysTooLong()
	}
	return false
}

// saysTooLong is TooLong by what the API said, whatever its status.
func (e *Error) saysTooLong() bool {
	reported := func(name string) string {
		s, _ := rawjson.String(e.Reported(name))
		return strings.ToLower(s)
	}
	said := reported("message")
	if e.Body == nil && e.Code == CodeUpstreamInvalid {
		said = strings.ToLower(e.Message) // the upstream's words, whatever its document is like
	}
	return reported("code") == CodeTooLong || reported("type") == "exceed_context_size_error" ||
		strings.Contains(said, "context length") || strings.Contains(said, "context size") || strings.Contains(said, "context window")
}

// shorten leaves the oldest turns out of the history, about half of it: all between the
// system messages in front and a message of the user's. It reports whether there was
// anything to leave out; the last turn stays.
func (d *Dialogue) shorten() bool {
	first, size := -1, int64(0)
	var starts []int
	for i, message := range d.history {
		o, err := rawjson.ParseObject(message)
		if err != nil {
			return false // we made it
		}
		role, _ := rawjson.String(o.Get("role"))
		if first < 0 && role != "system" && role != "developer" {
			first = i
		}
		if first >= 0 {
			size += int64(len(message))
		}
		if first >= 0 && i > first && role == "user" {
			starts = append(starts, i)
		}
	}
	if len(starts) == 0 {
		return false
	}
	to, dropped := starts[len(starts)-1], int64(0)
	for i, at := first, 0; i < to; i++ {
		if i == starts[at] {
			if 2*dropped >= size {
				to = i
				break
			}
			at++
		}
		dropped += int64(len(d.history[i]))
	}
	d.history = append(d.history[:first:first], d.history[to:]...)
	d.from -= to - first
	return true
}
