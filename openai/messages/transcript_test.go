package messages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

var update = flag.Bool("update", false, "rewrite what the transcripts expect")

// TestTranscripts plays the conversations in testdata/messages, as the transcripts of
// the Chat half are played. A transcript says in its comment which rule it shows, and on
// lines of their own, what is special:
//
//	dialect: NAME   what the upstream accepts
//	rounds: N       after which the model must answer
//	beta: FLAGS     the header anthropic-beta
//	search: yes     a tool searches the web
//	hidden: yes     tools are searched for
//
// Then follow client requests ("request", with the words "retried", "lost", where the
// client does not get the end of its answer, and "caller=NAME" behind it), and the
// upstream's responses ("upstream", optionally beginning with a status line). What the
// test expects, and -update writes, stands behind that: for each request the bodies that
// the upstream was sent ("asked"), the calls that ran ("ran"), and all that the client
// got ("got"). Ids and seals that are random are written <msg-1>, <seal-1> and so on, in
// requests too.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/messages/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got txtar.Archive
			synctest.Test(t, func(t *testing.T) { got = play(t, archive) })
			if *update {
				if err := os.WriteFile(file, txtar.Format(&got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(&got))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A player plays one transcript.
type player struct {
	*testing.T
	dialect *dialect.Dialect
	rounds  int
	beta    string
	search  bool // a tool searches the web
	hidden  bool // tools are searched for
	seals   *seal.Ring
	memory  memory.Store
	running memory.Running
	offers  model.Offers
	answers []txtar.File // of the upstream, not yet used
	ids     minted

	mu    sync.Mutex
	asked []string
	ran   []string
}

func play(t *testing.T, archive *txtar.Archive) txtar.Archive {
	p := &player{T: t, seals: seal.New(), memory: &memory.Memory{}, dialect: mustDialect(t, dialect.Conservative)}
	for line := range strings.Lines(string(archive.Comment)) {
		word, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch word {
		case "dialect":
			p.dialect = mustDialect(t, value)
		case "rounds":
			p.rounds, _ = strconv.Atoi(value)
		case "beta":
			p.beta = value
		case "search":
			p.search = true
		case "hidden":
			p.hidden = true
		}
	}
	played := txtar.Archive{Comment: archive.Comment}
	var results []txtar.File
	for i, f := range archive.Files {
		word, rest, _ := strings.Cut(f.Name, " ")
		switch word {
		case "request":
			p.answers, p.asked, p.ran = nil, nil, nil
			for _, next := range archive.Files[i+1:] {
				if next.Name != "upstream" {
					break
				}
				p.answers = append(p.answers, next)
			}
			results = append(results, p.request(rest, f.Data)...)
			if len(p.answers) > 0 {
				t.Errorf("the upstream was not asked for its last %d answers", len(p.answers))
			}
		case "wait":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(d)
		case "upstream":
		default:
			continue // what is expected
		}
		played.Files = append(played.Files, f)
	}
	played.Files = append(played.Files, results...)
	return played
}

func mustDialect(t testing.TB, name string) *dialect.Dialect {
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// request plays one request of a client.
func (p *player) request(flags string, body []byte) []txtar.File {
	recorder := httptest.NewRecorder()
	var w http.ResponseWriter = recorder
	if strings.Contains(flags, "lost") {
		w = lost{recorder}
	}
	request, err := Parse(bytes.TrimSpace(p.ids.put(body)))
	if err == nil {
		request.Flags([]string{p.beta})
		options := Options{Seals: p.seals, Options: chat.Options{
			Model: &model.Client{Post: p.post, Dialect: p.dialect}, Memory: p.memory, Running: &p.running, Offers: &p.offers, Caller: "alice",
			Retried: strings.Contains(flags, "retried"), Shape: func(*dragoman.Tool) *result.Shape { return &result.Shape{Images: true} }, ID: "req_1",
		}}
		if p.hidden {
			options.Search = model.Search{When: model.Always}
		}
		if _, name, ok := strings.Cut(flags, "caller="); ok {
			options.Caller = name
		}
		if _, name, ok := strings.Cut(flags, "dialect="); ok {
			options.Model.Dialect = mustDialect(p.T, name)
		}
		var conversation *Conversation
		if conversation, err = New(request, w, options); err == nil {
			loop := dragoman.Loop{Tools: shop{p}, Rounds: p.rounds}
			_ = loop.Run(p.Context(), conversation)
		}
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		WriteError(w, e)
	} else if err != nil {
		p.Fatal(err)
	}
	files := []txtar.File{
		{Name: "asked", Data: p.ids.hide(strings.Join(p.asked, ""))},
		{Name: "ran", Data: p.ids.hide(strings.Join(p.ran, ""))},
		{Name: "got", Data: p.ids.hide(rendered(recorder))},
	}
	if len(p.ran) == 0 {
		files = slices.Delete(files, 1, 2)
	}
	return files
}

// lost is a client's connection that breaks with the end of the answer.
type lost struct{ *httptest.ResponseRecorder }

func (l lost) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("message_stop")) || bytes.Contains(b, []byte(`"stop_reason":"`)) {
		return 0, io.ErrClosedPipe
	}
	return l.ResponseRecorder.Write(b)
}

// rendered is a response as it is on the wire, but for headers that are always
// the same.
func rendered(w *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintln(&b, w.Code)
	h := w.Result().Header
	for _, name := range []string{"Cache-Control", "X-Accel-Buffering", "X-Content-Type-Options"} {
		h.Del(name)
	}
	_ = h.Write(&b)
	return strings.ReplaceAll(b.String(), "\r", "") + "\n" + w.Body.String()
}

// post is the upstream.
func (p *player) post(_ context.Context, parts [][]byte) (*http.Response, error) {
	body := bytes.Join(parts, nil)
	if err := rawjson.Check(body); err != nil {
		p.Errorf("the upstream was sent malformed JSON: %v\n%s", err, body)
	}
	p.asked = append(p.asked, tidy(body)+"\n")
	if len(p.answers) == 0 {
		return nil, errors.New("no further answer in the transcript")
	}
	data := string(p.answers[0].Data)
	p.answers = p.answers[1:]
	resp := &http.Response{StatusCode: 200, Header: http.Header{}}
	if strings.HasPrefix(data, "HTTP ") {
		head, rest, _ := strings.Cut(data, "\n\n")
		data = rest
		lines := strings.Split(head, "\n")
		resp.StatusCode, _ = strconv.Atoi(strings.TrimPrefix(lines[0], "HTTP "))
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			resp.Header.Add(name, value)
		}
	}
	if resp.StatusCode == 0 {
		return nil, errors.New("connection refused")
	}
	if resp.Header.Get("Content-Type") == "" {
		resp.Header.Set("Content-Type", "application/json")
		if strings.HasPrefix(data, "data:") || strings.HasPrefix(data, ":") {
			resp.Header.Set("Content-Type", "text/event-stream")
		}
	}
	if resp.Header.Get("Line-Ends") == "crlf" {
		data = strings.ReplaceAll(data, "\n", "\r\n")
	}
	var content io.Reader = strings.NewReader(data)
	if resp.Header.Get("Broken") != "" {
		content = io.MultiReader(content, broken{})
	}
	resp.Header.Del("Line-Ends")
	resp.Header.Del("Broken")
	resp.Body = io.NopCloser(content)
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

var resultMeta = regexp.MustCompile(`,\\"meta\\":\{.*?\}\}"`)

// tidy leaves out of a body for the upstream what other packages decide.
func tidy(body []byte) string {
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return string(body)
	}
	if tools, err := rawjson.Elements(o.Get("tools")); err == nil {
		for i, raw := range tools {
			tool, _ := rawjson.ParseObject(raw)
			if f, err := rawjson.ParseObject(tool.Get("function")); err == nil && bytes.Contains(f.Get("description"), []byte("(ours)")) {
				name, _ := rawjson.String(f.Get("name"))
				tools[i] = json.RawMessage("<" + name + ">")
			}
		}
		o.Set("tools", rawjson.AppendArray(nil, tools))
	}
	return resultMeta.ReplaceAllString(string(o.Bytes()), `,\"meta\":{…}}"`)
}

// minted gives random ids names that do not change.
type minted struct {
	names map[string]string // by id
	ids   map[string]string // by name
	count map[string]int
}

var mintedID = regexp.MustCompile(`dragoman0[A-Z2-7]{22}|dragoman1[A-Z2-7]{22}|(?:msg|toolu|mcptoolu|srvtoolu)_dg[A-Z2-7]{22}|A[Q-Za-f][A-Za-z0-9+/]{50,}=*`)

func (m *minted) hide(s string) []byte {
	return []byte(mintedID.ReplaceAllStringFunc(s, func(id string) string {
		if m.names == nil {
			m.names, m.ids, m.count = map[string]string{}, map[string]string{}, map[string]int{}
		}
		name, ok := m.names[id]
		if !ok {
			kind, _, _ := strings.Cut(id, "_dg")
			switch {
			case strings.Contains(id, "_dg"):
			case strings.HasPrefix(id, "dragoman0"):
				kind = "read"
			case strings.HasPrefix(id, "dragoman1"):
				kind = "wrote"
			default:
				kind = "seal"
			}
			m.count[kind]++
			name = fmt.Sprintf("<%s-%d>", kind, m.count[kind])
			m.names[id], m.ids[name] = name, id
		}
		return name
	}))
}

func (m *minted) put(b []byte) []byte {
	for name, id := range m.ids {
		b = bytes.ReplaceAll(b, []byte(name), []byte(id))
	}
	return b
}

// shop is the toolset of the transcripts.
type shop struct{ p *player }

var shopTools = []dragoman.Tool{
	tool("camera", "photo", dragoman.ReadOnly, `{"type":"object","properties":{}}`),
	tool("files", "delete", dragoman.MayChange, `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
	tool("files", "lock", dragoman.MayChange, `{"type":"object","properties":{}}`),
	tool("files", "save", dragoman.MayChange, `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
	tool("weather", "get", dragoman.ReadOnly, `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	tool("weather", "time", dragoman.ReadOnly, `{"type":"object","properties":{}}`),
}

func tool(server, name string, effect dragoman.Effect, schema string) dragoman.Tool {
	t := dragoman.Tool{
		Name: server + "__" + name, Description: "(ours)", InputSchema: json.RawMessage(schema),
		Server: server, Original: name, Declared: effect,
	}
	t.Definition = json.RawMessage(`{"name":"` + name + `","description":"(ours)","inputSchema":` + schema + `}`)
	t.Pin = dragoman.Pin(t.Server, t.Original, t.Definition)
	return t
}

var shopList = &dragoman.List{Tools: dragoman.NewTools(shopTools)}

func (s shop) List(context.Context) (*dragoman.List, error) {
	if !s.p.search {
		return shopList, nil
	}
	does := tool("search", "web", dragoman.ReadOnly, `{"type":"object"}`)
	return &dragoman.List{Tools: dragoman.NewTools(append(slices.Clone(shopTools), hosted.Search{}.Tool(&does, hosted.WebSearch)))}, nil
}

func (s shop) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	s.p.mu.Lock()
	s.p.ran = append(s.p.ran, c.Tool.Server+" "+c.Tool.Original+" "+string(c.Arguments)+"\n")
	slices.Sort(s.p.ran) // calls of a round run side by side
	s.p.mu.Unlock()
	switch c.Tool.Original {
	case hosted.WebSearch:
		if hosted.Query(c.Arguments) == "too much" {
			return dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{Code: dragoman.CodeBudget, Message: "No further searches."}}, nil
		}
		return dragoman.Result{Ran: dragoman.RanYes, Content: hosted.Content([]hosted.Result{{URL: "https://cats.example/oslo", Title: "Cats in Oslo", Text: "There are many."}})}, nil
	case model.FindTools:
		return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"tools":[{"name":"weather__get"}]}}`)}, nil
	case "lock":
		if c.Answers != nil {
			return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"locked":true}}`)}, nil
		}
		return dragoman.Result{Ran: dragoman.RanNot, Asks: &dragoman.Asks{State: []byte("s"), Questions: []dragoman.Question{{Key: "k", Kind: dragoman.AskApproval, Operator: true}}}}, nil
	case "photo":
		return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]}`)}, nil
	case "save":
		return dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"saved":true}}`)}, nil
	case "delete":
		return dragoman.Result{Ran: dragoman.RanYes, Problem: &dragoman.Problem{Code: dragoman.CodeTooLarge, Message: "The result is over the limit."}}, nil
	}
	return dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"for":` + string(c.Arguments) + `}}`)}, nil
}
