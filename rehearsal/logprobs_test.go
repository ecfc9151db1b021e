package rehearsal_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// likelihoods is what the tests read of logprobs.
type likelihoods struct {
	Choices []struct {
		Message, Delta message
		Logprobs       *struct {
			Content []struct {
				Token   string
				Logprob *float64
				Bytes   []int
				Top     []struct{ Token string } `json:"top_logprobs"`
			}
		}
	}
}

// tokens joins the tokens of the first choice, and counts the candidates that
// they name. The bytes must be those of the token.
func (l likelihoods) tokens(t *testing.T) (tokens []string, candidates int) {
	t.Helper()
	if len(l.Choices) == 0 || l.Choices[0].Logprobs == nil {
		return nil, 0
	}
	for _, c := range l.Choices[0].Logprobs.Content {
		var spelled []byte
		for _, b := range c.Bytes {
			spelled = append(spelled, byte(b))
		}
		if string(spelled) != c.Token || c.Logprob == nil || *c.Logprob != 0 {
			t.Errorf("token %q has bytes %q and logprob %v", c.Token, spelled, c.Logprob)
		}
		tokens, candidates = append(tokens, c.Token), candidates+len(c.Top)
	}
	return tokens, candidates
}

// TestLogprobs: the tokens of an answer, whole or streamed, are its text.
func TestLogprobs(t *testing.T) {
	const text = "The quick brown fox — 敏捷的棕色狐狸 — jumps extraordinarily."
	for _, tt := range []struct {
		name string
		more request
		want string
	}{
		{"whole", nil, text},
		{"cut by max_tokens", request{"max_tokens": 3}, "The quick brown "},
		{"cut by stop", request{"stop": "fox"}, "The quick brown "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := request{"messages": user("SAY " + text), "logprobs": true, "top_logprobs": 5}
			maps.Copy(body, tt.more)
			_, data := send(t, &rehearsal.Model{}, body.String())
			whole, candidates := decode[likelihoods](t, data).tokens(t)
			if got := strings.Join(whole, ""); got != tt.want || candidates != len(whole) {
				t.Errorf("tokens are %q with %d candidates, want %q with one each", whole, candidates, tt.want)
			}
			body["stream"] = true
			_, data = send(t, &rehearsal.Model{}, body.String())
			var streamed []string
			for event := range strings.SplitSeq(string(data), "\n\n") {
				payload := strings.TrimPrefix(event, "data: ")
				if payload == "" || payload == "[DONE]" {
					continue
				}
				chunk := decode[likelihoods](t, []byte(payload))
				tokens, _ := chunk.tokens(t)
				if got := strings.Join(tokens, ""); got != chunk.Choices[0].Delta.text() {
					t.Errorf("a chunk of %q has the tokens %q", chunk.Choices[0].Delta.text(), tokens)
				}
				streamed = append(streamed, tokens...)
			}
			if diff := cmp.Diff(whole, streamed); diff != "" {
				t.Errorf("tokens of the body and of the stream differ (-body +stream):\n%s", diff)
			}
		})
	}
}

// TestNoLogprobs: they are null where nobody asked, and have no content beside
// calls without text.
func TestNoLogprobs(t *testing.T) {
	_, data := send(t, &rehearsal.Model{}, request{"messages": user("SAY hi"), "logprobs": false}.String())
	if !strings.Contains(string(data), `"logprobs":null`) {
		t.Errorf("nobody asked for logprobs: %s", data)
	}
	body := request{"messages": user("CALL get_weather {}"), "logprobs": true, "tools": toolset(weatherTool)}
	_, data = send(t, &rehearsal.Model{}, body.String())
	if !strings.Contains(string(data), `"logprobs":{"content":null,"refusal":null}`) {
		t.Errorf("a call without text: %s", data)
	}
}

func TestLogprobsRefused(t *testing.T) {
	for _, tt := range []struct{ fields, param string }{
		{`"logprobs":"yes"`, "logprobs"},
		{`"top_logprobs":2`, "top_logprobs"},
		{`"logprobs":true,"top_logprobs":21`, "top_logprobs"},
		{`"logprobs":true,"top_logprobs":-1`, "top_logprobs"},
		{`"logprobs":true,"top_logprobs":1.5`, "top_logprobs"},
	} {
		status, data := send(t, &rehearsal.Model{}, `{"model":"rehearsal","messages":[{"role":"user","content":"hi"}],`+tt.fields+`}`)
		var refused struct{ Error struct{ Param string } }
		if err := json.Unmarshal(data, &refused); err != nil || status != 400 || refused.Error.Param != tt.param {
			t.Errorf("%s: %d %s", tt.fields, status, data)
		}
	}
}
