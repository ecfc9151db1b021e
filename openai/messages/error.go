package messages

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// kinds are the types of errors by HTTP status, as the API has them.
var kinds = map[int]string{
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusPaymentRequired:       "billing_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
	http.StatusGatewayTimeout:        "timeout_error",
	529:                              "overloaded_error",
}

func kindOf(e *model.Error) string {
	switch kind, ok := kinds[e.Status]; {
	case e.Status == http.StatusNotAcceptable && e.Type == model.TypeServer: // not the request's fault, and not to be repeated
		return "api_error"
	case ok:
		return kind
	case e.Status >= 400 && e.Status < 500:
		return "invalid_request_error"
	}
	return "api_error"
}

// codeNoThreads is what the API says of a thread, a conversation that a server holds between
// requests, where it holds none. Anthropic's SDK begins each of its tool runners with one,
// and goes on without when it reads this.
const codeNoThreads = "thread_unsupported_request"

// saidKinds are the types of errors by what other APIs call them, as a code or a type.
var saidKinds = map[string]string{
	"rate_limit_exceeded":     "rate_limit_error",
	"rate_limit_error":        "rate_limit_error",
	"insufficient_quota":      "rate_limit_error",
	"server_is_overloaded":    "overloaded_error",
	"slow_down":               "overloaded_error",
	"overloaded_error":        "overloaded_error",
	"context_length_exceeded": "invalid_request_error",
	"invalid_prompt":          "invalid_request_error",
	"invalid_request_error":   "invalid_request_error",
}

// kindMidway is kindOf an error in the middle of a stream, where no status says more: one that
// the upstream reported within its answer is what that calls it, by a word or a status.
func kindMidway(e *model.Error) string {
	kind := kindOf(e)
	if e.Status != http.StatusBadGateway {
		return kind
	}
	o, err := rawjson.ParseObject(e.Body)
	if err != nil {
		return kind
	}
	failure, err := rawjson.ParseObject(o.Get("error"))
	if err != nil {
		return kind
	}
	for _, name := range []string{"code", "type"} {
		word, _ := rawjson.String(failure.Get(name))
		status, _ := rawjson.Int(failure.Get(name))
		for _, said := range []string{saidKinds[word], kinds[status]} {
			if said != "" {
				return said
			}
		}
	}
	return kind
}

// document is an error of a kind as the API has it: as a body, and as an event. Pictures says
// whether its request has some.
func document(e *model.Error, kind string, pictures bool) []byte {
	var inner, o rawjson.Object
	inner.Set("type", rawjson.Quote(kind))
	inner.Set("message", rawjson.Quote(inItsWords(e, pictures)))
	if e.Code != "" && e.Body == nil {
		inner.Set("code", rawjson.Quote(e.Code))
	}
	if e.Code == codeNoThreads {
		inner.Set("details", []byte(`{"error_code":"`+codeNoThreads+`"}`))
	}
	o.Set("type", rawjson.Quote("error"))
	o.Set("error", inner.Bytes())
	if e.ID != "" {
		o.Set("request_id", rawjson.Quote(e.ID))
	} else {
		o.Set("request_id", []byte("null"))
	}
	return o.Bytes()
}

// tooLong is how the API begins to say that a request is longer than its model reads. Clients
// such as Claude Code make their history shorter by these words alone.
const tooLong = "prompt is too long"

// noRoom is how the API begins to say that a request is short enough, but leaves no room for
// as long an answer as it allows. Claude Code asks for a shorter one by these words and the
// figures behind them; its history it would make shorter in vain.
const noRoom = "input length and `max_tokens` exceed context limit"

// noRooms are how servers of models say that: vLLM, in its versions, SGLang, and OpenRouter and
// those who copied OpenAI's API of old.
var noRooms = []*regexp.Regexp{
	regexp.MustCompile(`is too large: (?P<out>\d+)\. This model's maximum context length is (?P<reads>\d+) tokens and your request has (?P<in>\d+) input tokens`),
	regexp.MustCompile(`context length is (?P<reads>\d+) tokens\. However, you requested (?P<out>\d+) output tokens and your prompt contains (?:at least )?(?P<in>\d+) input tokens`),
	regexp.MustCompile(`passed (?P<in>\d+) input tokens and requested (?P<out>\d+) output tokens\. However, the model's context length is only (?P<reads>\d+) tokens`),
	regexp.MustCompile(`context length of (?P<reads>\d+) tokens\. You requested a total of \d+ tokens: (?P<in>\d+) tokens from the input messages and (?P<out>\d+) tokens for the completion`),
	regexp.MustCompile(`context length is (?P<reads>\d+) tokens\. However, you requested (?:about )?(?P<all>\d+) tokens \([^()]*, (?P<out>\d+) in the (?:completion|output)\)`),
}

// lengths returns how long a request is, how long an answer it allows and how much the model
// reads of both, where an error says all of them; zeros elsewhere.
func lengths(said string) (in, out, reads int) {
	all := 0 // of both, where the parts of a request are counted each
	members := map[string]*int{"in": &in, "out": &out, "reads": &reads, "all": &all}
	for _, form := range noRooms {
		found := form.FindStringSubmatch(said)
		for i, name := range form.SubexpNames() {
			if to := members[name]; to != nil && found != nil {
				n, err := strconv.Atoi(found[i])
				if err != nil || n > 1<<30 {
					return 0, 0, 0
				}
				*to = n
			}
		}
		switch {
		case found == nil:
		case all > 0:
			return all - out, out, reads
		default:
			return in, out, reads
		}
	}
	return 0, 0, 0
}

// badPicture is how the API begins to say that it cannot read a picture. Claude Code takes
// pictures out of its history by these words, which would be refused for ever.
const badPicture = "could not process image"

// inItsWords is what an error says, so that clients of the API know it. Where a
// request has no pictures, an error that speaks of one is about something else, such as a tool
// that makes some.
func inItsWords(e *model.Error, pictures bool) string {
	said := message(e)
	lower := strings.ToLower(said)
	switch {
	case e.TooLong() && !strings.Contains(lower, tooLong):
		switch in, out, reads := lengths(said); {
		case in <= 0 || in >= reads:
		case in+out == reads+1: // it counted no further: how long the request is nobody knows
			if out > reads/2 {
				return said // a client that makes its history shorter would be none the wiser
			}
		default:
			return fmt.Sprintf("%s: %d + %d > %d: %s", noRoom, in, out, reads, said)
		}
		return tooLong + ": " + said
	case pictures && refusesPictures(e, lower) && !strings.Contains(lower, badPicture):
		return badPicture + ": " + said
	}
	return said
}

// refusesPictures reports whether the model's API refused a request for a picture in it, as
// those of models without eyes do: each in words of its own.
func refusesPictures(e *model.Error, said string) bool {
	if e.Code != model.CodeUpstreamInvalid || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	for _, word := range []string{"image", "multimodal", "multi-modal"} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}

// message is what an error says: in the upstream's words, where it is the upstream's.
func message(e *model.Error) string {
	if e.Body == nil {
		return e.Message
	}
	o, err := rawjson.ParseObject(e.Body)
	if err != nil {
		return strings.ToValidUTF8(string(e.Body), "\uFFFD")
	}
	for _, name := range []string{"error", "message", "detail"} {
		raw := o.Get(name)
		if text, ok := rawjson.String(raw); ok && text != "" {
			return text
		}
		if inner, err := rawjson.ParseObject(raw); err == nil {
			if text, _ := rawjson.String(inner.Get("message")); text != "" {
				return text
			}
		}
	}
	return string(e.Body)
}

// WriteError answers a request with an error, in the form of the API.
func WriteError(w http.ResponseWriter, e *model.Error) { writeError(w, e, false) }

func writeError(w http.ResponseWriter, e *model.Error, pictures bool) {
	h := w.Header()
	for name, values := range e.Header {
		h[name] = values
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if e.ID != "" {
		h.Set("X-Request-Id", e.ID)
		h.Set("Request-Id", e.ID)
	}
	h.Del("Content-Length")
	w.WriteHeader(e.Status)
	_, _ = w.Write(append(document(e, kindOf(e), pictures), '\n'))
}
