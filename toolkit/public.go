package toolkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/wire/addresses"
	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
)

// IsPublic reports whether an address belongs to the public Internet: not this
// machine, not its network, not the metadata service of a cloud. An address with
// a zone does not.
func IsPublic(a netip.Addr) bool { return addresses.Public(a) }

// errPrivate is why a connection was not made.
var errPrivate = errors.New("not a public address")

// PublicDialer returns a dialer that connects to public addresses only. It
// looks at the address that is really dialled, after names were resolved, so a
// name that changes its mind does not help.
func PublicDialer() *net.Dialer {
	return &net.Dialer{
		Timeout: 10 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !IsPublic(at.Addr()) {
				return fmt.Errorf("%s: %w", address, errPrivate)
			}
			return nil
		},
	}
}

// PublicClient returns an HTTP client for addresses that come from a model: it
// connects to public addresses only, follows at most five redirects, uses no
// proxy, keeps no cookies, and gives up after the timeout (zero: 30 seconds).
// Read bodies with [ReadAll].
func PublicClient(timeout time.Duration) *http.Client {
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	t := &http.Transport{
		DialContext:            PublicDialer().DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  timeout,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConns:           20,
		IdleConnTimeout:        time.Minute,
	}
	plainhttp.SendOnce(t)
	return &http.Client{
		Timeout:   timeout,
		Transport: t,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) >= 5 {
				return errors.New("more than five redirects")
			}
			_, err := PublicURL("location", req.URL.String())
			return err
		},
	}
}

// PublicURL checks an address that came as the argument named field: http or
// https, a host, no user name or password, and no private address where the host
// is one. Names are only known when dialled; use [PublicClient].
func PublicURL(field, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, Invalid(field, "%q is not an http or https address.", address)
	}
	if u.User != nil {
		return nil, Invalid(field, "leave user name and password out of the address.")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil && !IsPublic(a) {
		return nil, Invalid(field, "%q is not a public address.", u.Host)
	}
	for _, local := range []string{"localhost", ".localhost", ".local", ".internal"} {
		if host == local || strings.HasPrefix(local, ".") && strings.HasSuffix(host, local) {
			return nil, Invalid(field, "%q is not a public address.", u.Host)
		}
	}
	return u, nil
}

// ReadAll reads at most limit bytes and refuses more.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := readBeyond(r, limit)
	if err == nil && int64(len(data)) > limit {
		return nil, &Refusal{Code: codeTooLarge, Message: fmt.Sprintf("The answer is larger than %d bytes.", limit)}
	}
	return data, err
}

// readBeyond reads at most one byte more than limit, which shows that there is more.
func readBeyond(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, min(limit, math.MaxInt64-1)+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return data, nil
}

// shellMeta are the characters that mean something to a shell, of Unix or of
// Windows.
const shellMeta = "|&;<>()$`\\\"'*?[]{}#~!%^\n\r\t\x00"

// PlainArgument refuses a text that must not become part of a command: shell
// metacharacters, control characters, a leading "-" that would be an option.
// Prefer [os/exec.Command] with separate arguments, which needs no shell; this
// is for what the called program itself would misread.
func PlainArgument(field, text string) error {
	if i := strings.IndexAny(text, shellMeta); i >= 0 {
		return Invalid(field, "%q must not contain %q.", text, text[i])
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return Invalid(field, "%q must not contain control characters.", text)
	}
	if strings.HasPrefix(text, "-") {
		return Invalid(field, "%q must not begin with a dash.", text)
	}
	if strings.TrimSpace(text) == "" {
		return Invalid(field, "must not be empty.")
	}
	return nil
}
