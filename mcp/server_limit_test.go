package mcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What bounds a message of a client can be another bound later.
func TestLimitMessages(t *testing.T) {
	s := &Server{Limits: Limits{Message: 1 << 10}, Host: func(*http.Request) (Host, error) { return &toolsetHost{}, nil }}
	defer s.Close()
	status := func(bytes int) int {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", bytes)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		_, _ = io.Copy(io.Discard, w.Result().Body)
		return w.Code
	}
	const fits, large = 400, 413 // what fits is no JSON
	for _, tt := range []struct {
		limit int64 // -1 leaves it
		bytes int
		want  int
	}{{-1, 1 << 10, fits}, {-1, 1<<10 + 1, large}, {2 << 10, 2 << 10, fits}, {2 << 10, 2<<10 + 1, large}, {10, 11, large}, {0, 1 << 20, fits}} {
		if tt.limit >= 0 {
			s.LimitMessages(tt.limit)
		}
		if got := status(tt.bytes); got != tt.want {
			t.Errorf("limit %d, %d bytes: %d", tt.limit, tt.bytes, got)
		}
	}
}
