package mcp

import (
	"strings"
	"testing"
)

// TestCrowdedMessageIsRefused: a message of more members than reading is for is refused
// as too large, not as broken.
func TestCrowdedMessageIsRefused(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[` + strings.Repeat(`{"abcdefg":0},`, 1_000_000) + `0]}}}`
	if _, e := readInbound([]byte(in)); e == nil || e.Code != codeInvalidRequest || !strings.Contains(e.Message, "too large") {
		t.Errorf("%v", e)
	}
}
