package messages

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// TestKindMidway: an error that the upstream reports within its answer is of the kind that it
// says, in the words of whichever API it has. What says nothing known is the API's fault.
func TestKindMidway(t *testing.T) {
	for failure, want := range map[string]string{
		`{"message":"m","type":"tokens","code":"rate_limit_exceeded"}`:                    "rate_limit_error",
		`{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}`:         "rate_limit_error",
		`{"message":"m","code":"server_is_overloaded"}`:                                   "overloaded_error",
		`{"message":"m","type":"overloaded_error"}`:                                       "overloaded_error",
		`{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}`: "invalid_request_error",
		`{"message":"m","type":"BadRequestError","code":400}`:                             "invalid_request_error",
		`{"message":"m","code":429}`:                                                      "rate_limit_error",
		`{"message":"m","code":503,"status":"UNAVAILABLE"}`:                               "overloaded_error",
		`{"message":"m","type":"server_error","code":"server_error"}`:                     "api_error",
		`{"message":"m","code":500}`:                                                      "api_error",
		`{"message":"m","code":null,"type":null}`:                                         "api_error",
		`{"message":"m"}`: "api_error",
		`null`:            "api_error",
	} {
		if got := kindMidway(&model.Error{Status: 502, Type: model.TypeServer, Body: json.RawMessage(`{"error":` + failure + `}`)}); got != want {
			t.Errorf("%s: %s, want %s", failure, got, want)
		}
	}
	limit := json.RawMessage(`{"error":{"message":"m","code":"rate_limit_exceeded"}}`)
	for want, e := range map[string]*model.Error{
		"api_error":        {Status: 406, Type: model.TypeServer, Body: limit}, // behind a call that changed something: not to be repeated
		"timeout_error":    {Status: 504, Type: model.TypeServer, Code: model.CodeUpstreamTimeout},
		"rate_limit_error": {Status: 429, Type: model.TypeRateLimit},
	} {
		if got := kindMidway(e); got != want {
			t.Errorf("%d: %s, want %s", e.Status, got, want)
		}
	}
}

// A conversation that the server is to hold is refused by the code with which Anthropic's
// SDK sends the whole of it instead: without what was said before the answer would be wrong.
func TestThreadsAreRefused(t *testing.T) {
	for _, thread := range []string{`{"type":"create"}`, `{"type":"continue","previous_message_id":"msg_1"}`} {
		_, err := Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"And then?"}],"thread":` + thread + `}`))
		e, ok := model.AsError(err)
		if !ok {
			t.Fatalf("%s: %v", thread, err)
		}
		w := httptest.NewRecorder()
		WriteError(w, e)
		if body := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(body, `"type":"invalid_request_error"`) || !strings.Contains(body, `"details":{"error_code":"thread_unsupported_request"}`) {
			t.Errorf("%s: %d %s", thread, w.Code, body)
		}
	}
	if _, err := Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"thread":null}`)); err != nil {
		t.Errorf("without one: %v", err)
	}
}

// A request for a summary in place of a turn is refused: as a turn, it would run tools.
func TestCompactionIsRefused(t *testing.T) {
	_, err := Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"compaction":{"type":"summarize"}}`))
	if e, ok := model.AsError(err); !ok || e.Status != http.StatusBadRequest || e.Param != "compaction" {
		t.Errorf("%v", err)
	}
}

// What a model without eyes is refused for is said in the words by which Claude Code takes
// pictures out of its history. Other errors keep theirs.
func TestRefusedPictures(t *testing.T) {
	for said, want := range map[string]string{
		"At most 0 image(s) may be provided in one prompt.": "could not process image: At most 0 image(s) may be provided in one prompt.",
		"m is not a multimodal model":                       "could not process image: m is not a multimodal model",
		"Could not process image":                           "Could not process image",
		"Provisioned throughput is missing.":                "Provisioned throughput is missing.",
	} {
		e := &model.Error{Status: http.StatusBadRequest, Code: model.CodeUpstreamInvalid, Body: json.RawMessage(`{"error":{"message":"` + said + `","code":400}}`)}
		if got := inItsWords(e, true); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, e := range []*model.Error{
		{Status: http.StatusBadRequest, Code: model.CodeInvalidRequest, Message: "The image is wrong."},
		{Status: http.StatusTooManyRequests, Code: model.CodeUpstreamInvalid, Message: "Too many images."},
	} {
		if got := inItsWords(e, true); got != e.Message {
			t.Errorf("%q, want %q", got, e.Message)
		}
	}
}

// What is too long only together with the answer that it allows is said so, in the words by
// which Claude Code asks for a shorter one. By "prompt is too long" it would end a session of
// one message, and not say why.
func TestNoRoomForTheAnswer(t *testing.T) {
	const tooMuch = "input length and `max_tokens` exceed context limit: 12000 + 32000 > 32768: "
	for said, want := range map[string]string{
		"'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 12000 input tokens (32000 > 32768 - 12000).":                         tooMuch,
		"This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains 12000 input tokens, for a total of 44000 tokens.":                                 tooMuch,
		"This model's maximum context length is 32768 tokens. However, you requested 44000 tokens (12000 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.":        tooMuch,
		"This endpoint's maximum context length is 32768 tokens. However, you requested about 44000 tokens (11000 of text input, 1000 of tool input, 32000 in the output). Please reduce the length of either one.": tooMuch,
		"Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 44000 tokens: 12000 tokens from the input messages and 32000 tokens for the completion.":        tooMuch,
		"This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 769 input tokens, for a total of at least 32769 tokens.":                 "",
		"You passed 769 input tokens and requested 32000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 768 tokens.":                               "",
		"You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 99072 tokens.":                          "prompt is too long: ",
		"This model's maximum context length is 32768 tokens. However, you requested 0 output tokens and your prompt contains at least 32769 input tokens, for a total of at least 32769 tokens.":                   "prompt is too long: ",
		"This model's maximum context length is 32768 tokens. However, you requested 72000 tokens (40000 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.":        "prompt is too long: ",
		"This model's maximum context length is 99999999999999999999 tokens. However, you requested 9 tokens (5 in the messages, 4 in the completion). Please reduce the length of the messages or completion.":     "prompt is too long: ",
		"This model's maximum context length is 32768 tokens. However, your messages resulted in 40000 tokens. Please reduce the length of the messages.":                                                           "prompt is too long: ",
	} {
		e := &model.Error{Status: http.StatusBadRequest, Code: model.CodeUpstreamInvalid, Body: json.RawMessage(`{"error":{"message":"` + said + `","code":400}}`)}
		if got := inItsWords(e, false); got != want+said {
			t.Errorf("%q, want %q in front", got, want)
		}
	}
}
