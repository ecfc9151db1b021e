package rehearsal_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// BenchmarkServe says what the model costs a benchmark that has it as its
// upstream.
func BenchmarkServe(b *testing.B) {
	many := func(n int) []any {
		var list []any
		for i := range n {
			suffix := string(rune('a'+i/26)) + string(rune('a'+i%26))
			list = append(list, toolset(strings.Replace(restaurantTool, "find_restaurant", "find_restaurant_"+suffix, 1))...)
		}
		return list
	}
	for name, body := range map[string]request{
		"plain":           {"messages": user("hello")},
		"stream":          {"messages": user("SAY one two three four five"), "stream": true},
		"tools directive": {"messages": user("SAY ok"), "tools": many(100)},
		"tools choose":    {"messages": user("Find an Italian restaurant in Shanghai"), "tools": many(100)},
	} {
		text := body.String()
		b.Run(name, func(b *testing.B) {
			m := &rehearsal.Model{}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				w := httptest.NewRecorder()
				m.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(text)))
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
