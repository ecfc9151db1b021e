// Package openai forwards the names that it had until the client half of the Chat API
// moved to [github.com/dragoman-mcp/dragoman/openai/chat]. It stays for one release.
//
// Deprecated: Use package chat, and package model for errors.
package openai

import (
	"net/http"

	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// The names as they are now.
type (
	// Deprecated: Use [chat.Request].
	ChatRequest = chat.Request
	// Deprecated: Use [chat.Options].
	ChatOptions = chat.Options
	// Deprecated: Use [chat.Conversation].
	Chat = chat.Conversation
	// Deprecated: Use [chat.ServerChoice].
	ServerChoice = chat.ServerChoice
	// Deprecated: Use [chat.Talk].
	Talk = chat.Talk
	// Deprecated: Use [model.Error].
	Error = model.Error
)

// Types and codes of an [Error].
//
// Deprecated: Use those of package model.
const (
	TypeInvalidRequest = model.TypeInvalidRequest
	TypeAuthentication = model.TypeAuthentication
	TypePermission     = model.TypePermission
	TypeServer         = model.TypeServer
	TypeRateLimit      = model.TypeRateLimit

	CodeInvalidJSON    = model.CodeInvalidJSON
	CodeInvalidRequest = model.CodeInvalidRequest
	CodeBodyTooLarge   = model.CodeBodyTooLarge
	CodeModelNotFound  = model.CodeModelNotFound
	CodeToolConflict   = model.CodeToolConflict
	CodeUnknownServer  = model.CodeUnknownServer
	CodeTurnExpired    = model.CodeTurnExpired
	CodeInternal       = model.CodeInternal
)

// ParseChat is [chat.Parse].
//
// Deprecated: Use [chat.Parse].
func ParseChat(body []byte) (*ChatRequest, error) { return chat.Parse(body) }

// NewChat is [chat.New].
//
// Deprecated: Use [chat.New].
func NewChat(request *ChatRequest, w http.ResponseWriter, options ChatOptions) (*Chat, error) {
	return chat.New(request, w, options)
}

// Invalid is [model.Invalid].
//
// Deprecated: Use [model.Invalid].
func Invalid(param, message string) *Error { return model.Invalid(param, message) }

// NewRequestID is [model.NewRequestID].
//
// Deprecated: Use [model.NewRequestID].
func NewRequestID() string { return model.NewRequestID() }
