package caller

import (
	"net/http"
	"strings"
	"time"
)

// A Refusal is why a request is not answered: nobody was recognised.
type Refusal struct {
	// Status is 400 for a request that shows two things at once, 401 where nothing
	// that is good was shown, 403 where it is good for other things, and 503 where we
	// could not find out.
	Status int
	// Code names the reason for programs: "invalid_api_key", "invalid_token",
	// "insufficient_scope", "ambiguous_credentials", "unavailable".
	Code string
	// Message tells the caller what they can mend themselves, and no more.
	Message string
	// Challenge is the value of WWW-Authenticate (RFC 6750 section 3, RFC 9728 section
	// 5.1); empty for none.
	Challenge string
	// RetryAfter is when to try again; zero says nothing.
	RetryAfter time.Duration
	// Err is the reason for our log; it may be nil.
	Err error
}

// Error returns the reason for our log.
func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Code + ": " + r.Err.Error()
	}
	return r.Code + ": " + r.Message
}

// Unwrap returns Err.
func (r *Refusal) Unwrap() error { return r.Err }

// Refused returns what the caller is told, by which every door renders the refusal in
// its own form.
func (r *Refusal) Refused() (status int, code, message string) { return r.Status, r.Code, r.Message }

// unavailable is a refusal for our own trouble. What it is stands in the log.
func unavailable(err error, after time.Duration) *Refusal {
	return &Refusal{
		Status: http.StatusServiceUnavailable, Code: "unavailable", RetryAfter: after, Err: err,
		Message: "It cannot be found out now who is asking. That is no fault of your credentials: try again.",
	}
}

// A challenge is the parameters of a Bearer challenge in their order.
type challenge []string

// with adds a parameter that has a value. Quotes and backslashes, which would end
// it, and what a header cannot carry, are left out.
func (c challenge) with(name, value string) challenge {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, value)
	if value == "" {
		return c
	}
	return append(c, name+`="`+value+`"`)
}

func (c challenge) String() string {
	if len(c) == 0 {
		return "Bearer"
	}
	return "Bearer " + strings.Join(c, ", ")
}
