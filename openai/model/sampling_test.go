package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What a server asks of a model becomes a request without tools, and its answer the
// result that MCP wants.
func TestSample(t *testing.T) {
	const answer = `{"model":"m-1","choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"%"}],"usage":{"completion_tokens":7}}`
	for _, tc := range []struct {
		name, dialect, params, finish string
		sent, result                  string // what has to be in them
		refused                       string
	}{
		{"text", "conservative", `{"systemPrompt":"Be brief.","maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}]}`, "stop",
			`"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a"},{"role":"assistant","content":"b\n\nc"}],"max_tokens":9,`,
			`{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m-1","stopReason":"endTurn"}`, ""},
		{"a picture, cut off", "openai", `{"maxTokens":900000,"messages":[{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"AA=="},{"type":"text","text":"what?"}]}]}`, "length",
			`"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"text","text":"what?"}]}],"max_completion_tokens":100,`,
			`"stopReason":"maxTokens"`, ""},
		{"tools", "openai", `{"tools":[],"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}`, "", "", "", "tools"},
		{"a sound", "openai", `{"messages":[{"role":"user","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}}]}`, "", "", "", "audio"},
		{"a system message", "openai", `{"messages":[{"role":"system","content":{"type":"text","text":"a"}}]}`, "", "", "", "system"},
		{"nothing", "openai", `{"messages":[]}`, "", "", "", "no messages"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sent []byte
			c := &Client{Dialect: mustDialect(t, tc.dialect), Post: func(_ context.Context, body [][]byte) (*http.Response, error) {
				sent = bytes.Join(body, nil)
				return replies(http.StatusOK, strings.Replace(answer, "%", tc.finish, 1)), nil
			}}
			s, err := c.Sample(t.Context(), "m", json.RawMessage(tc.params), 100)
			if tc.refused != "" {
				if !errors.Is(err, ErrSampling) || !strings.Contains(err.Error(), tc.refused) || sent != nil {
					t.Errorf("error %v, sent %s", err, sent)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(sent), tc.sent) || strings.Contains(string(sent), `"tools"`) {
				t.Errorf("sent %s, want %s in it", sent, tc.sent)
			}
			if !strings.Contains(string(s.Result), tc.result) || s.Tokens != 7 {
				t.Errorf("result %s of %d tokens, want %s in it", s.Result, s.Tokens, tc.result)
			}
		})
	}
}

// A model that takes no temperature is asked once more without.
func TestSampleWithoutTemperature(t *testing.T) {
	var sent []string
	c := &Client{Post: func(_ context.Context, body [][]byte) (*http.Response, error) {
		sent = append(sent, string(bytes.Join(body, nil)))
		if len(sent) == 1 {
			return replies(http.StatusBadRequest, `{"error":{"message":"temperature is not supported"}}`), nil
		}
		return replies(http.StatusOK, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`), nil
	}}
	s, err := c.Sample(t.Context(), "m", json.RawMessage(`{"temperature":0.5,"stopSequences":["x"],"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}`), 100)
	if err != nil || s.Tokens == 0 || len(sent) != 2 {
		t.Fatalf("%+v, %v, sent %q", s, err, sent)
	}
	if !strings.Contains(sent[0], `"temperature":0.5`) || !strings.Contains(sent[0], `"stop":["x"]`) || strings.Contains(sent[1], "temperature") {
		t.Errorf("sent %q", sent)
	}
}

func replies(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}
