package meter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

const (
	events   = "text/event-stream; charset=utf-8"
	document = "application/json"
	wish     = `{"model":"m","stream":true,"messages":[]}`
	asking   = `{"model":"m","stream":true,"messages":[],"stream_options":{"include_usage":true}}`
)

// An api answers each request with the next of its answers, and keeps the requests.
type api struct {
	kind    string
	answers []string
	refuses int // the status for a request that asks for usage; 0 for none
	got     []string
}

func (a *api) send(parts [][]byte) (*http.Response, error) {
	body := bytes.Join(parts, nil)
	a.got = append(a.got, string(body))
	res := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {a.kind}}, ContentLength: 1}
	if a.refuses != 0 && bytes.Contains(body, []byte("include_usage")) {
		res.StatusCode = a.refuses
		res.Body = io.NopCloser(strings.NewReader("{}"))
		return res, nil
	}
	res.Body = io.NopCloser(strings.NewReader(a.answers[0]))
	if len(a.answers[0]) < 1<<10 {
		res.Body = io.NopCloser(iotest.OneByteReader(strings.NewReader(a.answers[0])))
	}
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	return res, nil
}

func TestCounts(t *testing.T) {
	const (
		first   = `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}` + "\n\n"
		second  = `data: {"id":"1", "choices":[{"index":0,"delta":{"content":"\"usage\":{\"total_tokens\":1}"}}]}` + "\n\n"
		said    = `data: {"id":"1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}` + "\n\n"
		done    = "data: [DONE]\n\n"
		comment = ": waiting\n\n"
		echo    = `{"name":"f","parameters":{"default":{"usage":{"input_tokens":4000000,"output_tokens":300,"total_tokens":7}}}}`
		same    = "same" // as the body, or the answer
	)
	metadata := strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("k", 64)+`":"`+strings.Repeat(`\u00e9`, 512)+`",`, 16), ",") // as large as APIs let it be
	for _, tt := range []struct {
		name, kind, body, answer string
		refuses                  int
		sent, got                string
		tokens                   int64
	}{
		{"a stream", events, wish, comment + first + second + said + done, 0,
			asking, comment + `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n" + second + done, 12},
		{"lines that end in two characters", events, wish, strings.ReplaceAll(comment+second+said+done, "\n", "\r\n"), 0,
			asking, strings.ReplaceAll(comment+second+done, "\n", "\r\n"), 12},
		{"usage with the last words", events, wish, `data:{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"total_tokens":9},"x":1}`, 0,
			asking, `data:{"choices":[{"delta":{},"finish_reason":"stop"}],"x":1}`, 9},
		{"usage that grows", events, wish, strings.ReplaceAll(said, "12", "6") + said, 0, asking, "", 12},
		{"asked for", events, asking, comment + first + said + done, 0, same, same, 12},
		{"a name with an escape", events, `{"stre\u0061m":true,"messages":[]}`, comment + first + second + said + done, 0,
			`{"stre\u0061m":true,"messages":[],"stream_options":{"include_usage":true}}`, comment + `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n" + second + done, 12},
		{"other options", events, `{"stream":true,"prompt":"x","stream_options":{"include_usage":false,"x":1}}`, said, 0,
			`{"stream":true,"prompt":"x","stream_options":{"include_usage":true,"x":1}}`, "", 12},
		{"no stream", document, `{"messages":[],"stream":false}`, `{"choices":[],"usage":{"total_tokens":8}}`, 0, same, same, 8},
		{"a stream that comes as a document", document, wish, `{"choices":[],"usage":{"total_tokens":8}}`, 0, asking, same, 8},
		{"in and out", document, `{"input":"x"}`, `{"output":[],"usage" : {"input_tokens":3,"output_tokens":4},"metadata":{"a":"usage"}}`, 0, same, same, 7},
		{"a response", events, `{"stream":true,"input":"x"}`, `event: response.completed` + "\n" + `data: {"response":{"usage":{"total_tokens":5},"user":null}}` + "\n\n", 0, same, same, 5},
		{"metadata behind it", document, `{"input":"x"}`, `{"usage":{"total_tokens":12345},"metadata":{` + metadata + `}}`, 0, same, same, 12345},
		{"metadata behind it, in a stream", events, `{"stream":true,"input":"x"}`, `data: {"response":{"usage":{"total_tokens":12345},"metadata":{` + metadata + `}}}` + "\n\n", 0, same, same, 12345},
		// What the client sent comes back with an answer, and says nothing of what it cost.
		{"tools of the request", events, `{"stream":true,"input":"x"}`, `data: {"response":{"tools":[` + echo + `],"usage":null}}` + "\n\n" +
			`data: {"response":{"tools":[` + echo + `],"usage":{"total_tokens":5}}}` + "\n\n", 0, same, same, 5},
		{"tools of the request behind it", document, `{"input":"x"}`, `{"usage":{"total_tokens":5},"tools":[` + echo + `]}`, 0, same, same, 5},
		{"more than anything costs", events, `{"stream":true,"input":"x"}`, `data: {"response":{"usage":{"input_tokens":9223372036854775807,"output_tokens":5,"total_tokens":9223372036854775807}}}` + "\n\n" +
			`data: {"response":{"usage":{"input_tokens":3,"output_tokens":5,"total_tokens":8}}}` + "\n\n", 0, same, same, 8},
		{"a long document", document, `{"messages":[]}`, `{"choices":["` + strings.Repeat("x", 100<<10) + `"],"usage":{"total_tokens":8}}`, 0, same, same, 8},
		// What is not said is a third of the bytes.
		{"nothing said", document, `{"messages":["123456789"]}`, strings.Repeat("x", 300), 0, same, same, 9 + 100},
		{"usage of nothing", document, `{}`, `{"usage":{"total_tokens":0}}`, 0, same, same, 1 + 10},
		{"a stream without usage", events, wish, strings.Repeat("data: {\"c\":\"\"}\n\n", 4) + "data: {\"c\":\"abcdef\"}\n\n" + done, 0, asking, same, 14 + 5 + 2},
		{"one long event", events, wish, `data: {"c":"` + strings.Repeat("x", 1000-8) + `"}` + "\n\n" + done, 0, asking, same, 14 + 1 + 200},
		{"refused", events, wish, first + said + done, 400, same, same, 12},
		{"refused in another way", events, wish, second + done, 422, same, same, 14 + 1},
		{"no JSON", document, "", `{"text":"abc"}`, 0, same, same, 5},
		{"a line without end", events, wish, "data: " + strings.Repeat("x", maxLine+10) + "\n\n" + said, 0, asking, "data: " + strings.Repeat("x", maxLine+10) + "\n\n", 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var counted []int64
			m := &Meter{Count: func(u Used) {
				if !u.Failed {
					counted = append(counted, u.Total)
				}
			}}
			up, peer := new(atomic.Bool), &api{kind: tt.kind, answers: []string{tt.answer}, refuses: tt.refuses}
			var body [][]byte
			if at := len(tt.body) / 2; at > 0 {
				at += strings.IndexByte(tt.body[at:], '[') + 1 // where parts end and begin
				body = [][]byte{[]byte(tt.body[:at]), []byte(tt.body[at:])}
			}
			res, err := m.Do(Request{Silent: up, Body: body, Text: true, Asks: true, Send: peer.send})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(iotest.HalfReader(res.Body))
			if err != nil {
				t.Error(err)
			}
			if err := res.Body.Close(); err != nil {
				t.Error(err)
			}
			if tt.sent == same {
				tt.sent = tt.body
			}
			if tt.got == same {
				tt.got = tt.answer
			}
			if sent := peer.got[len(peer.got)-1]; sent != tt.sent {
				t.Errorf("sent %s\nwant %s", sent, tt.sent)
			}
			if string(got) != tt.got {
				t.Errorf("got  %.300q\nwant %.300q", got, tt.got)
			}
			if len(counted) != 1 || counted[0] != tt.tokens {
				t.Errorf("counted %d, want %d", counted, tt.tokens)
			}
			if refused := tt.refuses != 0; up.Load() != refused || len(peer.got) != map[bool]int{false: 1, true: 2}[refused] {
				t.Errorf("%d requests, remembered: %t", len(peer.got), up.Load())
			}
		})
	}
}

// An API that refused once is not asked again, and one that refuses the request anyway
// is not blamed.
func TestRefused(t *testing.T) {
	m := &Meter{Count: func(Used) {}}
	peer := &api{kind: events, answers: []string{""}, refuses: 400}
	r := Request{Silent: new(atomic.Bool), Body: [][]byte{[]byte(wish)}, Text: true, Asks: true, Send: peer.send}
	for range 2 {
		if _, err := m.Do(r); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{asking, wish, wish}; strings.Join(peer.got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent %q", peer.got)
	}
	up := new(atomic.Bool)
	res, err := m.Do(Request{Silent: up, Body: [][]byte{[]byte(wish)}, Asks: true, Send: func([][]byte) (*http.Response, error) {
		return &http.Response{StatusCode: 400, Body: http.NoBody}, nil
	}})
	if err != nil || res.StatusCode != 400 || up.Load() {
		t.Errorf("%v, %v, remembered: %t", res, err, up.Load())
	}
}

// What is no completion is not asked: an API that refuses that there would not be asked
// about completions any more, and nobody's usage be known.
func TestAsksCompletions(t *testing.T) {
	m, up := &Meter{Count: func(Used) {}}, new(atomic.Bool)
	peer := &api{kind: events, answers: []string{""}, refuses: 400}
	const response = `{"stream":true,"prompt":{"id":"p"}}`
	res, err := m.Do(Request{Silent: up, Body: [][]byte{[]byte(response)}, Text: true, Send: peer.send})
	if err != nil || res.StatusCode != 200 || len(peer.got) != 1 || peer.got[0] != response || up.Load() {
		t.Errorf("%v, %v, sent %q, remembered: %t", res, err, peer.got, up.Load())
	}
}

// What is left in the middle is counted, by whoever ends it first.
func TestLeft(t *testing.T) {
	counted := make(chan int64, 10)
	m := &Meter{Count: func(u Used) { counted <- u.Total }}
	said, words := io.Pipe()
	res, err := m.Do(Request{Silent: new(atomic.Bool), Body: [][]byte{[]byte(`{"stream":true,"messages":[]}`)}, Text: true, Asks: true, Send: func([][]byte) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {events}}, Body: said}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() {
		_, err := io.ReadAll(res.Body)
		read <- err
	}()
	_, _ = words.Write([]byte("data: {}\n\ndata: {}\n\n"))
	_, _ = words.Write([]byte(`data: {"usage":{"total_tokens":2}}` + "\n\n")) // of the request alone
	_, _ = words.Write([]byte("data: {}\n"))                                  // what was written before has been counted
	_, _ = words.Write([]byte("\n"))
	_ = res.Body.Close()
	if err := <-read; !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	_ = res.Body.Close()
	if n := <-counted; n != 10+4+9 || len(counted) > 0 {
		t.Errorf("counted %d, and %d times more", n, len(counted))
	}
}

// No tokens are counted of what is refused or fails, and nothing where nobody wants to know.
func TestNotCounted(t *testing.T) {
	peer := &api{kind: document, answers: []string{"x"}}
	if res, err := (*Meter)(nil).Do(Request{Body: [][]byte{[]byte(wish)}, Send: peer.send}); err != nil || peer.got[0] != wish || res.ContentLength != 1 {
		t.Errorf("%v, %v, sent %s", res, err, peer.got)
	}
	m := &Meter{Count: func(u Used) {
		if u.Total != 0 || !u.Failed {
			t.Errorf("counted: %+v", u)
		}
	}}
	for _, status := range []int{101, 301, 401, 500} {
		res, err := m.Do(Request{Silent: new(atomic.Bool), Send: func([][]byte) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		}})
		if err != nil || res.Body.Close() != nil {
			t.Error(err)
		}
	}
	failed := errors.New("failed")
	if _, err := m.Do(Request{Silent: new(atomic.Bool), Send: func([][]byte) (*http.Response, error) { return nil, failed }}); err != failed {
		t.Error(err)
	}
}

// A request that an API has, and for whose answer nobody waits any more, is counted by its
// length, be it that its client left or that it took too long; one that never left is not.
func TestGivenUp(t *testing.T) {
	arrived, over := make(chan struct{}, 10), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-over
	}))
	defer api.Close()
	defer close(over)
	const body = `{"messages":["123456789"]}`
	try := func(url string, transport *http.Transport, leaves bool) (all []Used) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			select {
			case <-arrived:
				if leaves {
					leave()
				}
			case <-ctx.Done():
			}
		}()
		sending, givenUp := Sending(ctx)
		m := &Meter{Count: func(u Used) { all = append(all, u) }}
		if _, err := m.Do(Request{Silent: new(atomic.Bool), Body: [][]byte{[]byte(body)}, GivenUp: givenUp, Send: func(body [][]byte) (*http.Response, error) {
			req, err := http.NewRequestWithContext(sending, http.MethodPost, url, bytes.NewReader(bytes.Join(body, nil)))
			if err != nil {
				return nil, err
			}
			return transport.RoundTrip(req)
		}}); err == nil {
			t.Error("an answer")
		}
		return all
	}
	for name, all := range map[string][]Used{
		"its client left":  try(api.URL, &http.Transport{}, true),
		"it took too long": try(api.URL, &http.Transport{ResponseHeaderTimeout: time.Millisecond}, false),
	} {
		if len(all) != 1 || all[0].In != 9 || all[0].Total != 9 || !all[0].Failed || !all[0].Estimated {
			t.Errorf("%s: %+v", name, all)
		}
	}
	refuses, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refuses.Close()
	if all := try("http://"+refuses.Addr().String(), &http.Transport{}, false); len(all) != 1 || all[0].Total != 0 || !all[0].Failed {
		t.Errorf("nobody was there: %+v", all)
	}
}

// FuzzStream reads streams in pieces of all sizes: without usage they come through
// byte for byte, and with it nothing else is lost.
func FuzzStream(f *testing.F) {
	f.Add("data: {\"choices\":[]}\r\n\r\n: x\ndata: [DONE]", 3)
	f.Add("data: {\"usage\":{},\"choices\":[]}\n\ndata:x\n\n", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = min(max(size, 1), len(text)+1)
		through := func(text string) string {
			a := &answer{body: io.NopCloser(pieces{strings.NewReader(text), size}), count: func(Used) {}, events: true, hide: true}
			got, err := io.ReadAll(a)
			if err != nil {
				t.Fatal(err)
			}
			return string(got)
		}
		if !strings.Contains(text, `"usage"`) {
			if got := through(text); got != text {
				t.Errorf("got %q of %q", got, text)
			}
			return
		}
		if once := through(text); through(once) != once {
			t.Errorf("%q changes once more", once)
		}
	})
}

// pieces reads so many bytes at a time.
type pieces struct {
	io.Reader
	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }
