package toolkit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lines stands between the SDK and the two streams of the stdio transport. The
// SDK's reader ends the session at the first line that is not JSON or no message,
// and at space behind one, and every later call fails; JSON-RPC wants such a line
// answered with the error -32700 or -32600 (JSON-RPC 2.0, 5.1), and nothing else to
// happen. Of a batch it waits for the answer to each notification in it, and ends the
// session at the second one: so the messages of a batch come to it one by one, and are
// answered so.
type lines struct {
	io.Closer // of the input
	in        *bufio.Reader
	rest      []byte // of the line that is being read

	mu  sync.Mutex
	out io.WriteCloser
}

// parseError is the answer to what is not JSON, whose id nobody knows.
const parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a message is one line of JSON"}}` + "\n"

// invalidRequest is the answer to JSON that is no message.
const invalidRequest = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: a line is a JSON-RPC 2.0 message"}}` + "\n"

// byteOrderMark is what some runtimes write in front of the first text of a stream. It says
// nothing in UTF-8, and a reader may ignore it (RFC 8259, section 8.1).
var byteOrderMark = []byte("\ufeff")

func newLines(in io.ReadCloser, out io.WriteCloser) *lines {
	return &lines{Closer: in, in: bufio.NewReader(in), out: out}
}

// Read passes on lines that are messages, and answers the others. Blank lines pass.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		line = bytes.TrimPrefix(line, byteOrderMark)
		if message := bytes.TrimSpace(line); len(message) > 0 && len(line) <= maxLine {
			taken, refusals := judge(message)
			if refusals != nil {
				if err != nil { // the input ended within a message
					return 0, err
				}
				if _, err := l.writer().Write(refusals); err != nil {
					return 0, err
				}
			}
			l.rest = taken
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

// judge returns what of a line the SDK's reader takes, a message on each line, and the
// answers to what it does not take; nil for none.
func judge(line []byte) (taken, refusals []byte) {
	if !json.Valid(line) {
		return nil, []byte(parseError)
	}
	batch := []json.RawMessage{line}
	if line[0] == '[' {
		batch = nil // or the first of them is written over the line
		if json.Unmarshal(line, &batch) != nil || len(batch) == 0 {
			return nil, []byte(invalidRequest)
		}
	}
	for _, one := range batch {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			refusals = append(refusals, invalidRequest...)
			continue
		}
		taken = append(append(taken, one...), '\n')
	}
	return taken, refusals
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
