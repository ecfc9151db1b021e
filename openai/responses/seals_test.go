package responses

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A client's approval is for a later request, so what seals it outlives the one that asked: with
// no seals given those of the process, and with secrets those that any process makes of them.
func TestApprovalsOutliveTheirRequest(t *testing.T) {
	ask, answer := `{"model":"m","tools":[{"type":"mcp","server_label":"weather"}]`, `"type":"mcp_approval_response","approve":true`
	old, young := [32]byte{1}, [32]byte{2}
	for _, tt := range []struct {
		name          string
		before, after *model.Seals
		status        int
	}{
		{"none given", nil, nil, 200},
		{"of the same secret", model.NewSeals(old), model.NewSeals(old), 200},
		{"of a secret that has become an older one", model.NewSeals(old), model.NewSeals(young, old), 200},
		{"of another secret", model.NewSeals(old), model.NewSeals(young), 400},
		{"of no secret", model.NewSeals(), model.NewSeals(), 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlayer(t)
			p.seals = tt.before
			got := p.say(ask+`,"input":"Warn Oslo"}`, called("weather__warn", oslo))
			p.seals = tt.after
			id := stringOf(got.item("mcp_approval_request"), "id")
			got = p.say(ask+`,"previous_response_id":"`+stringOf(got.response, "id")+`","input":[{"approval_request_id":"`+id+`",`+answer+`}]}`, spoken("Done."))
			if ran := strings.Join(p.ran, ""); got.status != tt.status || strings.Contains(ran, "warn") != (tt.status == 200) {
				t.Errorf("ran %q: %d %s", ran, got.status, got.body)
			}
		})
	}
}

// Compact needs no more than a model.
func TestCompactWithoutSeals(t *testing.T) {
	p := newPlayer(t)
	p.answers = []string{spoken("It rained.")}
	request, err := Parse([]byte(`{"model":"m","input":"Weather?"}`))
	if err != nil {
		t.Fatal(err)
	}
	document, err := Compact(t.Context(), request, Options{Options: chat.Options{Model: &model.Client{Post: p.post}}})
	if err != nil || !strings.Contains(string(document), `"type":"compaction"`) {
		t.Errorf("%s, %v", document, err)
	}
	if _, err := Compact(t.Context(), request, Options{}); err != model.ErrNoClient {
		t.Errorf("without a model: %v", err)
	}
}
