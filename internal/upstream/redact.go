package upstream

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/pace"
)

const (
	maxErrorBody  = 1 << 20          // bytes of an error's body; the rest is left out
	errorBodyIdle = 10 * time.Second // an error that stops in the middle ends there
	minSecret     = 8                // characters; anything shorter could be any word
)

// redact makes the answer that reports an error fit to be shown: some APIs
// repeat the key that they refuse, and it is ours. The body is read, since a
// secret could lie across any two parts of it.
func (u *Upstream) redact(res *http.Response) {
	body := pace.Reader(res.Body, errorBodyIdle)
	text := readError(body, res.Header.Get("Content-Encoding"))
	_ = body.Close()
	res.Header.Del("Content-Encoding")
	for _, secret := range u.secrets {
		text = bytes.ReplaceAll(text, secret, []byte("***"))
		for _, values := range res.Header {
			for i, value := range values {
				values[i] = string(bytes.ReplaceAll([]byte(value), secret, []byte("***")))
			}
		}
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
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
	switch encoding {
	case "", "identity":
	case "gzip":
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
