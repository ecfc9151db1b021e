package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// ask sends a request to the upstream. The first round's failure goes to the
// client, which knows best whether to try again; later ones are tried again
// here, where no tool has to run twice for it.
func (c *Chat) ask(ctx context.Context, body [][]byte) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := c.options.Post(ctx, body)
		if err == nil && resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		if ctx.Err() != nil {
			closeBody(resp)
			return nil, context.Cause(ctx)
		}
		failure := c.failure(resp, err)
		wait, again := retryAfter(failure, attempt)
		if !again || len(c.rounds) == 0 || attempt == 2 {
			return nil, failure
		}
		c.options.Log.Warn("asking the model again", "round", len(c.rounds)+1, "attempt", attempt+2, "after", wait, "error", failure)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// drain reads an answer to its very end, which should be there already, so that
// the connection can be used again, and closes it.
func drain(body io.ReadCloser) {
	timer := time.AfterFunc(100*time.Millisecond, func() { body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	body.Close()
}

func closeBody(resp *http.Response) {
	if resp != nil {
		resp.Body.Close()
	}
}

func (c *Chat) failure(resp *http.Response, err error) *Error {
	if err == nil {
		defer resp.Body.Close()
		return statusError(resp)
	}
	return Unreachable(err)
}

// Unreachable returns the error for an upstream that gave no answer, or err if it
// is an [*Error] already.
func Unreachable(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{
		Status: http.StatusBadGateway, Type: TypeServer, Code: CodeUpstreamUnreachable,
		Message: "The model's API can not be reached.", Err: err,
	}
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		e.Status, e.Code, e.Message = http.StatusGatewayTimeout, CodeUpstreamTimeout, "The model's API did not answer in time."
	}
	return e
}

// retryAfter says whether and when a failed model request is worth another try.
func retryAfter(e *Error, attempt int) (time.Duration, bool) {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return 0, false
	}
	wait := 500 * time.Millisecond << attempt
	if s := e.Header.Get("Retry-After"); s != "" {
		asked, err := time.ParseDuration(s + "s")
		if err != nil || asked > 20*time.Second || asked < 0 {
			return 0, false
		}
		wait = asked
	}
	return wait, true
}
