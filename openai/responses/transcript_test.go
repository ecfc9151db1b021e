package responses

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/transcript"
)

var update = flag.Bool("update", false, "rewrite what the transcripts expect")

// TestTranscripts plays the conversations in testdata/responses, as the transcripts of the
// Chat half are played. Each has the shape of a recording of the real API: the same events
// with the same members in the same order. A transcript says in its comment which rule it
// shows, and on lines of their own, what is special:
//
//	missing: SERVER   a server that is down
//	search: yes       a tool searches the web
//	hidden: yes       tools are searched for
//	forgetful: yes    nothing is remembered between requests but what is stored
//
// Then follow client requests ("request"), and the upstream's answers ("upstream"). What
// the test expects, and -update writes, stands behind that: for each request the messages
// that the upstream was sent, with the names of the tools ("asked"), the calls that ran
// ("ran"), and all that the client got ("got"). Ids and seals that are random are written
// <msg-1>, <seal-1> and so on, in requests too.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/responses/*.txtar", *update, play)
}

// play plays one.
func play(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	p, ids := newPlayer(t), newIDs()
	for word, value := range transcript.Settings(archive) {
		switch word {
		case "missing":
			p.missing = append(p.missing, dragoman.Server{Label: value, State: dragoman.Failed})
		case "search":
			p.search = true
		case "hidden":
			p.hidden = true
		case "forgetful":
			p.memory = nil
		}
	}
	return transcript.Play(t, archive, func(_ string, body []byte, answers []string) []txtar.File {
		got := p.say(string(ids.Put(body)), answers...)
		asked := ""
		for _, o := range p.asked {
			asked += tidy(o) + "\n"
		}
		return p.came(ids, asked, got)
	})
}

// came is what came of a request.
func (p *player) came(ids *transcript.IDs, asked string, got *played) []txtar.File {
	files := []txtar.File{{Name: "asked", Data: ids.Hide(asked)}}
	if len(p.ran) > 0 {
		files = append(files, txtar.File{Name: "ran", Data: ids.Hide(strings.Join(p.ran, "\n") + "\n")})
	}
	return append(files, txtar.File{Name: "got", Data: ids.Hide(fmt.Sprintf("%d\n%s", got.status, got.body))})
}

// tidy leaves out of a body for the upstream what other packages decide.
func tidy(o *rawjson.Object) string {
	kept := rawjson.Object{}
	for name, value := range o.All() {
		switch name {
		case "model", "stream", "stream_options":
			continue
		case "tools":
			tools, _ := rawjson.Elements(value)
			var names []string
			for _, tool := range tools {
				t, _ := rawjson.ParseObject(tool)
				f, _ := rawjson.ParseObject(t.Get("function"))
				names = append(names, stringOf(f, "name"))
			}
			value = rawjson.Quote(strings.Join(names, " "))
		}
		kept.Set(name, value)
	}
	return transcript.WithoutMeta(kept.Bytes())
}

var mintedID = regexp.MustCompile(`\b(?:resp_dg|msg_|rs_|fc_|ctc_|sh_|lsh_|apc_|cu_|tsc_|mcp_|mcpl_|ws_|item_|fco_)[a-z2-7]{26}(?:[io][0-9]+)?|\bmcpr_[A-Za-z0-9_-]{80,}|\bdg1\.[A-Za-z0-9_-]{40,}|"seal":"([A-Za-z0-9_-]{40,})"|call_dragoman[01][A-Z2-7]{22}`)

func newIDs() *transcript.IDs {
	return &transcript.IDs{Pattern: mintedID, Kind: func(found string) string {
		switch kind, _, _ := strings.Cut(found, "_"); {
		case strings.HasPrefix(found, "dg1."):
			return "thought"
		case strings.HasPrefix(found, `"seal":`):
			return "seal"
		case strings.HasPrefix(found, "dragoman"):
			return "call"
		default:
			return kind
		}
	}}
}
