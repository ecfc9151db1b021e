package api

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Usage of an answer is the sum of its rounds, or what the last of them took, as a client
// wishes, which may be an agent that takes it for the length of the conversation.
func TestUsage(t *testing.T) {
	d := open(t, nil)
	native, up := speaking(t, "chat", "responses")
	const words = `"CALL weather__get {\"city\":\"Oslo\"}\nSAY Cold."`
	messages := `"messages":[{"role":"user","content":` + words + `}]`
	for _, tt := range []struct {
		name  string
		at    *tested
		path  string
		body  string
		input string // the member of usage
	}{
		{"Chat", d, "/v1/chat/completions", messages, "prompt_tokens"},
		{"Chat, a stream", d, "/v1/chat/completions", messages + `,"stream":true,"stream_options":{"include_usage":true}`, "prompt_tokens"},
		{"Responses", d, "/v1/responses", `"input":` + words, "input_tokens"},
		{"Responses, a stream", d, "/v1/responses", `"stream":true,"input":` + words, "input_tokens"},
		{"Messages", d, "/v1/messages", `"max_tokens":100,` + messages, "input_tokens"},
		{"Messages, a stream", d, "/v1/messages", `"max_tokens":100,"stream":true,` + messages, "input_tokens"},
		{"Responses to Responses", native, "/v1/responses", `"model":"m","input":"Weather?"`, "input_tokens"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			number := regexp.MustCompile(`"usage":\{[^}]*?"` + tt.input + `":(\d+)`)
			ask := func(headers ...string) (n int) {
				body := `{"model":"rehearsal",` + tt.body + `}`
				if tt.at == native {
					up.Say(said(getItem), said(coldItem))
					body = `{` + tt.body + `}`
				}
				a := tt.at.do("POST", tt.path, body, headers...)
				all := number.FindAllStringSubmatch(a.body, -1)
				if a.status != 200 || len(all) == 0 {
					t.Fatalf("%d %s", a.status, a.body)
				}
				at := 0 // behind it is that of each round
				if strings.Contains(tt.body, `"stream":true`) {
					at = len(all) - 1 // before it is an estimate
				}
				n, _ = strconv.Atoi(all[at][1])
				return n
			}
			sum, last := ask(), ask(UsageHeader, "last")
			if again := ask(UsageHeader, "sum"); sum != again || last >= sum || last*2 < sum {
				t.Errorf("the last round took %d tokens of %d (%d)", last, sum, again)
			}
			if a := tt.at.do("POST", tt.path, `{"model":"rehearsal",`+tt.body+`}`, UsageHeader, "first"); a.status != 400 {
				t.Errorf("another wish is %d %s", a.status, a.body)
			}
		})
	}
}

// Usage of a response in the background is the sum wherever it is made: a wish for that of the
// last round is not written down.
func TestUsageInTheBackground(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "dragoman.db"))
	usage := func(headers ...string) string {
		a := p.do("POST", "/v1/responses", askWeather+"}", headers...)
		id, _ := rawjson.String(rawjson.Find([]byte(a.body), "id"))
		p.events(id, -1) // until it is made
		status, body := p.got(id)
		if status != "completed" {
			t.Fatal(body)
		}
		return string(rawjson.Find([]byte(body), "usage"))
	}
	if sum, last := usage(), usage(UsageHeader, "last"); sum != last {
		t.Errorf("%s, and with a wish for the last round %s", sum, last)
	}
}
