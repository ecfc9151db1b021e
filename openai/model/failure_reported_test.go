package model

import (
	"encoding/json"
	"net/http"
	"testing"
)

// TestReportedTooLong: a request that is too long is so wherever that is said, and is not to be
// repeated. A limit of requests passes, whatever it calls them.
func TestReportedTooLong(t *testing.T) {
	for failure, want := range map[string]int{
		`{"message":"This model's maximum context length is 8 tokens.","code":400}`:                      http.StatusBadRequest,
		`{"message":"Context size has been exceeded.","code":500,"type":"server_error"}`:                 http.StatusBadRequest,
		`"the context window is 8 tokens"`:                                                               http.StatusBadRequest,
		`{"message":"Too many requests with a context window above 200K.","code":"rate_limit_exceeded"}`: http.StatusBadGateway,
		`{"message":"Too many requests with a context window above 200K.","type":"rate_limit_error"}`:    http.StatusBadGateway,
		`{"message":"Too many requests with a context window above 200K.","code":429}`:                   http.StatusBadGateway,
		`{"message":"No instance with this context length is free.","type":"overloaded_error"}`:          http.StatusBadGateway,
		`{"message":"No instance with this context length is free.","code":503}`:                         http.StatusBadGateway,
	} {
		if e := reported(json.RawMessage(failure)); e.Status != want || e.TooLong() != (want == http.StatusBadRequest) {
			t.Errorf("%s: %d, too long %v", failure, e.Status, e.TooLong())
		}
	}
}
