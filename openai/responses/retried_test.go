package responses

import (
	"context"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// begunTurn asks as Codex does, which keeps the messages of an answer that broke off and asks
// again with them behind its person's.
func begunTurn(turn, input string) string {
	return `{"model":"m","stream":true,"store":false,"prompt_cache_key":"k","tools":[{"type":"function","name":"theirs","strict":false,"parameters":{"type":"object"}}],` +
		`"client_metadata":{"turn_id":"` + turn + `","x-codex-turn-metadata":"{}"},"input":[{"role":"user","content":"Save it."}` + input + `]}`
}

const (
	firstWords = `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me save."}]}`
	// breaksOff is an answer that does.
	breaksOff   = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half\"},\"finish_reason\":null}]}\n\n"
	secondWords = `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Once more."}]}`
)

// sayingAnd is an answer that says something and calls tools.
func sayingAnd(text string, calls ...string) string {
	return strings.Replace(called(calls...), `"content":null`, `"content":"`+text+`"`, 1)
}

// TestGoesOnBehindABreak: an answer broke off behind a text and a call of ours, and Codex asks
// again with the text behind its message. What the tool said is there then, and whenever the
// conversation goes on, with what was done for the second request, or for a third one.
func TestGoesOnBehindABreak(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers [][]string // to what is asked again
		input   []string   // that is asked with
		results int        // that the model has in the end
	}{
		{"only words", [][]string{{spoken("Saved.")}}, []string{firstWords}, 1},
		{"another call of ours", [][]string{{called("files__save", oslo), spoken("Saved.")}}, []string{firstWords}, 2},
		{"another text and call of ours", [][]string{{sayingAnd("Once more.", "files__save", oslo), spoken("Saved.")}}, []string{firstWords}, 2},
		{"a call of the client's", [][]string{{sayingAnd("Yours.", "theirs", "{}")}}, []string{firstWords}, 2},
		{"it breaks off again", [][]string{{sayingAnd("Once more.", "files__save", oslo), breaksOff}, {spoken("Saved.")}}, []string{firstWords, firstWords + secondWords}, 2},
		{"it breaks off again before a text", [][]string{{called("files__save", oslo), breaksOff}, {spoken("Saved.")}}, []string{firstWords, firstWords}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlayer(t)
			got := p.say(begunTurn("1", ""), sayingAnd("Let me save.", "files__save", oslo), breaksOff)
			if len(p.ran) != 1 || !strings.Contains(got.body, "response.failed") {
				t.Fatalf("ran %v: %s", p.ran, got.body)
			}
			for i, answers := range tt.answers {
				p.retried = i > 0 && tt.input[i] == tt.input[i-1]
				got = p.say(begunTurn("1", tt.input[i]), answers...)
			}
			p.retried = false
			input := tt.input[len(tt.input)-1] + got.raws("mcp_call")
			if call := strings.Contains(got.types(), "function_call"); call {
				input += `,{"type":"function_call_output","call_id":"` + stringOf(got.item("function_call"), "call_id") + `","output":"ok"}`
				got = p.say(begunTurn("1", input), spoken("Done."))
				if m := p.messages(); strings.Count(m, `"role":"tool"`) != tt.results || len(p.ran) > 0 {
					t.Errorf("behind its call, the model is told %s", m)
				}
				input += got.raws("mcp_call")
			}
			for _, turn := range []string{"2", "3"} {
				input += `,{"role":"user","content":"And now?"}`
				got = p.say(begunTurn(turn, input), spoken("Nothing."))
				m := p.messages()
				if strings.Count(m, `"role":"tool"`) != tt.results || strings.Count(m, "Let me save.") != 1 || strings.Count(m, "Once more.") > 1 || len(p.ran) > 0 {
					t.Errorf("in turn %s the model is told %s", turn, m)
				}
				input += got.raws()
			}
		})
	}
}

// TestGoesOnBehindABreakOverResponses: the same for a model whose API speaks Responses.
func TestGoesOnBehindABreakOverResponses(t *testing.T) {
	const call = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"files__save","arguments":"{\"city\":\"Oslo\"}"}`
	said := func(id, s string) string {
		return `{"id":"msg_` + id + `","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"` + s + `"}]}`
	}
	p := newNative(t)
	p.native.Say(fakeresponses.Answer{Items: fakeresponses.Items(said("1", "Let me save."), call)}, fakeresponses.Answer{Status: 400, Message: "It fell over."})
	p.say(begunTurn("1", ""))
	input := "," + said("1", "Let me save.")
	p.native.Say(fakeresponses.Answer{Items: fakeresponses.Items(said("2", "Saved."))})
	got := p.say(begunTurn("1", input))
	for _, turn := range []string{"2", "3"} {
		input += got.raws("mcp_call") + `,{"role":"user","content":"And now?"}`
		p.native.Say(fakeresponses.Answer{Items: fakeresponses.Items(said(turn+"0", "Nothing."))})
		if got = p.say(begunTurn(turn, input)); got.status != 200 {
			t.Fatalf("refused: %s", got.body)
		}
		sent := string(p.asked[0].Get("input"))
		if strings.Count(sent, "function_call_output") != 1 || strings.Count(sent, "Let me save.") != 1 || strings.Count(sent, `"Saved."`) != 1 || len(p.ran) > 0 {
			t.Errorf("in turn %s the API is sent %s", turn, sent)
		}
	}
}

// TestAgainWithAllOfTheHistory: over a WebSocket Codex goes on from the response before, and asks
// again over another one with all of the history, and members of its items left out: nothing runs
// twice.
func TestAgainWithAllOfTheHistory(t *testing.T) {
	p := newPlayer(t)
	members := strings.Replace(begunTurn("2", ""), `"store":false`, `"store":true`, 1)
	got := p.say(strings.Replace(begunTurn("1", ""), `"store":false`, `"store":true`, 1), spoken("Yes?"))
	id := stringOf(got.response, "id")
	const goOn = `{"role":"user","content":"Go on."}`
	body, _, _ := strings.Cut(members, `"input":`)
	p.say(body+`"previous_response_id":"`+id+`","input":[`+goOn+`]}`, called("files__save", oslo), breaksOff)
	if len(p.ran) != 1 {
		t.Fatalf("ran %v", p.ran)
	}
	p.retried = true
	p.say(body+`"input":[{"role":"user","content":"Save it."},{"role":"assistant","content":"Yes?"},`+goOn+`]}`, spoken("Saved."))
	if m := p.messages(); len(p.ran) > 0 || strings.Count(m, `"role":"tool"`) != 1 {
		t.Errorf("ran %v, and the model is told %s", p.ran, m)
	}
}

// An earlyMemory counts what is kept before a tool has run.
type earlyMemory struct {
	memory.Store
	*player
	early int
}

func (m *earlyMemory) Keep(ctx context.Context, owner string, keys []string, turn *memory.Turn) error {
	m.mu.Lock()
	if len(m.ran) == 0 && turn.Wrote {
		m.early++
	}
	m.mu.Unlock()
	return m.Store.Keep(ctx, owner, keys, turn)
}

// TestKeptBeforeItRuns: that a call of ours may have been made is kept before it is, since the
// process may die of it and Codex asks again.
func TestKeptBeforeItRuns(t *testing.T) {
	p := newPlayer(t)
	kept := &earlyMemory{Store: p.memory, player: p}
	p.memory, p.retried = kept, true
	p.say(begunTurn("1", ""), called("files__save", oslo), spoken("Saved."))
	if len(p.ran) != 1 || kept.early != 1 {
		t.Errorf("ran %v, %d times something was kept before", p.ran, kept.early)
	}
}

// TestSummaryInTheMiddleOfATurn: in the middle of a turn Codex asks for a summary, and goes on with
// its person's message and that alone, in another window. What tools of ours said before is in the
// summary, and not put back beside it, nor told to be unknown: where it is long, Codex would ask for
// one summary after the other. A turn that broke off is put back in its window, and in no other.
func TestSummaryInTheMiddleOfATurn(t *testing.T) {
	within := func(body, window string) string {
		return strings.Replace(body, `"x-codex-turn-metadata":"{}"`, `"x-codex-turn-metadata":"{\"context_window_id\":\"`+window+`\"}"`, 1)
	}
	const summary = `,{"role":"user","content":"A summary."}`
	t.Run("summary", func(t *testing.T) {
		p := newPlayer(t)
		p.retried = true // as the door says of Codex
		got := p.say(within(begunTurn("1", ""), "w0"), called("files__save", oslo), called("theirs", "{}", "files__save", `{"city":"Bergen"}`))
		if len(p.ran) != 2 || got.item("function_call") == nil {
			t.Fatalf("ran %v: %s", p.ran, got.body)
		}
		p.say(within(begunTurn("1", summary), "w1"), spoken("Saved."))
		if m := p.messages(); strings.Contains(m, `"role":"tool"`) || len(p.ran) > 0 {
			t.Errorf("behind the summary ran %v, and the model is told %s", p.ran, m)
		}
	})
	t.Run("break", func(t *testing.T) {
		p := newPlayer(t)
		p.retried = true
		p.say(within(begunTurn("1", ""), "w0"), called("files__save", oslo), breaksOff)
		for _, tt := range []struct {
			window  string
			results int
		}{{"w0", 1}, {"w1", 0}} {
			p.say(within(begunTurn("2", summary), tt.window), spoken("Saved."))
			if m := p.messages(); strings.Count(m, `"role":"tool"`) != tt.results {
				t.Errorf("in window %s the model is told %s", tt.window, m)
			}
		}
	})
}

// TestAgentOfATurn: Codex starts an agent with what people said in its conversation so far, without
// calls and their results. Of what tools of ours did in the turn the agent's model reads what came
// of it, not that nobody knows.
func TestAgentOfATurn(t *testing.T) {
	p := newPlayer(t)
	p.retried = true
	p.say(begunTurn("1", ""), called("files__save", oslo), called("theirs", "{}", "files__save", `{"city":"Bergen"}`))
	if len(p.ran) != 2 {
		t.Fatalf("ran %v", p.ran)
	}
	p.say(begunTurn("2", `,{"role":"user","content":"Look after it."}`), spoken("I did."))
	if m := p.messages(); strings.Count(m, `"role":"tool"`) != 2 || strings.Contains(m, "unknown_outcome") || strings.Contains(m, "theirs") || len(p.ran) > 0 {
		t.Errorf("ran %v, and the agent's model is told %s", p.ran, m)
	}
}
