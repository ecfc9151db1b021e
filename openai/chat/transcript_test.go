package chat

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/openai/internal/transcript"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

var update = flag.Bool("update", false, "rewrite what the transcripts expect")

// TestTranscripts plays the conversations in testdata/chat. A transcript says in
// its comment which rule it shows, and on lines of their own, what is special:
//
//	dialect: NAME   what the upstream accepts
//	rounds: N       after which the model must answer
//	turns: off      nothing is kept between requests
//	search: WHEN    when the model searches for tools
//	tokens: N       that tools may cost where that is "auto"
//
// Then follow, in the order of events, client requests ("request", with the
// words "retried", "lost", where the client does not get the end of its answer,
// "caller=NAME" and "dialect=NAME" behind it), the upstream's responses
// ("upstream", optionally beginning with a status line and headers; the header
// Broken cuts the body off, Line-Ends: crlf changes its line ends), and time
// that passes ("wait 2h"). What the test expects, and -update writes, stands
// behind that: for each request the bodies that the upstream was sent ("asked"),
// the calls that ran ("ran"), and all that the client got ("got").
//
// Ids that are random are written <read-1>, <wrote-1>, <minted-1> and so on, in
// requests too. Our own tools in a request are written <name>, and the meta
// member of results, which is not what is tested here, {…}.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/chat/*.txtar", *update, play)
}

// A player plays one transcript.
type player struct {
	*testing.T
	upstream transcript.Upstream
	dialect  *dialect.Dialect
	rounds   int
	search   model.Search
	memory   memory.Store
	running  memory.Running
	offers   model.Offers
	shop     transcript.Shop
	ids      transcript.IDs
}

func play(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	p := &player{
		T: t, upstream: transcript.Upstream{TB: t}, memory: &memory.Memory{}, dialect: mustDialect(t, dialect.Conservative),
		ids: transcript.IDs{Pattern: mintedID, Kind: kindOfID},
	}
	for word, value := range transcript.Settings(archive) {
		switch word {
		case "dialect":
			p.dialect = mustDialect(t, value)
		case "rounds":
			p.rounds, _ = strconv.Atoi(value)
		case "turns":
			p.memory = nil
		case "search":
			p.search.When = model.SearchWhen(value)
		case "tokens":
			p.search.Tokens, _ = strconv.Atoi(value)
		}
	}
	return transcript.Play(t, archive, p.request)
}

func mustDialect(t testing.TB, name string) *dialect.Dialect {
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// request plays one request of a client.
func (p *player) request(flags string, body []byte, answers []string) []txtar.File {
	p.upstream.Answers, p.upstream.Asked = answers, nil
	recorder := httptest.NewRecorder()
	var w http.ResponseWriter = recorder
	if strings.Contains(flags, "lost") {
		w = lost{recorder}
	}
	request, err := Parse(p.ids.Put(body))
	if err == nil {
		options := Options{
			Model: &model.Client{Post: p.upstream.Post, Dialect: p.dialect}, Memory: p.memory, Running: &p.running, Offers: &p.offers, Search: p.search, Caller: "alice",
			Retried: strings.Contains(flags, "retried"), Shape: func(*dragoman.Tool) *result.Shape { return &result.Shape{Images: true} }, ID: "req_1",
		}
		if _, name, ok := strings.Cut(flags, "caller="); ok {
			options.Caller = name
		}
		if _, name, ok := strings.Cut(flags, "dialect="); ok {
			options.Model.Dialect = mustDialect(p.T, name)
		}
		var chat *Conversation
		if chat, err = New(request, w, options); err == nil {
			loop := dragoman.Loop{Tools: &p.shop, Rounds: p.rounds}
			_ = loop.Run(p.Context(), chat)
		}
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		e.Write(w)
	} else if err != nil {
		p.Fatal(err)
	}
	return transcript.Came(&p.upstream, &p.shop, &p.ids, recorder)
}

// lost is a client's connection that breaks with the end of the answer.
type lost struct{ *httptest.ResponseRecorder }

func (l lost) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("[DONE]")) || bytes.Contains(b, []byte(`"object":"chat.completion",`)) {
		return 0, io.ErrClosedPipe
	}
	return l.ResponseRecorder.Write(b)
}

var mintedID = regexp.MustCompile(`call_dragoman0[A-Z2-7]{22}|call_dragoman1[A-Z2-7]{22}|call_[A-Z2-7]{24}|chatcmpl-[A-Z2-7]{24}`)

func kindOfID(id string) string {
	return map[byte]string{'0': "read", '1': "wrote", '-': "completion", '_': "minted"}[strings.TrimLeft(strings.TrimPrefix(id, "call_dragoman"), "abcdefghijklmnopqrstuvwxyz")[0]]
}
