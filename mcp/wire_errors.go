package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/wire/retry"
)

// Sentinels to branch on with errors.Is.
var (
	// ErrClosed: the client was closed, by us.
	ErrClosed = errors.New("the MCP client is closed")
	// ErrTooLarge: a message, an event or a list is over its limit; see [Limits].
	ErrTooLarge = errors.New("the MCP server sent more than the limit")
	// ErrAnswer: the server answered with something that is not an answer: not
	// JSON, no result, a result of an unknown type, a list that never ends.
	ErrAnswer = errors.New("the MCP server's answer is not valid")
	// ErrVersion: client and server speak no common version of the protocol.
	ErrVersion = errors.New("the MCP server speaks no version of the protocol that we speak")
)

// An RPCError is a JSON-RPC error that the server answered with.
type RPCError struct {
	// Code is the JSON-RPC error code. -32020 to -32022 are defined by MCP
	// 2026-07-28, -32768 to -32600 by JSON-RPC 2.0.
	Code int64
	// Message is the server's text, untrusted and of any length.
	Message string
	// Data is the raw data member; nil for none.
	Data json.RawMessage
}

// Error returns the server's message with the code, cut to a readable length.
func (e *RPCError) Error() string {
	return fmt.Sprintf("MCP error %d: %s", e.Code, bounded(e.Message, 1000))
}

// Codes that this package acts on.
const (
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
	codeURLRequired        = -32042 // MCP 2025-11-25 alone
	codeRejected           = -1     // sampling that was rejected, as the specification shows it
)

// modern reports whether only a server of the modern era sends e (MCP
// 2026-07-28, "Error Codes").
func (e *RPCError) modern() bool {
	return e.Code == codeHeaderMismatch || e.Code == codeMissingCapability || e.Code == codeUnsupportedVersion
}

// A TransportError says that a request got no answer because the way to the
// server broke.
type TransportError struct {
	// Sent reports that the server may have received the request, and so may
	// have acted on it. When it is false, the server provably did not.
	Sent bool
	// Err is why, such as an *exec.ExitError or a *net.OpError.
	Err error
}

func (e *TransportError) Error() string {
	if e.Sent {
		return "connection to the MCP server lost: " + e.Err.Error()
	}
	return "MCP server not reached: " + e.Err.Error()
}

func (e *TransportError) Unwrap() error { return e.Err }

// A StatusError is an HTTP answer that is neither an MCP answer nor a refusal
// for want of authorization.
type StatusError struct {
	// Status is the HTTP status code.
	Status int
	// RetryAfter is what the Retry-After header asks for, at most an hour; zero when it
	// is absent or cannot be read.
	RetryAfter time.Duration
	// Body is the beginning of the body, at most 64 KiB, untrusted.
	Body []byte
	// Location is where a redirect leads, without query, at most 200 bytes; untrusted. It
	// was not followed.
	Location string
}

func (e *StatusError) Error() string {
	if e.Location != "" {
		return fmt.Sprintf("MCP server answered HTTP %d %s, to %s: if that is its address, write it in the configuration", e.Status, http.StatusText(e.Status), e.Location)
	}
	return fmt.Sprintf("MCP server answered HTTP %d %s", e.Status, http.StatusText(e.Status))
}

// An AuthorizationError says that the server wants authorization that the
// request did not carry: HTTP 401, or 403 with a challenge.
type AuthorizationError struct {
	// Status is 401 or 403.
	Status int
	// Challenges are the WWW-Authenticate headers as they came; they name the
	// metadata and the scopes that an OAuth client needs (RFC 9728).
	Challenges []string
}

func (e *AuthorizationError) Error() string {
	return fmt.Sprintf("MCP server needs authorization (HTTP %d)", e.Status)
}

// statusError makes an error of an HTTP answer without an MCP answer in it.
func statusError(resp *http.Response, body []byte) error {
	challenges := resp.Header.Values("WWW-Authenticate")
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden && len(challenges) > 0 {
		return &AuthorizationError{Status: resp.StatusCode, Challenges: challenges}
	}
	wait, _ := retry.After(resp.Header.Get("Retry-After"), time.Second)
	return &StatusError{Status: resp.StatusCode, RetryAfter: min(wait, time.Hour), Body: body, Location: location(resp)}
}

// location returns where a redirect leads, for people.
func location(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil || resp.StatusCode/100 != 3 {
		return ""
	}
	return bounded((&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String(), 200)
}

// bounded cuts s to at most n bytes, at the border of a character, and takes
// out what is not text.
func bounded(s string, n int) string {
	cut := ""
	if len(s) > n {
		s, cut = s[:n], "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")) + cut
}
