package toolkit

import (
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"time"
)

// A Refusal is an error that the model, or the person behind it, should read:
// what is wrong with the call and how to do better. Make one with [Invalid],
// [NotFound], [Refuse] or [RetryAfter]. It may be wrapped; only its own text is
// sent.
//
// All other errors are the server's own trouble. They are logged under an id,
// and the model reads nothing but that id.
type Refusal struct {
	// Code is "invalid_arguments", "not_found", "refused", "retry_later",
	// "timeout", "too_large" or "denied".
	Code string
	// Field is the argument that is wrong, if it is one.
	Field string
	// Message is for the model to read.
	Message string
	// RetryAfter is the time after which the same call may work.
	RetryAfter time.Duration
}

// The codes of a Refusal; they also stand in the audit line.
const (
	codeInvalid  = "invalid_arguments"
	codeNotFound = "not_found"
	codeRefused  = "refused"
	codeRetry    = "retry_later"
	codeTimeout  = "timeout"
	codeTooLarge = "too_large"
	codeDenied   = "denied"
)

// Error returns the text that the model reads.
func (r *Refusal) Error() string {
	text := r.Message
	if r.Field != "" {
		text = r.Field + ": " + text
	}
	if r.RetryAfter > 0 {
		text += fmt.Sprintf(" Try again in %s.", seconds(r.RetryAfter))
	}
	return text
}

// seconds writes a duration for a model, rounded up.
func seconds(d time.Duration) string {
	n := int(math.Ceil(d.Seconds()))
	if n == 1 {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", n)
}

// Invalid says that an argument has a value that cannot be used, for what a
// schema cannot say. field is its name in JSON, or empty where several together
// are wrong; the text says what is expected. To tell of several at once, join
// them with [errors.Join]; that of nothing is nil:
//
//	var wrong []error
//	if d.To.Before(d.From) {
//		wrong = append(wrong, toolkit.Invalid("to", "expected a time after from."))
//	}
//	…
//	if err := errors.Join(wrong...); err != nil {
//		return Report{}, err
//	}
func Invalid(field, format string, args ...any) error {
	return &Refusal{Code: codeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// refusalIn finds the Refusal in an error, or makes one of several that say what
// is wrong with arguments: all of them are told, in their order.
func refusalIn(err error) (*Refusal, bool) {
	var found []*Refusal
	collectRefusals(err, &found)
	var invalid []string
	for _, r := range found {
		if r.Code == codeInvalid {
			invalid = append(invalid, strings.TrimSuffix(r.Error(), "."))
		}
	}
	switch {
	case len(found) == 0:
		return nil, false
	case len(found) > 1 && len(invalid) == len(found):
		return &Refusal{Code: codeInvalid, Message: told(invalid).Error() + "."}, true
	}
	return found[0], true
}

func collectRefusals(err error, into *[]*Refusal) {
	if r, ok := err.(*Refusal); ok {
		*into = append(*into, r)
		return
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		collectRefusals(e.Unwrap(), into)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			collectRefusals(one, into)
		}
	}
}

// NotFound says that something the caller named does not exist. The text should
// name what does.
func NotFound(format string, args ...any) error {
	return &Refusal{Code: codeNotFound, Message: fmt.Sprintf(format, args...)}
}

// Refuse says that a well-formed call is not carried out, and why.
func Refuse(format string, args ...any) error {
	return &Refusal{Code: codeRefused, Message: fmt.Sprintf(format, args...)}
}

// RetryAfter says that the same call may work after d, such as when a service
// behind the tool limits its rate.
func RetryAfter(d time.Duration, format string, args ...any) error {
	return &Refusal{Code: codeRetry, RetryAfter: d, Message: fmt.Sprintf(format, args...)}
}

// newID names one failure, in the log and to the model.
func newID() string { return strings.ToLower(rand.Text()[:10]) }
