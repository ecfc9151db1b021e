package messages

import (
	"maps"
	"net/http"
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
	for _, name := range []string{"code", "type"} {
		word, _ := rawjson.String(e.Reported(name))
		status, _ := rawjson.Int(e.Reported(name))
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
	maps.Copy(h, e.Header)
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
