package toolkit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// lines stands between the SDK and the two streams of the stdio transport. The
// SDK's reader ends the session at the first line that is not JSON, and every
// later call fails; JSON-RPC wants such a line answered with the error -32700
// (JSON-RPC 2.0, 5.1), and nothing else to happen.
type lines struct {
	io.Closer // of the input
	in        *bufio.Reader
	rest      []byte // of the line that is being read

	mu  sync.Mutex
	out io.WriteCloser
}

// parseError is the answer to what is not JSON, whose id nobody knows.
const parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a message is one line of JSON"}}` + "\n"

func newLines(in io.ReadCloser, out io.WriteCloser) *lines {
	return &lines{Closer: in, in: bufio.NewReader(in), out: out}
}

// Read passes on lines that are JSON, and answers the others. Blank lines pass.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		if len(bytes.TrimSpace(line)) > 0 && len(line) <= maxLine && !json.Valid(line) {
			if err != nil { // the input ended within a message
				return 0, err
			}
			if _, err := l.writer().Write([]byte(parseError)); err != nil {
				return 0, err
			}
			continue
		}
		if len(line) == 0 && err != nil {
			return 0, err
		}
		l.rest = line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// maxLine is the length of a line that is looked at; a longer one passes, for the
// SDK to refuse.
const maxLine = 16 << 20

func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return line, nil
		}
	}
}

// writer is the output, into which our answers and the SDK's go one at a time.
func (l *lines) writer() io.WriteCloser { return lineWriter{l} }

type lineWriter struct{ *lines }

func (w lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

func (w lineWriter) Close() error { return w.out.Close() }
