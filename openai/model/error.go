package model

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Types of an [Error], as the OpenAI API names them.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeAuthentication = "authentication_error"
	TypePermission     = "permission_error"
	TypeServer         = "server_error"
	TypeRateLimit      = "rate_limit_error"
)

// Codes of an [Error] that say what became of a request to an upstream. They are
// stable.
const (
	CodeUpstreamUnreachable = "upstream_unreachable"
	CodeUpstreamTimeout     = "upstream_timeout"
	CodeUpstreamInvalid     = "upstream_invalid_response"
	CodeUpstreamCut         = "upstream_stream_cut"
)

// Codes of an [Error] that are our own. They are stable.
const (
	CodeInvalidJSON    = "invalid_json"
	CodeInvalidRequest = "invalid_request"
	CodeBodyTooLarge   = "body_too_large"
	CodeModelNotFound  = "model_not_found"
	CodeToolConflict   = "tools_not_possible"
	CodeUnknownServer  = "unknown_server"
	CodeTurnExpired    = "turn_expired"
	CodeInProgress     = "request_in_progress"
	CodeInternal       = "internal_error"
)

// Invalid returns the error for a request that is wrong at param.
func Invalid(param, message string) *Error {
	return &Error{
		Status: http.StatusBadRequest, Type: TypeInvalidRequest,
		Code: CodeInvalidRequest, Param: param, Message: message,
	}
}

// InvalidBody is the [Error] for a request body of which the strict judge says err.
func InvalidBody(err error) *Error {
	e := &Error{
		Status: http.StatusBadRequest, Type: TypeInvalidRequest, Code: CodeInvalidJSON,
		Message: "The request body is not valid JSON: " + err.Error() + ".", Err: err,
	}
	if errors.Is(err, rawjson.ErrCrowded) {
		e.Status, e.Code, e.Message = http.StatusRequestEntityTooLarge, CodeBodyTooLarge, "The request body is too large to read: "+err.Error()+"."
	}
	return e
}

// ReadBody reads a request body strictly: one JSON object, valid UTF-8, no duplicate names.
// It returns the elements of the array, too, that a member is: none where it is no array, or
// not there. The error is an [*Error] with status 400 or 413.
func ReadBody(body []byte, array string) (*rawjson.Object, []json.RawMessage, error) {
	o, elements, err := rawjson.ReadArray(body, array)
	switch {
	case errors.Is(err, rawjson.ErrNoObject):
		return nil, nil, Invalid("", "The request body must be a JSON object.")
	case err != nil:
		return nil, nil, InvalidBody(err)
	}
	return o, elements, nil
}

// NewRequestID returns a new id for a request, to be given to the client with an
// error and to be found in the log. It is no secret.
func NewRequestID() string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	id := [24]byte{'r', 'e', 'q', '_'}
	for i, bits := 4, uint64(0); i < len(id); i++ {
		if (i-4)%10 == 0 {
			bits = rand.Uint64()
		}
		id[i], bits = letters[bits%32], bits/32
	}
	return string(id[:])
}

// An Error is what a client is told of a failure, in the words of the OpenAI API. Each
// client half renders it in the form of its own API.
type Error struct {
	// Status is the HTTP status; it does not show once a stream has begun.
	Status int
	// Type, Code, Param and Message are the members of the error object. Param
	// names the field of the request that is wrong; empty for none.
	Type, Code, Param, Message string
	// ID stands in the error and in our log.
	ID string
	// Header holds further response headers, such as Retry-After.
	Header http.Header
	// Body is the upstream's own error document, relayed as it is; nil when the
	// error is ours.
	Body json.RawMessage
	// Err is the cause, for the log only; may be nil.
	Err error
}

// Error returns the message with its code.
func (e *Error) Error() string {
	s := e.Code
	if s == "" {
		s = "status " + strconv.Itoa(e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns an error as a client is told of it: the [*Error] in its chain, or one
// made of what a refusal in it says, which is an error with the method
//
//	Refused() (status int, code, message string)
//
// Anything else is our own trouble, which is told to nobody: ok is false.
func AsError(err error) (e *Error, ok bool) {
	if e, ok = errors.AsType[*Error](err); ok {
		return e, true
	}
	refusal, ok := errors.AsType[refusal](err)
	if !ok {
		return nil, false
	}
	e = &Error{Type: TypeInvalidRequest, Err: err}
	e.Status, e.Code, e.Message = refusal.Refused()
	switch {
	case e.Status == http.StatusUnauthorized:
		e.Type = TypeAuthentication
	case e.Status == http.StatusForbidden:
		e.Type = TypePermission
	case e.Status == http.StatusTooManyRequests:
		e.Type = TypeRateLimit
	case e.Status >= 500:
		e.Type = TypeServer
	}
	return e, true
}

// Reported returns a member of the error object in Body, such as its code; nil where there
// is none.
func (e *Error) Reported(name string) json.RawMessage {
	document, err := rawjson.ParseObject(e.Body)
	if err != nil {
		return nil
	}
	o, err := rawjson.ParseObject(document.Get("error"))
	if err != nil {
		return nil
	}
	return o.Get(name)
}

type refusal interface {
	error
	Refused() (status int, code, message string)
}

// JSON returns the error document: the upstream's own where there is one.
func (e *Error) JSON() json.RawMessage {
	if e.Body != nil {
		return e.Body
	}
	var o rawjson.Object
	o.Set("message", rawjson.Quote(e.Message))
	o.Set("type", rawjson.Quote(e.Type))
	o.Set("param", quoteOrNull(e.Param))
	o.Set("code", quoteOrNull(e.Code))
	if e.ID != "" {
		o.Set("id", rawjson.Quote(e.ID))
	}
	return append(o.Append([]byte(`{"error":`)), '}')
}

// Write answers a request with the error.
func (e *Error) Write(w http.ResponseWriter) {
	h := w.Header()
	maps.Copy(h, e.Header)
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if e.ID != "" {
		h.Set("X-Request-Id", e.ID)
	}
	h.Del("Content-Length")
	w.WriteHeader(e.Status)
	_, _ = w.Write(append(e.JSON(), '\n'))
}

func quoteOrNull(s string) json.RawMessage {
	if s == "" {
		return null
	}
	return rawjson.Quote(s)
}
