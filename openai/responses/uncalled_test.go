package responses

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
)

// What tools and agents of the client's say without having been called.
const (
	goal = `{"type":"function_call_output","id":"fco_1","name":"goal_objective","namespace":"agent","output":"Count the cats."}`
	told = `{"type":"agent_message","author":"/root/six","recipient":"/root","content":[{"type":"input_text","text":"Count the cats."}]}`
)

// TestOutputOfWhatWasNotCalled: Codex brings the goal that its model is to pursue as an output
// without a call. The model is told it; an output that names nothing is refused as before.
func TestOutputOfWhatWasNotCalled(t *testing.T) {
	const before, behind = `{"model":"m","input":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes?"},`, `,{"role":"user","content":"Go on."}]}`
	for _, output := range []string{goal, strings.Replace(goal, `"Count the cats."`, `[{"type":"input_text","text":"Count the cats."}]`, 1)} {
		p := newPlayer(t)
		if got := p.say(before+output+behind, spoken("Done.")); got.status != 200 {
			t.Fatalf("refused: %s", got.body)
		}
		m := p.messages()
		for _, want := range []string{`Output of agent__goal_objective, which was not called:`, "Count the cats.", `"Yes?"`, `"Go on."`} {
			if !strings.Contains(m, want) {
				t.Errorf("the model was not told %s: %s", want, m)
			}
		}
	}
	p := newPlayer(t)
	if got := p.say(before + `{"type":"function_call_output","output":"x"}` + behind); got.status != 400 || !strings.Contains(got.body, "input[2].call_id") {
		t.Errorf("an output of nothing: %d %s", got.status, got.body)
	}
}

// TestOthersSpeakBehindATurn: for a model whose API speaks Responses, what stands behind what
// the assistant said and is no part of it stays where it is, with what tools of ours said.
func TestOthersSpeakBehindATurn(t *testing.T) {
	for _, item := range []string{goal, told, `{"type":"configuration_update","reasoning":{"summary":"Count the cats."}}`} {
		p := newNative(t)
		ask := `{"model":"m","store":false,"prompt_cache_key":"k","input":[{"role":"user","content":"Look."}`
		p.native.Say(
			fakeresponses.Answer{Items: fakeresponses.Items(`{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"weather__get","arguments":"{\"city\":\"Oslo\"}"}`)},
			fakeresponses.Answer{Items: fakeresponses.Items(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Looked."}]}`)},
		)
		got := p.say(ask + `]}`)
		p.native.Say(fakeresponses.Answer{Items: fakeresponses.Items(`{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Done."}]}`)})
		got = p.say(ask + got.raws("mcp_call") + `,` + item + `,{"role":"user","content":"Go on."}]}`)
		if got.status != 200 {
			t.Fatalf("refused: %s", got.body)
		}
		sent := string(p.asked[0].Get("input"))
		call, said := strings.Index(sent, `"call_1"`), strings.Index(sent, "Looked.")
		if told := strings.Index(sent, "Count the cats."); call < 0 || said < call || told < said || strings.Index(sent, "Go on.") < told {
			t.Errorf("the API was sent %s", sent)
		}
	}
}
