package recall

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/memory"
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

// TestNamedTurnIsToldWhatIsSo checks that a client that names its turn waits for its API, since what
// it sends again goes on, where that is kept; but makes no shorter history.
func TestNamedTurnIsToldWhatIsSo(t *testing.T) {
	limited := &model.Error{Status: http.StatusTooManyRequests, Type: model.TypeServer, Message: "slowly", Header: http.Header{"Retry-After": {"25"}}}
	long := &model.Error{Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeUpstreamInvalid, Message: "prompt is too long: maximum context length is 8 tokens, your messages resulted in 9 tokens"}
	for _, tt := range []struct {
		kept memory.Store
		err  error
		want int
	}{
		{&memory.Memory{}, limited, http.StatusTooManyRequests},
		{&memory.Memory{}, long, http.StatusNotAcceptable},
		{nil, limited, http.StatusNotAcceptable},
	} {
		told := (&Thread{Request: Request{Turn: true}, Memory: tt.kept, Dialogue: &model.Dialogue{Wrote: true}}).Told(tt.err, "")
		if told.Status != tt.want || told.Status == http.StatusTooManyRequests && (told.Header.Get("Retry-After") != "25" || told.Header.Get("X-Should-Retry") != "") {
			t.Errorf("%v: %d %v, want %d", tt.err, told.Status, told.Header, tt.want)
		}
	}
}

// TestOverfull checks that a client does not take what tools have made too long for a history
// of its own that is, neither by a code nor by words: it would make that shorter and have the
// tools called once more.
func TestOverfull(t *testing.T) {
	const said = "prompt is too long: maximum context length is 8 tokens, your messages resulted in 9 tokens"
	for _, e := range []*model.Error{
		{Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeUpstreamInvalid, Message: said},
		{Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Body: []byte(`{"error":{"message":"` + said + `","code":"context_length_exceeded"}}`)},
	} {
		if told := (&Thread{Dialogue: &model.Dialogue{}}).Told(e, ""); told.Status != http.StatusBadRequest || !told.TooLong() {
			t.Errorf("nothing written: %+v", told)
		}
		told := (&Thread{Dialogue: &model.Dialogue{Wrote: true}}).Told(e, "")
		if told.Status != http.StatusNotAcceptable || told.TooLong() || told.Type != model.TypeInvalidRequest || told.Code != model.CodeInvalidPrompt || told.Body != nil || strings.Contains(told.Message, "too long") || strings.Contains(told.Message, "context") {
			t.Errorf("written: %+v", told)
		}
	}
}
