package session

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

func TestOutputSchemaIsChecked(t *testing.T) {
	var o outputs
	tool := &dragoman.Tool{OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	if err := o.check(tool, json.RawMessage(`{"n":1}`)); err != nil {
		t.Errorf("a result that fits: %v", err)
	}
	for range 2 { // the second time from what is kept
		if err := o.check(tool, json.RawMessage(`{"n":"x"}`)); err == nil || !strings.Contains(err.Error(), "/n") {
			t.Errorf("a result that does not fit: %v", err)
		}
	}
	if err := o.check(&dragoman.Tool{}, json.RawMessage(`{}`)); err != nil {
		t.Errorf("without a schema: %v", err)
	}
}
