package openai

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// An Error is an error as clients of the OpenAI API know it.
type Error = model.Error

// Types of an [Error], as the OpenAI API names them.
const (
	TypeInvalidRequest = model.TypeInvalidRequest
	TypeAuthentication = model.TypeAuthentication
	TypePermission     = model.TypePermission
	TypeServer         = model.TypeServer
	TypeRateLimit      = model.TypeRateLimit
)

// Codes of an [Error] that are our own. They are stable. Package model has those
// that say what became of a request to an upstream.
const (
	CodeInvalidJSON    = "invalid_json"
	CodeInvalidRequest = "invalid_request"
	CodeBodyTooLarge   = "body_too_large"
	CodeModelNotFound  = "model_not_found"
	CodeToolConflict   = "tools_not_possible"
	CodeUnknownServer  = "unknown_server"
	CodeTurnExpired    = "turn_expired"
	CodeInternal       = "internal_error"
)

// Invalid returns the error for a request that is wrong at param.
func Invalid(param, message string) *Error {
	return &Error{
		Status: http.StatusBadRequest, Type: TypeInvalidRequest,
		Code: CodeInvalidRequest, Param: param, Message: message,
	}
}

// NewRequestID returns a new id for a request, to be given to the client with an
// error and to be found in the log.
func NewRequestID() string { return "req_" + strings.ToLower(rand.Text()[:20]) }
