package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// An Error is a request to an upstream that got no answer.
type Error struct {
	// Host is the upstream's host and port.
	Host string
	// Address is where the upstream should be, without its query, and From what
	// says so: a key of the configuration or a variable of the environment.
	Address, From string
	// Err is what the transport says, such as a refused connection or the end of
	// the request's context.
	Err error
	// Waited is how long it took.
	Waited time.Duration
}

// Error says which upstream did not answer, and why.
func (e *Error) Error() string {
	if e.Timeout() {
		return fmt.Sprintf("the upstream %s did not answer within %s", e.Host, e.Waited.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("the upstream %s cannot be reached: %s", e.Host, e.cause())
}

// Told says the same in sentences for whoever sent the request: the address, the
// cause, and what to check.
func (e *Error) Told() string {
	if e.Timeout() {
		return fmt.Sprintf("The model's API at %s did not answer within %s.", e.Address, e.Waited.Round(100*time.Millisecond))
	}
	check := fmt.Sprintf("Check %s.", e.From)
	if safehttp.Proxy(e.Err) != nil {
		check = "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY."
	} else if _, ok := errors.AsType[*net.DNSError](e.Err); !ok {
		check = fmt.Sprintf("Check that it runs there, and %s.", e.From)
	}
	return fmt.Sprintf("The model's API at %s cannot be reached: %s. %s", e.Address, e.cause(), check)
}

// cause is what went wrong, without the address, which everybody knows by then.
func (e *Error) cause() string {
	if err := safehttp.Proxy(e.Err); err != nil {
		return "the proxy of the environment: " + reason(err)
	}
	return reason(e.Err)
}

func reason(err error) string {
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		if unknown.IsNotFound {
			return fmt.Sprintf("there is no host named %s", unknown.Name)
		}
		return "its host's name cannot be looked up: " + unknown.Err
	}
	if cause := safehttp.Cause(err); cause != "" {
		return cause
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports that the upstream was too slow to connect or to answer, as
// opposed to a caller that gave up.
func (e *Error) Timeout() bool {
	if errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, syscall.ETIMEDOUT) { // the machine is gone, by the word of ours
		return false
	}
	n, ok := errors.AsType[net.Error](e.Err)
	return ok && n.Timeout()
}
