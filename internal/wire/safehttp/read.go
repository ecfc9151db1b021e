package safehttp

import (
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is what reading returns, wrapped, once a body is over its limit.
var ErrTooLarge = errors.New("body is too large")

// ReadAll reads r to its end, but no more than limit bytes: a longer body is an
// error that wraps [ErrTooLarge], and what was read of it is not returned.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit)
	}
	return body, nil
}

// LimitBody returns body with a limit: the read that would go beyond limit
// bytes returns what fits and then an error that wraps [ErrTooLarge]. Unlike
// [io.LimitReader] it does not let a cut body pass for a whole one.
func LimitBody(body io.ReadCloser, limit int64) io.ReadCloser {
	return &limitedBody{body: body, limit: limit, left: limit}
}

type limitedBody struct {
	body        io.ReadCloser
	limit, left int64
}

func (l *limitedBody) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, fmt.Errorf("%w: over %d bytes", ErrTooLarge, l.limit)
	}
	// One byte more than is left tells a body that ends at the limit from one
	// that goes on.
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.body.Read(p)
	if int64(n) <= l.left {
		l.left -= int64(n)
		return n, err
	}
	n = int(l.left)
	l.left = -1
	return n, fmt.Errorf("%w: over %d bytes", ErrTooLarge, l.limit)
}

func (l *limitedBody) Close() error { return l.body.Close() }
