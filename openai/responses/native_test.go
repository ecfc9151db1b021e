package responses

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/transcript"
)

// newNative is a player in front of an API that speaks Responses.
func newNative(t *testing.T) *player {
	p := newPlayer(t)
	p.native, p.dialect, p.guide = &fakeresponses.API{}, "openai", "Read results with care."
	return p
}

// postNative asks the API that speaks Responses.
func (p *player) postNative(_ context.Context, parts [][]byte) (*http.Response, error) {
	body := bytes.Join(parts, nil)
	if err := rawjson.Check(body); err != nil {
		p.Errorf("the upstream was sent malformed JSON: %v\n%s", err, body)
	}
	o, _ := rawjson.ParseObject(body)
	p.asked = append(p.asked, o)
	return ask(p.native, body), nil
}

// ask sends a request to an API that speaks Responses.
func ask(api *fakeresponses.API, body []byte) *http.Response {
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest("POST", "/v1/responses", bytes.NewReader(body)))
	return w.Result()
}

// TestNativeTranscripts plays the conversations in testdata/native with a model whose API
// speaks Responses itself. They are read as those of [TestTranscripts] are, but for the
// upstream's answers, which are items, one a line, or one of
//
//	incomplete: REASON              the output is not all of it
//	error: STATUS CODE MESSAGE      in place of an answer, or, with 200, in the middle of one
//	forget                          nothing is kept there any more
//
// What the client gets of a request for which no tool of ours ran is held to what the API
// itself says to it, asked the same by a client of its own.
func TestNativeTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/native/*.txtar", *update, playNative)
}

// playNative plays one.
func playNative(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	p, ids := newNative(t), newIDs()
	if strings.Contains(string(archive.Comment), "forgetful: yes") {
		p.memory = nil
	}
	return transcript.Play(t, archive, func(_ string, body []byte, answers []string) []txtar.File {
		bare := &fakeresponses.API{} // with a client of its own
		for _, answer := range answers {
			p.tell(answer, bare)
		}
		body = ids.Put(body)
		got := p.say(string(body))
		if left := p.native.Left(); left > 0 {
			t.Errorf("%s: the upstream has %d answers left", body, left)
		}
		for _, why := range p.native.Refused() {
			t.Logf("the upstream refused: %s", why)
		}
		if len(p.ran) == 0 && !strings.Contains(string(body), IDPrefix) && !bytes.Contains(body, []byte(`"type":"mcp`)) {
			likeNative(t, ask(bare, body), got)
		}
		asked := ""
		for _, o := range p.asked {
			asked += namesOnly(o) + "\n"
		}
		return p.came(ids, asked, got)
	})
}

// What is made in the background is made so here: the API is asked as for any other, without
// what it takes for nothing else.
func TestBackgroundIsOurs(t *testing.T) {
	p := newNative(t)
	p.native.Say(fakeresponses.Answer{Items: []json.RawMessage{json.RawMessage(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Hi"}]}`)}})
	got := p.say(`{"model":"m","input":"x","background":true,"background_options":{"completion_window":"soonest","continuation_id":"c"}}`)
	if got.status != http.StatusOK || len(p.asked) != 1 || p.asked[0].Get("background") != nil || p.asked[0].Get("background_options") != nil {
		t.Errorf("%d %s, asked %d times", got.status, got.body, len(p.asked))
	}
}

// tell tells the API, and a second one, what to say.
func (p *player) tell(data string, bare *fakeresponses.API) {
	var a fakeresponses.Answer
	for line := range strings.Lines(data) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
		case word == "incomplete":
			a.Incomplete = rest
		case word == "error":
			status, said, _ := strings.Cut(rest, " ")
			_, _ = fmt.Sscan(status, &a.Status)
			a.Code, a.Message, _ = strings.Cut(said, " ")
		case word == "forget":
			p.native.Forget("")
			return
		default:
			a.Items = append(a.Items, json.RawMessage(line))
		}
	}
	p.native.Say(a)
	bare.Say(a)
}

// namesOnly returns a body for the upstream with the names of its functions in their place.
func namesOnly(o *rawjson.Object) string {
	kept := o.Clone()
	if tools, err := rawjson.Elements(o.Get("tools")); err == nil {
		for i, tool := range tools {
			if t, _ := rawjson.ParseObject(tool); stringOf(t, "type") == "function" {
				tools[i] = rawjson.Quote(stringOf(t, "name"))
			}
		}
		kept.Set("tools", array(tools...))
	}
	return strings.ReplaceAll(transcript.WithoutMeta(kept.Bytes()), `"model":"m",`, "")
}

// likeNative checks that a client of ours is told what a client of the API is.
func likeNative(t *testing.T, want *http.Response, got *played) {
	t.Helper()
	var body bytes.Buffer
	_, _ = body.ReadFrom(want.Body)
	if want.StatusCode != got.status {
		t.Errorf("status %d, want %d: %s", got.status, want.StatusCode, got.body)
	}
	native := &played{T: t, body: body.String()}
	if !strings.HasPrefix(want.Header.Get("Content-Type"), "text/event-stream") {
		if diff := cmp.Diff(withoutOwn([]byte(strings.TrimSpace(native.body))), withoutOwn([]byte(strings.TrimSpace(got.body)))); diff != "" {
			t.Errorf("(-native +got)\n%s", diff)
		}
		return
	}
	native.body += "data: [DONE]\n\n"
	native.readStream()
	var said [2][]string
	for i, events := range [][]*rawjson.Object{native.events, got.events} {
		for _, e := range events {
			e := e.Clone()
			for _, m := range e.Members {
				if m.Name == "response" {
					e.Set("response", json.RawMessage(withoutOwn(m.Value)))
				}
			}
			if stringOf(e, "type") == "error" { // ours has the members of both forms
				e, _ = rawjson.ParseObject(e.Get("error"))
			}
			said[i] = append(said[i], ordered(e))
		}
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		t.Errorf("(-native +got)\n%s", diff)
	}
}

// withoutOwn returns a response without what two of them never have in common.
func withoutOwn(document []byte) string {
	o, err := rawjson.ParseObject(document)
	if err != nil {
		return string(document)
	}
	for _, name := range []string{"id", "created_at", "completed_at"} {
		if !rawjson.IsNull(o.Get(name)) {
			o.Set(name, json.RawMessage(`"…"`))
		}
	}
	if stringOf(o, "status") == "failed" {
		o.Delete("output") // the stand-in's has none of what was said
	}
	return ordered(o)
}

// ordered returns an object with its members in the order of their names.
func ordered(o *rawjson.Object) string {
	o = o.Clone()
	slices.SortFunc(o.Members, func(a, b rawjson.Member) int { return strings.Compare(a.Name, b.Name) })
	return string(o.Bytes())
}
