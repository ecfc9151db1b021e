package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A message is one JSON-RPC message of the server, taken apart by one level.
type message struct {
	id     json.RawMessage // nil for none and for null
	method string          // empty: an answer
	params json.RawMessage
	result json.RawMessage
	err    *RPCError

	// bad says why an answer is not valid although it can be told whose it is.
	// With result set, the JSON is well formed on the outside only.
	bad error
}

func (m *message) answer() bool { return m.method == "" }

// number returns the id, when it is one that we may have given: an integer. An
// integer that comes back as a string or as 1.0 is taken too.
func (m *message) number() (int64, bool) { return number(m.id) }

func number(b []byte) (int64, bool) {
	b = bytes.Trim(b, `"`)
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if n := int64(f); err == nil && float64(n) == f {
		return n, true
	}
	return 0, false
}

// byteOrderMark is what some runtimes write in front of the first text of a stream. It says
// nothing in UTF-8, and a reader may ignore it (RFC 8259, section 8.1).
var byteOrderMark = []byte("\ufeff")

// readMessages calls f for each message in b: one, or those of a batch (MCP
// 2025-03-26). The messages are slices of b. An error says that something in b
// is no message.
func readMessages(b []byte, f func(message)) error {
	b = bytes.TrimPrefix(b, byteOrderMark)
	if len(b) > 0 && b[0] == '[' {
		parts, err := rawjson.Elements(b)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, err)
		}
		var first error
		for _, part := range parts {
			m, err := readMessage(part)
			if err == nil {
				f(m)
			} else if first == nil {
				first = err
			}
		}
		return first
	}
	m, err := readMessage(b)
	if err != nil {
		return err
	}
	f(m)
	return nil
}

func readMessage(b []byte) (message, error) {
	broken := validJSON(b)
	var room [5]rawjson.Member
	o := rawjson.Object{Members: room[:0]}
	if err := o.Parse(b); err != nil {
		if id := flatID(b, b); id != nil {
			return message{id: id, bad: fmt.Errorf("%w: not JSON", ErrAnswer)}, nil
		}
		return message{}, fmt.Errorf("%w: not a JSON object", ErrAnswer)
	}
	var m message
	var problem json.RawMessage
	seen := 0
	for _, member := range o.Members {
		switch member.Name {
		case "id":
			seen++
			if !rawjson.IsNull(member.Value) {
				m.id = member.Value
			}
		case "method":
			m.method, _ = rawjson.String(member.Value)
		case "params":
			m.params = member.Value
		case "result":
			seen++
			m.result = member.Value
		case "error":
			if !rawjson.IsNull(member.Value) {
				seen++
				problem = member.Value
			}
		}
	}
	if problem != nil && m.result != nil && rawjson.IsNull(m.result) { // as JSON-RPC 1.0 has it
		seen--
		m.result = nil
	}
	if m.method != "" {
		if broken != nil {
			return message{}, broken
		}
		return m, nil
	}
	switch {
	case problem == nil && m.result == nil:
		if m.id == nil {
			return message{}, fmt.Errorf("%w: neither a request nor an answer", ErrAnswer)
		}
		m.bad = fmt.Errorf("%w: neither result nor error", ErrAnswer)
	case seen != 2 && m.id != nil:
		m.bad = fmt.Errorf("%w: it is two answers in one", ErrAnswer)
		m.result = nil
	case problem != nil:
		m.err = readError(problem)
	case rawjson.Kind(m.result) != '{':
		m.bad = fmt.Errorf("%w: the result is not an object", ErrAnswer)
		m.result = nil
	default:
		m.bad = broken
	}
	return m, nil
}

// readError reads an error object as far as it is one.
func readError(b json.RawMessage) *RPCError {
	e := &RPCError{Code: codeInternal}
	o, err := rawjson.ParseObject(b)
	if err != nil {
		e.Message, _ = rawjson.String(b)
		return e
	}
	if code, ok := number(o.Get("code")); ok {
		e.Code = code
	}
	e.Message, _ = rawjson.String(o.Get("message"))
	e.Data = o.Get("data")
	return e
}

// validJSON reports why b is not one JSON text in UTF-8. Duplicate names and
// lone surrogates in escapes pass: they are the server's own, and a result is
// relayed as it came.
func validJSON(b []byte) error {
	if !utf8.Valid(b) {
		return fmt.Errorf("%w: not UTF-8", ErrAnswer)
	}
	if !jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return fmt.Errorf("%w: not JSON", ErrAnswer)
	}
	return nil
}

// flatID finds the id of a message of which only the head and the tail are
// known to be whole: JSON-RPC libraries write the id either before or after the
// large member, next to the outer brace. It returns nil where it could be wrong.
func flatID(head, tail []byte) json.RawMessage {
	d := jsontext.NewDecoder(bytes.NewReader(head))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			break
		}
		isID := name.String() == "id"
		if isID {
			if v, err := d.ReadValue(); err == nil && (v.Kind() == '0' || v.Kind() == '"') {
				return json.RawMessage(bytes.Clone(v))
			}
			return nil
		}
		if k := d.PeekKind(); k == '{' || k == '[' || d.SkipValue() != nil {
			break // the large member: what follows is not flat
		}
	}
	return tailID(tail)
}

// tailID reads the flat members in front of the last brace, backwards:
// …,"jsonrpc":"2.0","id":7}
func tailID(tail []byte) json.RawMessage {
	tail = bytes.TrimSpace(tail)
	if len(tail) == 0 || tail[len(tail)-1] != '}' {
		return nil
	}
	at := bytes.LastIndexAny(tail[:len(tail)-1], "{}[]")
	if at < 0 || tail[at] == '{' || tail[at] == '[' {
		return nil // the members belong to an inner object, or to nobody knows what
	}
	rest := bytes.TrimLeft(tail[at+1:], " \t,")
	o, err := rawjson.ParseObject(append([]byte{'{'}, rest...))
	if err != nil || o.Get("jsonrpc") == nil || o.Get("id") == nil {
		return nil
	}
	return o.Get("id")
}

// notification returns a notification; params may be nil.
func notification(method string, params json.RawMessage) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","method":`), rawjson.Quote(method)...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// replyHead returns how an answer with a result begins, up to the result.
func replyHead(id json.RawMessage) []byte {
	b := append(make([]byte, 0, len(id)+40), `{"jsonrpc":"2.0","id":`...)
	return append(append(b, id...), `,"result":`...)
}

// reply returns the answer to a request of the server.
func reply(id, result json.RawMessage, err error) []byte {
	if err == nil {
		head := replyHead(id)
		b := make([]byte, 0, len(head)+len(result)+2) // a newline may follow
		return append(append(append(b, head...), result...), '}')
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	e, ok := errors.AsType[*RPCError](err)
	if !ok {
		e = &RPCError{Code: codeInternal, Message: "the client failed to answer"}
	}
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, e.Code, 10)
	b = append(b, `,"message":`...)
	b = rawjson.AppendQuote(b, e.Message)
	return append(b, `}}`...)
}
