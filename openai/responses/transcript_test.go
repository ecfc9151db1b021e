package responses

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
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
	files, err := filepath.Glob("testdata/responses/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			synctest.Test(t, func(t *testing.T) { got = txtar.Format(transcript(t, archive)) })
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// transcript plays one.
func transcript(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	p := newPlayer(t)
	for line := range strings.Lines(string(archive.Comment)) {
		switch word, value, _ := strings.Cut(strings.TrimSpace(line), ": "); word {
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
	played, ids := txtar.Archive{Comment: archive.Comment}, minted{}
	var results []txtar.File
	for i, f := range archive.Files {
		switch f.Name {
		case "request":
			var answers []string
			for _, next := range archive.Files[i+1:] {
				if next.Name != "upstream" {
					break
				}
				answers = append(answers, string(next.Data))
			}
			got := p.say(string(bytes.TrimSpace(ids.put(f.Data))), answers...)
			asked := ""
			for _, o := range p.asked {
				asked += tidy(o) + "\n"
			}
			results = append(results, txtar.File{Name: "asked", Data: ids.hide(asked)})
			if len(p.ran) > 0 {
				results = append(results, txtar.File{Name: "ran", Data: ids.hide(strings.Join(p.ran, "\n") + "\n")})
			}
			results = append(results, txtar.File{Name: "got", Data: ids.hide(fmt.Sprintf("%d\n%s", got.status, got.body))})
		case "upstream":
		default:
			continue // what is expected
		}
		played.Files = append(played.Files, f)
	}
	played.Files = append(played.Files, results...)
	return &played
}

var resultMeta = regexp.MustCompile(`,\\"meta\\":\{.*?\}\}"`)

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
	return resultMeta.ReplaceAllString(string(kept.Bytes()), `,\"meta\":{…}}"`)
}

// minted gives random ids names that do not change.
type minted struct {
	names map[string]string // by id
	ids   map[string]string // by name
	count map[string]int
}

var mintedID = regexp.MustCompile(`\b(?:resp_dg|msg_|rs_|fc_|ctc_|sh_|lsh_|apc_|cu_|tsc_|mcp_|mcpl_|ws_|item_|fco_)[a-z2-7]{26}(?:[io][0-9]+)?|\bmcpr_[A-Za-z0-9_-]{80,}|\bdg1\.[A-Za-z0-9_-]{40,}|"seal":"[A-Za-z0-9_-]{40,}"|dragoman[01][A-Z2-7]{22}`)

func (m *minted) hide(s string) []byte {
	return []byte(mintedID.ReplaceAllStringFunc(s, func(id string) string {
		if m.names == nil {
			m.names, m.ids, m.count = map[string]string{}, map[string]string{}, map[string]int{}
		}
		before, after := "", ""
		if rest, ok := strings.CutPrefix(id, `"seal":`); ok {
			before, after, id = `"seal":"`, `"`, strings.Trim(rest, `"`)
		}
		name, ok := m.names[id]
		if !ok {
			kind, _, _ := strings.Cut(id, "_")
			switch {
			case strings.HasPrefix(id, "dg1."):
				kind = "thought"
			case before != "":
				kind = "seal"
			case strings.HasPrefix(id, "dragoman"):
				kind = "call"
			}
			m.count[kind]++
			name = fmt.Sprintf("<%s-%d>", kind, m.count[kind])
			m.names[id], m.ids[name] = name, id
		}
		return before + name + after
	}))
}

func (m *minted) put(b []byte) []byte {
	for name, id := range m.ids {
		b = bytes.ReplaceAll(b, []byte(name), []byte(id))
	}
	return b
}
