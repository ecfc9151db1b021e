//go:build unix

package replicas

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

// A scene is a model that has one tool called that reads, one that writes, and then speaks;
// and the server of both. It can be held at a point, as long as nobody lets it go on.
type scene struct {
	mu    sync.Mutex
	hold  string
	held  chan struct{} // closed when the point is reached
	let   chan struct{}
	wrote int
}

// begin sets the point at which the next response is held.
func (s *scene) begin(point string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold, s.held, s.let, s.wrote = point, make(chan struct{}), make(chan struct{}), 0
}

func (s *scene) at(ctx context.Context, point string) {
	s.mu.Lock()
	mine, let := s.hold == point, s.let
	if mine {
		s.hold = ""
		close(s.held)
	}
	s.mu.Unlock()
	if mine {
		select {
		case <-let:
		case <-ctx.Done():
		}
	}
}

// ServeHTTP is the model.
func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Role string }
		Tools    []struct{ Function struct{ Name string } }
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	results := 0
	for _, m := range body.Messages {
		if m.Role == "tool" {
			results++
		}
	}
	s.at(r.Context(), fmt.Sprint("before model ", results))
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta, finish string) {
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		_ = http.NewResponseController(w).Flush()
	}
	if results < 2 {
		want := []string{"get_thing", "update_thing"}[results]
		for _, tool := range body.Tools {
			if strings.HasSuffix(tool.Function.Name, want) {
				say(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_`+want+`","type":"function","function":{"name":"`+tool.Function.Name+`","arguments":"{\"id\":\"a\"}"}}]}`, `"tool_calls"`)
			}
		}
	} else {
		say(`{"role":"assistant","content":"It is "}`, "null")
		s.at(r.Context(), "within model 2")
		say(`{"content":"done."}`, `"stop"`)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

type thing struct {
	ID string `json:"id" desc:"Which"`
}

// server is that of the tools.
func (s *scene) server(t *testing.T) string {
	server := toolkit.NewServer(toolkit.Options{Service: "things", Version: "1"})
	toolkit.Add(server, toolkit.Tool{
		Name: "things_get_thing", Description: "Looks at a thing.", Hints: toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
		Examples: []toolkit.Example{{Ask: "What is a?", Arguments: `{"id":"a"}`}},
	}, func(ctx context.Context, in thing) (thing, error) {
		s.at(ctx, "while it reads")
		return in, nil
	})
	toolkit.Add(server, toolkit.Tool{
		Name: "things_update_thing", Description: "Writes a thing.", Hints: toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.Yes, Idempotent: toolkit.No, OpenWorld: toolkit.No},
		Examples: []toolkit.Example{{Ask: "Write a.", Arguments: `{"id":"a"}`}},
	}, func(ctx context.Context, in thing) (thing, error) {
		s.at(ctx, "before it writes")
		s.mu.Lock()
		s.wrote++
		s.mu.Unlock()
		s.at(ctx, "after it wrote")
		return in, nil
	})
	h, err := server.Handler()
	if err != nil {
		t.Fatal(err)
	}
	at := httptest.NewServer(h)
	t.Cleanup(at.Close)
	return at.URL
}

// A reader reads the events of a response, and goes on where it was, at whichever replica.
type reader struct {
	t     *testing.T
	id    string
	last  int
	kinds []string
	items map[string]int // how often each was added, by its place
}

// read reads at a replica until the stream ends or breaks, and reports whether it is whole.
func (r *reader) read(ctx context.Context, at string) bool {
	req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/v1/responses/%s?stream=true&starting_after=%d", at, r.id, r.last), nil)
	if err != nil {
		r.t.Error(err)
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return true
		}
		var e struct {
			Type   string
			Number int  `json:"sequence_number"`
			Index  *int `json:"output_index"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			r.t.Errorf("%v: %s", err, data)
		}
		if e.Number != r.last+1 {
			r.t.Errorf("event %d behind %d", e.Number, r.last)
		}
		r.last = e.Number
		r.kinds = append(r.kinds, e.Type)
		if e.Type == "response.output_item.added" {
			r.items[fmt.Sprint(*e.Index)]++
		}
	}
	return false
}

// asked begins a response in the background. A process that was stopped is behind with what
// it has to write when it wakes, and says so until that is written: it is asked again, as
// official clients do.
func asked(t *testing.T, url string) *http.Response {
	t.Helper()
	for {
		res, err := http.Post(url+"/v1/responses", "application/json", strings.NewReader(`{"model":"m","background":true,"input":"Write it"}`))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusServiceUnavailable || t.Context().Err() != nil {
			return res
		}
		if res.Header.Get("Retry-After") == "" {
			t.Fatal("it does not say when to come again")
		}
		res.Body.Close()
	}
}

// A replica that is killed, or stopped, at any point of a response in the background: another
// one goes on, or says that it cannot, within the lease and five seconds; nothing is written
// twice, and who reads misses no event and has none twice.
func TestRunsSurvive(t *testing.T) {
	const lease = 2 * time.Second
	s := &scene{}
	model := httptest.NewServer(s)
	t.Cleanup(model.Close)
	f := Start(t, Options{Count: 2, Lease: lease, Config: fmt.Sprintf("models: [{match: \"*\", base_url: %q}]\nmcpServers: {things: {url: %q}}", model.URL+"/v1", s.server(t))})
	for _, end := range []string{"kill", "stop"} {
		for _, point := range []string{"before model 0", "while it reads", "before model 1", "before it writes", "after it wrote", "before model 2", "within model 2"} {
			t.Run(strings.ReplaceAll(end+" "+point, " ", "-"), func(t *testing.T) {
				s.begin(point)
				res := asked(t, f.Replica(0).URL)
				var begun struct{ ID, Status string }
				if err := json.NewDecoder(res.Body).Decode(&begun); err != nil || begun.Status != "queued" {
					t.Fatalf("%+v, %v", begun, err)
				}
				res.Body.Close()
				r := &reader{t: t, id: begun.ID, last: -1, items: map[string]int{}}
				<-s.held
				reading, leave := context.WithCancel(t.Context())
				read := make(chan bool, 1)
				go func() { read <- r.read(reading, f.Replica(0).URL) }()
				start := time.Now()
				if end == "kill" {
					f.Kill(0)
				} else {
					f.Signal(0, syscall.SIGSTOP)
					leave() // as a client does that hears nothing
				}
				<-read
				leave()
				for !r.read(t.Context(), f.Replica(1).URL) {
					if t.Failed() || t.Context().Err() != nil {
						t.Fatal("it does not end")
					}
				}
				took := time.Since(start)
				t.Logf("%s behind the signal", took.Round(10*time.Millisecond))
				if took > lease+5*time.Second && !patience.Busy() {
					t.Errorf("it took %s", took)
				}
				close(s.let)
				if end == "kill" {
					f.Again(0)
				} else {
					f.Signal(0, syscall.SIGCONT)
				}
				if last := r.kinds[len(r.kinds)-1]; last != "response.completed" && last != "response.failed" {
					t.Errorf("%v", r.kinds)
				}
				again := &reader{t: t, id: begun.ID, last: -1, items: map[string]int{}}
				if !again.read(t.Context(), f.Replica(1).URL) || !slices.Equal(again.kinds, r.kinds) {
					t.Errorf("%v\n%v", again.kinds, r.kinds)
				}
				for at, n := range again.items {
					if n != 1 {
						t.Errorf("item %s was added %d times", at, n)
					}
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.wrote > 1 {
					t.Errorf("it wrote %d times", s.wrote)
				}
			})
		}
	}
}
