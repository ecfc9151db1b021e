package recall

import (
	"net/http"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// TestNoRetry checks that nobody repeats by themselves what may have changed something.
// LangChain for JavaScript goes by the status alone.
func TestNoRetry(t *testing.T) {
	for status := 400; status < 600; status++ {
		e := &model.Error{Status: status, Type: model.TypeInvalidRequest, Message: "no"}
		for _, wrote := range []bool{false, true} {
			told := (&Thread{Dialogue: &model.Dialogue{Wrote: wrote}}).Told(e, "req_1")
			repeated := told.Status > 407 && told.Status != http.StatusRequestEntityTooLarge
			switch {
			case !wrote && (told.Status != status || told.Header.Get("X-Should-Retry") != ""):
				t.Errorf("%d, nothing written: %d %v", status, told.Status, told.Header)
			case wrote && (repeated || told.Header.Get("X-Should-Retry") != "false"):
				t.Errorf("%d, written: %d %v", status, told.Status, told.Header)
			case wrote && told.Status != status && told.Type != model.TypeServer:
				t.Errorf("%d, written: the request is said to be wrong", status)
			}
		}
	}
}
