package api

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Every route but the door's own reaches the upstream as it came: method, path,
// query, body and the headers that are about the request.
func TestRelay(t *testing.T) {
	for _, tc := range []struct {
		name, method, path, body, kind string
		want                           string
	}{
		{"JSON", "POST", "/v1/embeddings?x=1&y=%20z", `{ "input" : [1.0, 12345678901234567890], "model":"m" }`, "application/json", "POST /base/v1/embeddings?x=1&y=%20z"},
		{"no body", "GET", "/v1/files", "", "", "GET /base/v1/files"},
		{"escaped path", "GET", "/v1/files/a%20c", "", "", "GET /base/v1/files/a%20c"},
		{"one model of an organisation", "GET", "/v1/models/org%2Fm-1", "", "", "GET /base/v1/models/org%2Fm-1"},
		{"delete", "DELETE", "/v1/files/f-1", "", "", "DELETE /base/v1/files/f-1"},
		{"binary", "POST", "/v1/uploads/u/parts", "\x00\xff\x1f\x8b\r\n", "application/octet-stream", "POST /base/v1/uploads/u/parts"},
		{"empty JSON", "POST", "/v1/batches/b/cancel", "", "application/json", "POST /base/v1/batches/b/cancel"},
		{"JSON that is no object", "POST", "/v1/x", `[1]`, "application/json", "POST /base/v1/x"},
		{"other methods of our own routes", "GET", "/v1/chat/completions?limit=2", "", "", "GET /base/v1/chat/completions?limit=2"},
		{"one model", "GET", "/v1/models/org/m-1", "", "", "GET /base/v1/models/org/m-1"},
		{"responses without tools", "POST", "/v1/responses", `{"model":"m","input":"hi","tool_choice":"none"}`, "application/json", "POST /base/v1/responses"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				w.Header().Set("Content-Type", "audio/mpeg")
				w.Header().Set("X-Ratelimit-Remaining-Tokens", "7")
				w.Header().Set("X-Request-Id", "up-1")
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(http.StatusTeapot)
				_, _ = w.Write([]byte("\x00\x01binary\xff"))
			}}
			d := open(t, nil, up.model(t, "*"))
			a := d.do(tc.method, tc.path, tc.body, "Content-Type", tc.kind, "OpenAI-Beta", "assistants=v2", "X-Unknown", "kept", "Cookie", "a=b", "X-Forwarded-For", "10.0.0.1")
			if a.status != http.StatusTeapot || a.body != "\x00\x01binary\xff" {
				t.Errorf("answered %d %q", a.status, a.body)
			}
			for name, want := range map[string]string{"Content-Type": "audio/mpeg", "X-Ratelimit-Remaining-Tokens": "7", "X-Request-Id": "up-1", "Retry-After": "3"} {
				if got := a.header.Get(name); got != want {
					t.Errorf("answered with %s: %q, want %q", name, got, want)
				}
			}
			sent := up.last(t)
			if sent.line != tc.want || sent.body != tc.body {
				t.Errorf("sent %s %q, want %s %q", sent.line, sent.body, tc.want, tc.body)
			}
			for name, want := range map[string]string{"Openai-Beta": "assistants=v2", "X-Unknown": "kept", "Content-Type": tc.kind, "Cookie": "", "X-Forwarded-For": ""} {
				if got := sent.header.Get(name); got != want {
					t.Errorf("sent %s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// JSON is judged before it is relayed: what the gateway decides on must be what
// the upstream reads.
func TestRelayRefuses(t *testing.T) {
	up := &recorder{}
	d := open(t, func(o *Options) { o.MaxBody = 2048 }, up.model(t, "m*"))
	d.checkError(d.do("POST", "/v1/embeddings", `{"model":"m","model":"other"}`), 400, "invalid_json")
	d.checkError(d.do("POST", "/v1/embeddings", `{"model":"m"} x`, "Content-Type", "application/json; charset=utf-8"), 400, "invalid_json")
	d.checkError(d.do("POST", "/v1/embeddings", `{"model":"other"}`), 404, "model_not_found")
	d.checkError(d.do("GET", "/v1/models/other", ""), 404, "model_not_found")
	d.checkError(d.do("GET", "/v1/realtime?model=other", ""), 404, "model_not_found")
	d.checkError(d.do("POST", "/v1/embeddings", `{"model":"m","input":"`+strings.Repeat("x", 3000)+`"}`), 413, "body_too_large")
	if len(up.seen) > 0 {
		t.Errorf("sent %v", up.seen)
	}
}

// A server that answers TRACE as it should repeats the request that it got, and our key
// stands in that.
func TestRelayTracesNothing(t *testing.T) {
	up := &recorder{respond: func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "message/http")
		_ = r.Write(w)
	}}
	m := up.model(t, "*")
	m.APIKey = secret.New("sk-our-own-key-0123")
	d := open(t, nil, m)
	for _, method := range []string{"TRACE", "trace", "TRACK", "CONNECT"} {
		for _, path := range []string{"/v1/files", "/v1/chat/completions", "/v1/responses/resp_1"} {
			a := d.do(method, path, "")
			d.checkError(a, 405, "invalid_request")
			if strings.Contains(a.body, "sk-our-own-key-0123") {
				t.Errorf("%s %s shows our key: %s", method, path, a.body)
			}
		}
	}
	if len(up.seen) > 0 {
		t.Errorf("sent %v", up.seen)
	}
}

// What a request names decides which upstream gets it; the first one gets what
// names nothing.
func TestRouting(t *testing.T) {
	one, two := &recorder{}, &recorder{}
	alias := two.model(t, "alias")
	alias.Name = "their-name"
	d := open(t, nil, one.model(t, "a-*"), two.model(t, "b-*"), alias)
	form := func(model string) (string, string) {
		var b strings.Builder
		w := multipart.NewWriter(&b)
		file, err := w.CreateFormFile("file", "a.wav")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = file.Write(bytes.Repeat([]byte{0, 0xff, '\r', '\n'}, 1000))
		_ = w.WriteField("model", model)
		_ = w.Close()
		return b.String(), w.FormDataContentType()
	}
	formA, kindA := form("a-1")
	formB, kindB := form("b-1")
	for _, tc := range []struct {
		name, path, body, kind string
		up                     *recorder
		sent                   string
	}{
		{"chat", "/v1/chat/completions", strings.Replace(hello, `"m"`, `"b-1"`, 1), "application/json", two, "-"},
		{"embeddings", "/v1/embeddings", `{"model":"b-1"}`, "application/json", two, `{"model":"b-1"}`},
		{"alias", "/v1/embeddings", `{"input":1.0,"model":"alias","x":2}`, "application/json", two, `{"input":1.0,"model":"their-name","x":2}`},
		{"form to the first", "/v1/audio/transcriptions", formA, kindA, one, formA},
		{"form to the second", "/v1/audio/transcriptions", formB, kindB, two, formB},
		{"query", "/v1/realtime/sessions?model=b-9", "x", "text/plain", two, "x"},
		{"nothing named", "/v1/files", "x", "text/plain", one, "x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(tc.up.seen)
			d.do("POST", tc.path, tc.body, "Content-Type", tc.kind)
			if len(tc.up.seen) != before+1 {
				t.Fatal("went elsewhere")
			}
			if sent := tc.up.last(t).body; tc.sent != "-" && sent != tc.sent {
				t.Errorf("sent %q", sent)
			}
		})
	}
	d.chat(strings.Replace(hello, `"m"`, `"alias"`, 1))
	if sent := two.last(t).body; !strings.Contains(sent, `"model":"their-name"`) {
		t.Errorf("sent %s", sent)
	}
}

// A compressed answer passes as it is where it is not looked at; where it has to
// be read, it is asked for as it is.
func TestCompression(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, strings.Repeat("text ", 100))
	_ = z.Close()
	up := &recorder{}
	up.respond = func(w http.ResponseWriter, r *http.Request, _ []byte) {
		if strings.HasSuffix(r.URL.Path, "/completions") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}`)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
	d := open(t, nil, up.model(t, "*"))
	a := d.do("GET", "/v1/files/f/content", "", "Accept-Encoding", "gzip")
	if a.body != packed.String() || a.header.Get("Content-Encoding") != "gzip" || up.last(t).header.Get("Accept-Encoding") != "gzip" {
		t.Errorf("got %q %v", a.body, a.header)
	}
	if a := d.chat(hello, "Accept-Encoding", "gzip"); !json.Valid([]byte(a.body)) || up.last(t).header.Get("Accept-Encoding") != "identity" {
		t.Errorf("asked for %q, got %q", up.last(t).header.Get("Accept-Encoding"), a.body)
	}
}

// An upload that breaks off is said to, whichever way it goes. It also ends the context of its
// request, for which nobody was told anything, and net/http made 200 of that.
func TestRelayedBodyBreaksOff(t *testing.T) {
	d := open(t, nil, (&recorder{}).model(t, "*"))
	for name, sent := range map[string]string{
		"small":   "Content-Length: 1000\r\n\r\nabc",
		"large":   "Content-Length: 1000000\r\n\r\n" + strings.Repeat("abc", 100_000),
		"chunked": "Transfer-Encoding: chunked\r\n\r\n5\r\nab",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"+sent); err != nil {
				t.Fatal(err)
			}
			_ = c.(*net.TCPConn).CloseWrite()
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if said, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusBadRequest || !strings.Contains(string(said), "could not be read") {
				t.Errorf("%s %s", res.Status, said)
			}
		})
	}
}

// A WebSocket passes in both directions after the upstream has agreed to it.
func TestUpgrade(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "model=m" || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || r.Header.Get("Sec-Websocket-Key") != "abc" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: xyz\r\n\r\n")
		_ = rw.Flush()
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	}))
	t.Cleanup(server.Close)
	d := open(t, nil, upstream.Model{Match: "*", BaseURL: server.URL + "/v1"})
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /v1/realtime?model=m HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-Websocket-Accept") != "xyz" {
		t.Fatalf("answered %s %v", resp.Status, resp.Header)
	}
	_, _ = io.WriteString(conn, "\x81\x05hello\n")
	if line, err := r.ReadString('\n'); err != nil || line != "echo \x81\x05hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

// Behind h2c a client could send an upstream requests of any kind, which nobody judges, counts
// or writes down.
func TestUpgradeIsToWebSocketAlone(t *testing.T) {
	var upgraded, answered atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := r.Header.Get("Upgrade")
		if to == "" {
			answered.Add(1)
			if settings := r.Header.Get("Http2-Settings"); settings != "" {
				t.Errorf("sent HTTP2-Settings: %s", settings)
			}
			return
		}
		upgraded.Add(1)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + to + "\r\n\r\n")
		_ = rw.Flush()
	}))
	t.Cleanup(server.Close)
	d := open(t, nil, upstream.Model{Match: "*", BaseURL: server.URL + "/v1"})
	for _, to := range []string{"h2c", "H2C", "TLS/1.0", "websocket, h2c", "h2c, websocket", "http/2"} {
		a := d.do("GET", "/v1/realtime?model=m", "", "Connection", "Upgrade", "Upgrade", to, "Http2-Settings", "AAMAAABkAAQAAP__")
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", to, a.status, a.body)
		}
	}
	if upgraded.Load() != 0 || answered.Load() != 6 {
		t.Errorf("%d requests asked the upstream for another protocol, %d did not", upgraded.Load(), answered.Load())
	}
}

// The list of models is that of all upstreams; one that is down does not hide
// the others.
func TestModels(t *testing.T) {
	list := func(ids string) *recorder {
		return &recorder{respond: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"object":"list","data":[`+ids+`]}`)
		}}
	}
	a := list(`{"id":"a-1","object":"model","context":128000.0},{"id":"b-1","object":"model"}`)
	b := list(`{"id":"b-1","object":"model","owned_by":"two"},{"id":"z","object":"model"}`)
	d := open(t, nil, a.model(t, "a-*"), b.model(t, "b-*"), upstream.Model{Match: "c-*", BaseURL: "http://127.0.0.1:1/v1"})
	got := d.do("GET", "/v1/models", "")
	var have struct{ Data []json.RawMessage }
	if err := json.Unmarshal([]byte(got.body), &have); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"id":"a-1","object":"model","context":128000.0}`, `{"id":"b-1","object":"model","owned_by":"two"}`}
	var entries []string
	for _, e := range have.Data {
		entries = append(entries, string(e))
	}
	if diff := cmp.Diff(want, entries); diff != "" || got.status != 200 {
		t.Errorf("%d (-want +got)\n%s", got.status, diff)
	}
	if !strings.Contains(d.log.String(), "127.0.0.1:1") {
		t.Errorf("log: %s", d.log)
	}
}

// A client's own credentials go to an upstream only where the gateway does not
// recognise its callers by them, and has none of its own for the upstream.
func TestCredentials(t *testing.T) {
	for _, tc := range []struct {
		name, key string
		clients   bool
		want      string
	}{
		{"none of ours", "", true, "Bearer client"},
		{"ours", "gateway", true, "Bearer gateway"},
		{"callers recognised by them", "", false, ""},
		{"both", "gateway", false, "Bearer gateway"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up := &recorder{}
			m := up.model(t, "*")
			m.APIKey = secret.New(tc.key)
			d := open(t, func(o *Options) { o.ClientCredentials = func() bool { return tc.clients } }, m)
			for _, send := range []func(){
				func() { d.chat(hello, "Authorization", "Bearer client", "Api-Key", "client") },
				func() { d.do("GET", "/v1/files", "", "Authorization", "Bearer client", "Api-Key", "client") },
				func() { d.do("GET", "/v1/models", "", "Authorization", "Bearer client", "Api-Key", "client") },
			} {
				send()
				sent := up.last(t).header
				if got := sent.Get("Authorization"); got != tc.want {
					t.Errorf("%s was sent %q, want %q", up.last(t).line, got, tc.want)
				}
				if apiKey := sent.Get("Api-Key"); apiKey != "" && tc.want != "Bearer client" {
					t.Errorf("%s was sent %q", up.last(t).line, apiKey)
				}
			}
			if log := d.log.String(); strings.Contains(log, "Bearer") || strings.Contains(log, "client credential") {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// An upstream that cannot be reached, or says that it will not, answers in
// OpenAI's form on each way.
func TestUpstreamFails(t *testing.T) {
	down := upstream.Model{Match: "*", BaseURL: "http://127.0.0.1:1/v1"}
	d := open(t, nil, down)
	d.checkError(d.chat(hello), 502, "upstream_unreachable")
	d.checkError(d.do("GET", "/v1/files", ""), 502, "upstream_unreachable")
	// Whoever asked is told the address, the cause, and what to check, on each way.
	for _, body := range []string{d.chat(hello).body, d.do("GET", "/v1/files", "").body} {
		if !strings.Contains(body, "The model's API at http://127.0.0.1:1/v1 cannot be reached: connection refused. Check that it runs there, and base_url of models[0].") {
			t.Errorf("the answer does not help: %s", body)
		}
	}
	if log := d.log.String(); !strings.Contains(log, "127.0.0.1:1") || !strings.Contains(log, "connection refused") || !strings.Contains(log, "path=/v1/files ") {
		t.Errorf("the log does not help: %s", log)
	}
	// So are Anthropic's clients, in the words of their API.
	down.Wires = []string{upstream.Messages}
	if a := open(t, nil, down).do("POST", "/v1/messages", `{"model":"m","max_tokens":1,"messages":[]}`); a.status != 502 || !strings.HasPrefix(a.body, `{"type":"error"`) {
		t.Errorf("messages: %d %s", a.status, a.body)
	}
	// A forgotten /v1 is a 404 without an error of the API's own.
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	d = open(t, nil, upstream.Model{Match: "*", BaseURL: nothing.URL})
	if body := d.chat(strings.Replace(hello, `{`, `{"tools":[{"type":"mcp","server_label":"weather"}],`, 1)).body; !strings.Contains(body, "/v1, so that may be missing") {
		t.Errorf("the answer does not help: %s", body)
	}
	for _, tc := range []struct {
		model  string
		status int
		body   string
	}{
		{"rehearsal:401", 401, `"error"`},
		{"rehearsal:429", 429, `"error"`},
		{"rehearsal:500", 500, `"error"`},
		{"rehearsal:html", 502, `"upstream_invalid_response"`},
	} {
		d := open(t, nil)
		a := d.chat(strings.Replace(hello, `"m"`, `"`+tc.model+`"`, 1))
		if !strings.Contains(a.body, tc.body) || !json.Valid([]byte(a.body)) || a.status < 400 {
			t.Errorf("%s: %d %s", tc.model, a.status, a.body)
		}
		if tc.status != 502 && a.status != tc.status {
			t.Errorf("%s: status %d", tc.model, a.status)
		}
		if tc.status == 429 && a.header.Get("Retry-After") == "" {
			t.Errorf("%s: headers %v", tc.model, a.header)
		}
	}
}

// A relayed answer that breaks off breaks off for the client too, instead of
// looking complete.
func TestRelayCut(t *testing.T) {
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}}
	d := open(t, nil, up.model(t, "*"))
	resp, err := http.Get(d.url + "/v1/files/f/content")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || string(b) != "half" {
		t.Errorf("got %q, %v", b, err)
	}
}

// What an upstream says about cookies and web pages is between it and us.
func TestRelayKeepsOurHeaders(t *testing.T) {
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Add("Set-Cookie", "session=upstream")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		w.Header().Set("Clear-Site-Data", `"*"`)
		w.Header().Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
		w.Header().Set("Content-Security-Policy", "script-src 'unsafe-inline'")
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Nel", `{"report_to":"cf-nel","max_age":604800}`)
		w.Header().Set("Report-To", `{"group":"cf-nel","max_age":604800,"endpoints":[{"url":"https://reports.example"}]}`)
		w.Header().Set("Reporting-Endpoints", `default="https://reports.example"`)
		w.Header().Set("X-Accel-Redirect", "/internal/")
		w.Header().Set("X-Kept", "yes")
		_, _ = w.Write([]byte("<script>alert(1)</script>"))
	}}
	d := open(t, nil, up.model(t, "*"))
	a := d.do(http.MethodGet, "/v1/files/file-1/content", "")
	ours := []string{"Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Nel", "Report-To", "Reporting-Endpoints", "X-Accel-Redirect"}
	for name := range a.header {
		if slices.Contains(ours, name) || strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: %s reached the client", name, a.header.Get(name))
		}
	}
	// A page of an upstream's would be of the console's origin.
	for name, want := range map[string]string{"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff"} {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a.header.Get("X-Kept") != "yes" {
		t.Error("a header was lost")
	}
}

// Nor is it for who asks in a conversation, whatever becomes of it.
func TestConversationsKeepOurHeaders(t *testing.T) {
	const said = `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"}}]}`
	status := http.StatusOK
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		for _, name := range []string{
			"Set-Cookie", "Access-Control-Allow-Origin", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Nel", "Report-To",
			"Reporting-Endpoints", "Content-Security-Policy-Report-Only", "Service-Worker-Allowed", "Origin-Agent-Cluster", "X-Accel-Redirect", "X-Sendfile",
		} {
			w.Header().Set(name, "theirs")
		}
		w.Header().Set("X-Kept", "yes")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, said)
	}}
	chat := up.model(t, "*")
	chat.Wires = []string{"chat"}
	d := open(t, nil, chat)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"Go"}]}`,
		"/v1/responses":        `{"model":"m","input":"Go"}`,
		"/v1/messages":         `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Go"}]}`,
	} {
		for _, status = range []int{200, 400} {
			a := d.do(http.MethodPost, path, body)
			if a.status != status || a.header.Get("X-Kept") != "yes" {
				t.Fatalf("%s: %d %v %s", path, a.status, a.header, a.body)
			}
			for name, values := range a.header {
				if slices.Contains(values, "theirs") {
					t.Errorf("%s, %d: %s reached the client", path, status, name)
				}
			}
		}
	}
}

// TestRelayKeepsOurHeadersBeforeTheAnswer: nor does it say that in front of its answer, and what
// we say is said all the same.
func TestRelayKeepsOurHeadersBeforeTheAnswer(t *testing.T) {
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Set-Cookie", "session=upstream")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	}}
	d := open(t, nil, up.model(t, "*"))
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		t.Errorf("%d with %v", code, h)
		return nil
	}})
	req, err := http.NewRequestWithContext(ctx, "POST", d.url+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"Hi"}],"tool_choice":"none"}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if got := res.Header.Get("X-Dragoman-Tools"); res.StatusCode != 200 || got == "" {
		t.Errorf("%d, X-Dragoman-Tools: %q", res.StatusCode, got)
	}
}

// Issue 17, D2: a request whose model could have tools, and that goes on without ours, says so
// in a header and in the log, unless there are none.
func TestRelayTellsWithoutTools(t *testing.T) {
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, _ []byte) { _, _ = w.Write([]byte("{}")) }}
	speaks := up.model(t, "*")
	speaks.Wires = []string{"chat", upstream.Responses, upstream.Messages}
	d := open(t, nil, speaks)
	for _, tt := range []struct {
		method, path string
		told         bool
	}{
		{http.MethodPost, "/v1/responses", false}, // whose models get them
		{http.MethodPost, "/v1/messages", true},
		{http.MethodGet, "/v1/responses", false},
		{http.MethodPost, "/v1/embeddings", false},
		{http.MethodPost, "/v1/responses/resp_1/cancel", false},
	} {
		before := len(d.log.String())
		a := d.do(tt.method, tt.path, `{"model":"m","input":"hi"}`, "Content-Type", "application/json")
		logged := strings.Contains(d.log.String()[before:], "passed on without the tools of MCP servers")
		if told := a.header.Get("X-Dragoman-Tools"); (told == "withheld: "+tt.path+" is passed on as it is") != tt.told || logged != tt.told {
			t.Errorf("%s %s: header %q, logged %v", tt.method, tt.path, told, logged)
		}
	}
	none := open(t, func(o *Options) {
		o.Sessions = session.New(session.Options{Upstreams: o.Upstreams, Dialects: dialect.Builtin()})
	}, up.model(t, "*"))
	if a := none.do(http.MethodPost, "/v1/responses", `{"model":"m","input":"hi"}`); a.header.Get("X-Dragoman-Tools") != "" || none.log.String() != "" {
		t.Errorf("without servers: %v %s", a.header, none.log)
	}
}
