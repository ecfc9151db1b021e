package dragoman

import (
	"encoding/json"
	"time"
)

// A Result is what came of a call.
type Result struct {
	// Content is the MCP result object, byte for byte as the server sent it; nil
	// when Problem says why there is none.
	Content json.RawMessage

	// Failed reports that the tool itself said that it failed (isError).
	Failed bool

	// Problem says why we have no result of the tool: denied, timeout,
	// unknown_outcome and so on.
	Problem *Problem

	// Asks says that the call needs answers before it can go on; there is neither
	// Content nor Problem then.
	Asks *Asks

	// Task is the id of the task that the server made of the call, for a caller who
	// takes one; Content then describes the task, and the result comes later, by
	// requests of its own (tasks/get and others). Empty for a result.
	Task string

	// Ran says whether the call did anything. Retries, audit, turns and words to
	// the model ask nobody else.
	Ran Ran

	// Info is what we know about how the result came to be.
	Info Info
}

// Ran says whether a call ran at its server. Only the wire knows, and says no
// more than it knows.
type Ran uint8

const (
	// RanMaybe, the zero Ran: it may have run, in part or whole. The server was
	// too busy (429, 503), refused the arguments, gave no answer in time, or the
	// connection broke after the request was sent.
	RanMaybe Ran = iota
	// RanNot: it provably did not run. The request was not sent whole, the server
	// wanted credentials or had forgotten the session, does not know the method or
	// the protocol's version, a rule did not allow it, a person has to be asked
	// first, or the result is an earlier one.
	RanNot
	// RanYes: the server answered, be it with an error of the tool.
	RanYes
)

// String returns "maybe", "not" or "yes".
func (r Ran) String() string {
	switch r {
	case RanNot:
		return "not"
	case RanYes:
		return "yes"
	}
	return "maybe"
}

// After returns what is known of a call whose last leg says r and whose earlier
// legs said earlier: a continuation is never safer than they were.
func (r Ran) After(earlier *Answers) Ran {
	if earlier != nil && r == RanNot {
		return earlier.Ran
	}
	return r
}

// Info is what we know about how a [Result] came to be. It reaches the model in
// the envelope's meta member.
type Info struct {
	// Duration is the time from the start of the call to its result.
	Duration time.Duration
	// Cached reports that the result was taken from a cache.
	Cached bool
	// Truncated reports that a layer cut the content.
	Truncated bool
	// Note is a short remark for the model; empty for none.
	Note string
}
