package session

import (
	"fmt"
	"strings"
	"testing"
)

// TestAsked: what is kept of a request says how many tools it had, and has its beginning and
// more of its end.
func TestAsked(t *testing.T) {
	tools := `[{"type":"function"},{"type":"function"}]`
	counted := `"2 functions, 41 bytes: the catalogue shows them"`
	for _, history := range []string{`[{"role":"user","content":"Hi"}]`, `["` + strings.Repeat("Zürich und 東京, ", 100) + `"]`, `["` + strings.Repeat("Zürich und 東京, ", 4000) + `"]`} {
		for _, parts := range [][]string{{`{"model":"m","messages":` + history + `,"tools":` + tools + `,"stream":true}`}, {`{"model":"m","messages":`, history, `,"tools":`, tools, `,"stream":true}`}} {
			var body [][]byte
			for _, p := range parts {
				body = append(body, []byte(p))
			}
			want := `{"model":"m","messages":` + history + `,"tools":` + counted + `,"stream":true}`
			if len(want) > maxRequest {
				begin := strings.ToValidUTF8(want[:requestBegins], "")
				end := strings.ToValidUTF8(want[len(want)-(maxRequest-requestBegins):], "")
				want = fmt.Sprintf("%s\n… %d bytes are left out …\n%s", begin, len(want)-len(begin)-len(end), end)
			}
			if got := asked(body); got != want {
				t.Errorf("%d bytes in %d parts: %.200q … %.200q", len(history), len(parts), got, want)
			}
		}
	}
	if got := asked([][]byte{[]byte("no"), []byte(" JSON")}); got != "no JSON" {
		t.Errorf("got %q", got)
	}
}
