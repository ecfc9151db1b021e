package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/origin"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/retry"
)

// maxFailure is what is read of the document of an error, in bytes.
const maxFailure = 1 << 20

// Unreachable returns the error for an upstream that gave no answer, or err if it
// is an [*Error] already. Where err can say what is wrong to whoever sent the
// request, by a method Told, that is the message.
func Unreachable(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{
		Status: http.StatusBadGateway, Type: TypeServer, Code: CodeUpstreamUnreachable,
		Message: "The model's API cannot be reached.", Err: err,
	}
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		e.Status, e.Code, e.Message = http.StatusGatewayTimeout, CodeUpstreamTimeout, "The model's API did not answer in time."
	}
	if told, ok := errors.AsType[interface {
		error
		Told() string
	}](err); ok {
		e.Message = told.Told()
	}
	return e
}

// cut is the error for an answer that ended before its end.
func cut(err error) *Error {
	if errors.Is(err, errSilent) {
		return &Error{
			Status: http.StatusGatewayTimeout, Type: TypeServer, Code: CodeUpstreamTimeout,
			Message: "The model's API went silent in the middle of its answer.", Err: err,
		}
	}
	return &Error{
		Status: http.StatusBadGateway, Type: TypeServer, Code: CodeUpstreamCut,
		Message: "The model's answer broke off before its end.", Err: err,
	}
}

// invalidReply is the error for an answer that is none.
func invalidReply(what string, err error) *Error {
	return &Error{
		Status: http.StatusBadGateway, Type: TypeServer, Code: CodeUpstreamInvalid,
		Message: "The upstream's answer " + what + ".", Err: err,
	}
}

// reported is the error for an upstream that reports one where an answer should
// be: in its own words, and in the shape that clients read.
func reported(failure json.RawMessage) *Error {
	e := &Error{Status: http.StatusBadGateway, Type: TypeServer, Code: CodeUpstreamInvalid}
	text := errorText(failure)
	e.Message = "The upstream reported an error: " + clip.Text(text, 300)
	if relayable(failure) {
		e.Body = append(append([]byte(`{"error":`), failure...), '}')
	}
	if e.saysTooLong() && !passing(failure) { // the request is at fault, and not to be repeated
		e.Status, e.Type = http.StatusBadRequest, TypeInvalidRequest
	}
	return e
}

// passing reports whether an error says that it passes by itself, as a limit of requests does:
// by its code or its type, in words or as a status.
func passing(failure json.RawMessage) bool {
	o, err := rawjson.ParseObject(failure)
	if err != nil {
		return false
	}
	for _, name := range []string{"code", "type"} {
		word, _ := rawjson.String(o.Get(name))
		status, _ := rawjson.Int(o.Get(name))
		switch {
		case strings.Contains(word, "rate_limit"), strings.Contains(word, "overloaded"),
			status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable, status == statusOverloaded:
			return true
		}
	}
	return false
}

// relayable reports whether an error object has what clients read of it.
func relayable(failure json.RawMessage) bool {
	o, err := rawjson.ParseObject(failure)
	return err == nil && rawjson.Kind(o.Get("message")) == '"'
}

// errorText returns the words of an error: the text itself, its message, or what
// other APIs call it; else all of it.
func errorText(failure json.RawMessage) string {
	if text, ok := rawjson.String(failure); ok {
		return text
	}
	if o, err := rawjson.ParseObject(failure); err == nil {
		for _, name := range []string{"message", "error", "detail", "msg"} {
			if part := o.Get(name); !rawjson.IsNull(part) {
				return errorText(part)
			}
		}
	}
	return string(failure)
}

// statusError is the error for an upstream that answered with an error status:
// its own document where it is one, ours where it is not, such as the HTML page
// of a proxy.
func statusError(resp *http.Response) *Error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
	if all, err := rawjson.Elements(bytes.TrimSpace(body)); err == nil && len(all) == 1 {
		body = all[0] // Google's APIs have a list of one
	}
	e := &Error{
		Status: resp.StatusCode, Type: TypeServer, Code: CodeUpstreamInvalid, Err: err,
		Message: fmt.Sprintf("The upstream answered with status %d.", resp.StatusCode), Header: http.Header{},
	}
	CopyHeader(e.Header, resp.Header)
	if resp.StatusCode < 400 {
		e.Status = http.StatusBadGateway
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		e.Type = TypeAuthentication
	case resp.StatusCode == http.StatusForbidden:
		e.Type = TypePermission
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		e.Type = TypeInvalidRequest
	}
	if o, err := rawjson.ParseObject(body); err == nil && rawjson.Check(body) == nil && len(o.Members) > 0 {
		if relayable(o.Get("error")) {
			e.Body = body
		}
		e.Message = fmt.Sprintf("The upstream answered with status %d: %s", resp.StatusCode, clip.Text(errorText(body), 300))
	}
	if hint := misplaced(resp); hint != "" {
		e.Message = strings.TrimSuffix(e.Message, ".") + ". " + hint
	}
	return e
}

// version is how the paths of most APIs begin.
var version = regexp.MustCompile(`/v[0-9]`)

// misplaced is a hint where the address of an API may be another one: it redirects, or there
// is nothing at it, and no version in it.
func misplaced(resp *http.Response) string {
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		return fmt.Sprintf("It redirects to %s, which is not followed: if that is its address, write so in base_url (or OPENAI_BASE_URL).", clip.Text(bare(to), 300))
	}
	if resp.Request == nil || resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed ||
		version.MatchString(resp.Request.URL.Path) {
		return ""
	}
	return fmt.Sprintf("It was asked at %s: most APIs begin at /v1, so that may be missing at the end of base_url (or OPENAI_BASE_URL).", bare(resp.Request.URL))
}

// bare is an address without what may be a secret in it.
func bare(u *url.URL) string {
	at := *u
	at.RawQuery, at.User, at.Fragment = "", nil, ""
	return secret.HideSegments(at.String())
}

// statusOverloaded is what some APIs answer where others say 503.
const statusOverloaded = 529

// maxRetryAfter is the longest time that a conversation waits for its model's API to
// take the next request. A client can wait longer, if it likes.
const maxRetryAfter = 20 * time.Second

// retryAfter says whether and when a failed model request is worth another try: after
// the time that the API names, else after growing pauses. Either is a little longer
// each time, so that those who failed together do not come back together.
func retryAfter(e *Error, attempt int) (time.Duration, bool) {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, statusOverloaded:
	default:
		return 0, false
	}
	asked, ok := askedWait(e.Header)
	switch {
	case !ok:
		wait := 500 * time.Millisecond << attempt
		return wait + rand.N(wait/4), true
	case asked > maxRetryAfter:
		return 0, false
	}
	return asked + rand.N(max(asked/10, time.Millisecond)), true
}

// askedWait returns how long an API asks to be left in peace: by Retry-After, or by the
// finer header of OpenAI's.
// What cannot be read asks for longer than anybody waits.
func askedWait(h http.Header) (wait time.Duration, ok bool) {
	for name, unit := range map[string]time.Duration{"Retry-After-Ms": time.Millisecond, "Retry-After": time.Second} {
		text := h.Get(name)
		if text == "" {
			continue
		}
		d, err := retry.After(text, unit)
		if err != nil {
			d = math.MaxInt64
		}
		if !ok || d < wait {
			wait, ok = d, true
		}
	}
	return wait, ok
}

// hidden are the headers of an upstream's response that say something about its
// connection or its body, and not about the answer.
var hidden = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Content-Length": true, "Content-Encoding": true, "Content-Type": true, "Etag": true,
	"Server": true, "Date": true,
}

// CopyHeader copies what an upstream's header says about its answer, such as rate
// limits, and leaves out what it says about its connection, its body and itself, as another
// gateway of ours does, and about everything at its address, which is not ours.
func CopyHeader(to, from http.Header) {
	for name, values := range from {
		if !hidden[name] && !origin.Wide(name) && !strings.HasPrefix(name, "X-Dragoman-") {
			to[name] = values
		}
	}
}
