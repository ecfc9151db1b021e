package dragoman

import (
	"errors"
	"strings"
	"time"
)

// Codes of a [Problem]. They are stable: models are told about them, programs
// branch on them, and they stand in logs.
const (
	// CodeUnknownTool: nobody offered a tool of that name.
	CodeUnknownTool = "unknown_tool"
	// CodeInvalidArguments: the arguments are not JSON, or do not fit the tool's
	// input schema. Fields tells which.
	CodeInvalidArguments = "invalid_arguments"
	// CodeTruncated: the arguments end before they are complete. They are never
	// completed by guessing.
	CodeTruncated = "truncated"
	// CodeTimeout: there was no answer in time, and trying again does no harm.
	CodeTimeout = "timeout"
	// CodeUnknownOutcome: the call was sent, no answer came, and the tool may
	// have changed something.
	CodeUnknownOutcome = "unknown_outcome"
	// CodeServerUnavailable: the MCP server is not running or cannot be reached;
	// the call was not sent.
	CodeServerUnavailable = "server_unavailable"
	// CodeNeedsAuthorization: the MCP server asks for credentials that we do not
	// have.
	CodeNeedsAuthorization = "needs_authorization"
	// CodeProtocol: the MCP server answered with a protocol error, or with
	// something that is not an answer.
	CodeProtocol = "server_error"
	// CodeTooLarge: the result, or the request, is over a size limit.
	CodeTooLarge = "too_large"
	// CodeBudget: the conversation has used up its calls, bytes or time, or the caller
	// its budget of tokens or money.
	CodeBudget = "budget_exhausted"
	// CodeRateLimited: too many calls in a time, or at a time. RetryAfter says when to
	// try again.
	CodeRateLimited = "rate_limited"
	// CodeRepeated: the same call that may change something was made twice in a
	// row.
	CodeRepeated = "repeated_call"
	// CodeDenied: a rule or a person did not allow the call.
	CodeDenied = "denied"
	// CodeCanceled: the call was cancelled before it ended.
	CodeCanceled = "canceled"
	// CodeUnanswered: the call asked a question and nobody answered.
	CodeUnanswered = "unanswered"
	// CodeInternal: the trouble is our own.
	CodeInternal = "internal_error"
	// CodeInvalidTool: the tool's definition cannot be used (quarantine).
	CodeInvalidTool = "invalid_tool"
	// CodeNotApproved: nobody has approved the tool as its server defines it now
	// (quarantine).
	CodeNotApproved = "not_approved"
)

// A Problem says why there is no result, or why a tool is not offered, in words
// that a model and a person can act on. It never holds addresses, stack traces
// or other details of our own machine.
type Problem struct {
	// Code is one of the Code constants.
	Code string
	// Message is one or two sentences: what happened and what to do about it.
	Message string
	// AuditID names the record in the log or audit trail; empty for none.
	AuditID string
	// Fields are the arguments that are missing or wrong, for
	// CodeInvalidArguments.
	Fields []Field
	// RetryAfter is how long to wait before the same call may succeed; zero when
	// we do not know.
	RetryAfter time.Duration
	// Err is the trouble behind it, for the log of this machine; nil where there
	// is no more to say. It is never told to a model.
	Err error
}

// A Field is one argument that is missing or wrong.
type Field struct {
	// Path is a JSON pointer (RFC 6901) into the arguments; empty for the whole.
	Path string
	// Expected says what would be right, such as "string" or "one of 'a', 'b'".
	Expected string
	// Missing reports that a required argument is absent; Path then ends with
	// its name.
	Missing bool
}

// Error returns the message with its code, so that a Problem can travel as an
// error where no Result is at hand.
func (p *Problem) Error() string {
	if p.Message == "" {
		return p.Code
	}
	return p.Code + ": " + p.Message
}

// Unwrap returns Err.
func (p *Problem) Unwrap() error { return p.Err }

// AsProblem returns the Problem that err is or wraps, or nil.
func AsProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	return nil
}

// Failure returns the Result of a call that did not run, with nothing but a
// problem in it.
func Failure(code, message string) Result {
	return Result{Problem: &Problem{Code: code, Message: message}, Ran: RanNot}
}

// Unanswered returns the problem of a call of t that was sent and came to no
// answer, for the reason that why says in a sentence. Where t writes, what came
// of the call is not known; where it only reads, it can be made again. t may be
// nil.
func Unanswered(t *Tool, why string) *Problem {
	if t != nil && t.Writes() {
		return &Problem{Code: CodeUnknownOutcome, Message: why + " The call may or may not have taken effect: check before you repeat it."}
	}
	return &Problem{Code: CodeTimeout, Message: why + " Try again later, or ask for less.", RetryAfter: 5 * time.Second}
}

// Name returns the last segment of the field's path, unescaped: the argument's
// own name.
func (f Field) Name() string {
	name := f.Path[strings.LastIndexByte(f.Path, '/')+1:]
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}
