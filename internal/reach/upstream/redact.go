package upstream

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/coding"
	"github.com/dragoman-mcp/dragoman/internal/wire/deadline"
)

const (
	maxErrorBody  = 1 << 20          // bytes of an error's body; the rest is left out
	errorBodyIdle = 10 * time.Second // an error that stops in the middle ends there
)

// redactHeader hides our secrets in the header of an answer: some APIs repeat what
// they refuse, or send it on. Where nothing is wrong they may be in the addresses of what
// was made, and other fields stay as they are: a header of ours may say what many do.
func (u *Upstream) redactHeader(res *http.Response) {
	for name, values := range res.Header {
		if res.StatusCode < 300 && name != "Link" && !strings.HasSuffix(name, "Location") {
			continue
		}
		for i, value := range values {
			values[i] = u.mask.Hide(value)
		}
	}
}

// redactBody hides our secrets in the body of an answer that reports an error, or that
// sends the client elsewhere, which many servers say in a page, too. It is read, since a
// secret could lie across any two parts of it.
func (u *Upstream) redactBody(res *http.Response) {
	body := deadline.Reader(res.Body, errorBodyIdle)
	text := u.mask.Hide(string(readError(body, res.Header.Get("Content-Encoding"))))
	_ = body.Close()
	res.Header.Del("Content-Encoding")
	res.Body = io.NopCloser(strings.NewReader(text))
	res.ContentLength = int64(len(text))
	res.TransferEncoding = nil
	if res.Header.Get("Content-Length") != "" {
		res.Header.Set("Content-Length", strconv.Itoa(len(text)))
	}
}

// unreadable stands for an error whose encoding we do not know, and so cannot
// look into.
const unreadable = `{"error":{"message":"The upstream answered with an error in an encoding that cannot be looked into.","type":"server_error","param":null,"code":null}}`

// readError reads the body of an error, decoded, as far as it comes.
func readError(body io.Reader, encoding string) []byte {
	switch {
	case !coding.Compresses(encoding):
	case strings.EqualFold(encoding, "gzip"), strings.EqualFold(encoding, "x-gzip"):
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return []byte(unreadable)
		}
		body = unzipped
	default:
		return []byte(unreadable)
	}
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
	return text
}
