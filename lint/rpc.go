package lint

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// An rpc is one JSON-RPC message as the server sent it.
type rpc struct {
	Version json.RawMessage `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

type rpcError struct {
	Code    json.RawMessage `json:"code"`
	Message string          `json:"message"`
}

// code is the code of an error, also where it was sent as a text; 0 where there is none.
func (e *rpcError) code() int64 {
	n, err := strconv.ParseInt(string(bytes.Trim(e.Code, `"`)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// parseRPC reads a message; ok is false for anything else, among it JSON that
// happens to be no message. An answer that only lacks what JSON-RPC wants of it is one,
// and its fault says so.
func parseRPC(line []byte) (m rpc, ok bool) {
	if rawjson.Kind(bytes.TrimSpace(line)) != '{' || json.Unmarshal(line, &m) != nil {
		return rpc{}, false
	}
	answers := m.Result != nil || m.Error != nil
	return m, m.versioned() && (m.Method != "" || answers) || answers && m.Method == "" && (!rawjson.IsNull(m.ID) || m.Error != nil && m.ID != nil)
}

func (m rpc) versioned() bool { return string(m.Version) == `"2.0"` }

// fault says what JSON-RPC does not allow about a message; empty for nothing.
func (m rpc) fault() string {
	switch {
	case !m.versioned() && m.Version == nil:
		return "an answer has no member \"jsonrpc\""
	case !m.versioned():
		return "an answer is of the version " + quote(string(m.Version)) + " of JSON-RPC"
	case m.Method != "":
		return ""
	case m.Result != nil && m.Error != nil:
		return "an answer is a result and an error"
	case m.Result != nil && rawjson.IsNull(m.ID):
		return "a result has no id"
	}
	if m.Error != nil {
		if _, isInt := rawjson.Int(m.Error.Code); !isInt {
			return "the code of an error is " + quote(string(m.Error.Code)) + ", and no integer"
		}
	}
	return ""
}

// answer is what a message is to whoever asked.
func (m rpc) answer() Answer {
	a := Answer{Result: m.Result}
	if m.Error != nil {
		a.Result, a.Code, a.Message, a.refused = nil, m.Error.code(), m.Error.Message, true
	}
	return a
}
