package api

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

// field is a part of a form.
type field struct{ head, value string }

func formOf(fields ...field) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString("--x\r\n" + f.head + "\r\n\r\n" + f.value + "\r\n")
	}
	return b.String() + "--x--\r\n"
}

const named = `Content-Disposition: form-data; name="model"`

// TestModelIsJudgedWhereverItStands: no spelling of a request that is passed on uses a
// model that its caller may not, whatever its API takes for a model.
func TestModelIsJudgedWhereverItStands(t *testing.T) {
	got := make(chan string, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil { // not broken off
			got <- string(body)
		}
	}))
	t.Cleanup(up.Close)
	rules, err := policy.New(policy.Config{Rules: []policy.Rule{{Allow: []string{"route:*", "model:small", "model:smäll"}}}})
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, func(o *Options) {
		o.Sessions = session.New(session.Options{
			Tools: session.Shared(&toolset{}), Upstreams: o.Upstreams, Dialects: dialect.Builtin(), Gate: gate.New(gate.Options{Policy: rules}),
		})
	}, upstream.Model{Match: "*", BaseURL: up.URL})

	file := field{`Content-Disposition: form-data; name="file"; filename="Grüße.wav"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.wav`, strings.Repeat("\x00\xff\r\n--", 40_000)}
	small := field{named, "small"}
	const form = "multipart/form-data; boundary=x"
	for _, tt := range []struct {
		name, kind, body, query string
		status                  int // 0: passed on
	}{
		{"JSON", "application/json", `{"model":"small"}`, "", 0},
		{"JSON in UTF-8", `application/json; charset="UTF-8"`, `{"model":"small"}`, "", 0},
		{"JSON of another type", "text/plain", " \n{\"model\":\"small\"}", "", 0},
		{"JSON as curl -d sends it", "application/x-www-form-urlencoded", `{"model":"small"}`, "", 0},
		{"a form", form, formOf(small, file), "", 0},
		{"a form with the model last", form, formOf(file, small), "", 0},
		{"a form in UTF-8", form + "; charset=utf-8", formOf(small, file), "", 0},
		{"a form of a program", form, formOf(field{named + "\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: binary\r\nContent-Length: 5", "small"}, field{`Content-Disposition: form-data; name="file"; filename="=?utf-8?q?a?="; filename*=utf-8''%61`, "x"}), "", 0},
		{"a form as a library sends it", form + "; charset=ISO-8859-1", formOf(field{named + "\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit", "small"}, file), "", 0},
		{"a form with a language", form, formOf(small, field{`Content-Disposition: form-data; name="timestamp_granularities[]"`, "word"}), "", 0},
		{"a form without", form, formOf(file), "", 400},
		{"zeros", "application/octet-stream", strings.Repeat("\x00", 2*maxBlank), "", 403},
		{"an offer", "application/sdp", "v=0\r\n", "?model=small", 403},
		{"JSON and a model in the query alone", "application/json", `{}`, "?model=small", 403},

		{"JSON and an equal query", "application/json", `{"model":"small"}`, "?model=small&api-version=1", 0},

		{"JSON", "application/json", `{"model":"large"}`, "", 403},
		{"further models", "application/json", `{"model":"small","models":["small"],"fallbacks":null}`, "", 0},
		{"JSON without a type", "", `{"model":"large"}`, "", 403},
		{"for when the first one fails", "application/json", `{"model":"small","models":["small","large"]}`, "", 403},
		{"for when the first one fails, too", "application/json", `{"model":"small","Fallbacks":[{"model":"large"}]}`, "", 403},
		{"for when there is none", "application/json", `{"\u006dodels":"large"}`, "", 403},
		{"JSON of another type", "text/plain", " \n{\"model\":\"large\"}", "", 403},
		{"JSON as curl -d sends it", "application/x-www-form-urlencoded", `{"model":"large"}`, "", 403},
		{"behind a mark", "text/plain", "\xef\xbb\xbf{\"model\":\"large\"}", "", 400},
		{"behind white space", "text/plain", strings.Repeat(" ", 2*maxBlank) + `{"model":"large"}`, "", 400},
		{"JSON in an encoding of its own", "application/json; charset=utf-7", `{"model":"small","user":"+ACI-,+ACI-model+ACI-:+ACI-large"}`, "", 415},
		{"in capitals", "application/json", `{"Model":"large"}`, "", 400},
		{"in capitals, too", "application/json", `{"model":"small","MODEL":"large"}`, "", 400},
		{"as a form of a page", "application/x-www-form-urlencoded", "model=large", "", 415},
		{"two models asked for", "application/sdp", "v=0", "?model=small&model=large", 400},
		{"another one asked for than in JSON", "application/json", `{"model":"small"}`, "?model=large", 400},
		{"another one asked for than in a form", form, formOf(small, file), "?model=large", 400},
		{"another one asked for than last in a form", form, formOf(file, small), "?model=large", 403},
		{"the same asked for in capitals", "application/sdp", "v=0", "?Model=large", 400},
		{"a list asked for", "application/sdp", "v=0", "?model%5b%5d=large", 400},
		{"a query that can be split in two ways", "application/sdp", "v=0", "?model=small;model=large", 400},
		{"a type that can be read in two ways", form + "; boundary=y", formOf(field{named, "large"}), "", 400},
		{"a form in an encoding of its own", form + "; charset=utf-7", formOf(small, field{`Content-Disposition: form-data; name="+AG0AbwBkAGUAbA-"`, "large"}), "", 415},
		{"a form without a boundary", "multipart/form-data", formOf(field{named, "large"}), "", 400},
		{"a form", form, formOf(field{named, "large"}, file), "", 403},
		{"last in a form", form, formOf(file, field{named, "large"}), "", 403},
		{"twice in a form", form, formOf(small, file, field{named, "large"}), "", 400},
		{"in a part of two names", form, formOf(small, field{named + `; name="x"`, "large"}), "", 400},
		{"in a part of two notations", form, formOf(small, field{`Content-Disposition: form-data; name*=UTF-8''x; name="model"`, "large"}), "", 400},
		{"in a part of the other notation", form, formOf(field{`Content-Disposition: form-data; NAME*0*=UTF-8''mod; name*1="el"`, "large"}), "", 403},
		{"in a part of two heads", form, formOf(small, field{named + "\r\n" + `Content-Disposition: form-data; name="x"`, "large"}), "", 400},
		{"in a part without a head", form, formOf(small, field{"X: y", "large"}), "", 400},
		{"in a part of another kind", form, formOf(small, field{`Content-Disposition: attachment; name="model"`, "large"}), "", 400},
		{"encoded", form, formOf(field{named + "\r\nContent-Transfer-Encoding: quoted-printable", "sm=61ll"}), "", 400},
		{"encoded where only that reader knows", form, formOf(file, field{named + "\r\nContent-Transfer-Encoding: BASE64", "bGFyZ2U="}), "", 400},
		{"in an encoding of its own", form, formOf(file, field{named + "\r\nContent-Type: text/plain; charset=utf-7", "+AGwAYQByAGcAZQ-"}), "", 400},
		{"another one by the form's charset", form + "; charset=iso-8859-1", formOf(field{named, "smäll"}), "", 400},
		{"another one by its own charset", form, formOf(field{named + "\r\nContent-Type: text/plain; charset=iso-8859-1", "smäll"}), "", 400},
		{"of two types", form, formOf(field{named + "\r\nContent-Type: text/plain; charset=us-ascii\r\nContent-Type: text/plain", "smäll"}), "", 400},
		{"as a file", form, formOf(small, field{named + `; filename="x"`, "large"}), "", 400},
		{"as the only file", form, formOf(file, field{named + `; filename="x"`, "small"}), "", 400},
		{"under a name for some", form, formOf(small, field{named + `; name*=utf-8''x`, "large"}), "", 400},
		{"under a name in pieces", form, formOf(small, field{`Content-Disposition: form-data; name*0="mo"; name*1="del"`, "large"}), "", 400},
		{"under an encoded word", form, formOf(small, field{`Content-Disposition: form-data; name="=?utf-8?B?bW9kZWw=?="`, "large"}), "", 400},
		{"under an escaped name", form, formOf(small, field{`Content-Disposition: form-data; name="mo\del"`, "large"}), "", 400},
		{"under a name behind an escape", form, formOf(small, field{`Content-Disposition: form-data; name="x"; y="\"; name=model; z="`, "large"}), "", 400},
		{"under a name in capitals", form, formOf(small, field{`Content-Disposition: form-data; name="Model"`, "large"}), "", 400},
		{"under the name of a list", form, formOf(small, field{`Content-Disposition: form-data; name="model[]"`, "large"}), "", 400},
		{"under a name with blanks", form, formOf(small, field{`Content-Disposition: form-data; name=" model"`, "large"}), "", 400},
		{"between other boundaries for some", form + "; boundary*=utf-8''y", strings.ReplaceAll(formOf(small), "--x", "--y") + formOf(field{named, "large"}), "", 400},
		{"behind the end", form, formOf(small) + formOf(field{named, "large"}), "", 400},
		{"behind an end for some", form, strings.TrimSpace(formOf(small)) + " \r\n" + formOf(file, field{named, "large"}), "", 400},
		{"an endless name", form, formOf(field{named, "small" + strings.Repeat(" ", 2*maxModelName)}), "", 403},
	} {
		a := d.do("POST", "/v1/audio/transcriptions"+tt.query, tt.body, "Content-Type", tt.kind)
		body := ""
		select {
		case body = <-got:
		default:
		}
		switch {
		case tt.status == 0 && (a.status != 200 || body != tt.body):
			t.Errorf("%s: %d, %s; %d bytes of %d were passed on", tt.name, a.status, a.body, len(body), len(tt.body))
		case tt.status != 0 && (a.status != tt.status || body != ""):
			t.Errorf("%s: %d, %s; %.100q was passed on", tt.name, a.status, a.body, body)
		}
	}
}

// answering returns a door in front of a model that gives one answer, and is told what it is
// asked.
func answering(t *testing.T, asked func(*http.Request)) *tested {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked(r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}]}`)
	}))
	t.Cleanup(up.Close)
	return open(t, nil, upstream.Model{Match: "*", BaseURL: up.URL})
}

// TestCharsets: a body is passed on in the encoding in which it was judged, at routes that
// have a loop, too. Readers such as those of Node.js go by what its type says.
func TestCharsets(t *testing.T) {
	var passed atomic.Int32
	d := answering(t, func(*http.Request) { passed.Add(1) })
	const body = `{"model":"small","user":"+ACI-,+ACI-model+ACI-:+ACI-large","input":"hi","messages":[{"role":"user","content":"hi"}]}`
	more := strings.ReplaceAll(body, "hi", "hé")
	for _, path := range []string{"/v1/embeddings", "/v1/chat/completions"} {
		for kind, status := range map[string][2]int{ // of a body that is ASCII, and of another
			"application/json":                                    {200, 200},
			"application/json; charset=utf-8":                     {200, 200},
			"application/json;Charset=UTF8;":                      {200, 200},
			"application/json; charset=utf-7":                     {415, 415},
			"text/plain; charset=utf-7":                           {415, 415},
			"application/json; charset=utf-16":                    {415, 415},
			"application/json; charset=us-ascii":                  {200, 415},
			"text/plain; charset=ISO-8859-1":                      {200, 415},
			"application/json; charset*=us-ascii''utf-7":          {415, 415},
			"application/json; charset*0=utf; charset*1=-7":       {415, 415},
			`application/json; charset=utf-8; x=";charset=utf-7"`: {415, 415},
			`application/json; x=";charset=utf-7"`:                {415, 415},
		} {
			for i, body := range []string{body, more} {
				before := passed.Load()
				a := d.do("POST", path, body, "Content-Type", kind)
				if now := passed.Load() - before; a.status != status[i] || (now == 1) != (status[i] == 200) {
					t.Errorf("%s, %s, %s: %d, %s; %d passed on", path, kind, body, a.status, a.body, now)
				}
			}
		}
	}
}

// TestJSONGoesOnAsJSON: what is judged as JSON is none of the forms that its type says it is.
func TestJSONGoesOnAsJSON(t *testing.T) {
	var got atomic.Value
	d := answering(t, func(r *http.Request) {
		_ = r.ParseForm() // as its type says
		got.Store(r.Header.Get("Content-Type") + " " + r.Form.Get("model"))
	})
	const body = `{"model":"small","user":"&model=large&","messages":[{"role":"user","content":"hi"}]}`
	for _, path := range []string{"/v1/embeddings", "/v1/chat/completions"} {
		for kind, want := range map[string]string{
			"application/x-www-form-urlencoded": "application/json ",
			"Application/X-WWW-Form-Urlencoded": "application/json ",
			"application/json":                  "application/json ",
			"text/plain":                        "text/plain ",
		} {
			a := d.do("POST", path, body, "Content-Type", kind)
			if a.status != 200 || got.Load() != want {
				t.Errorf("%s, %s: %d, %s; the upstream got %q, want %q", path, kind, a.status, a.body, got.Load(), want)
			}
		}
	}
}

// TestCompressedBodies: what nobody here reads is not passed on, whatever else is said of it.
func TestCompressedBodies(t *testing.T) {
	var passed atomic.Int32
	d := answering(t, func(*http.Request) { passed.Add(1) })
	const plain = `{"model":"small","messages":[{"role":"user","content":"hi"}]}`
	for _, tt := range []struct {
		kind, body string
		codings    []string
		status     int
	}{
		{"application/json", plain, nil, 200},
		{"application/json", plain, []string{"identity"}, 200},
		{"application/json", plain, []string{"deflate"}, 415},
		{"application/json", "\x1f\x8b", []string{"gzip"}, 415},
		{"", "\x1f\x8b", []string{"gzip"}, 415},
		{"", "\x1f\x8b", []string{"identity", "gzip"}, 415},
		{"text/plain", "\x1f\x8b", []string{"identity", "gzip"}, 415},
	} {
		for _, path := range []string{"/v1/embeddings", "/v1/chat/completions"} {
			before := passed.Load()
			r, err := http.NewRequest("POST", d.url+path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if tt.kind != "" {
				r.Header.Set("Content-Type", tt.kind)
			}
			r.Header["Content-Encoding"] = tt.codings
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if now := passed.Load() - before; res.StatusCode != tt.status || (now == 1) != (tt.status == 200) {
				t.Errorf("%s, %q, %v: %d, and %d passed on", path, tt.kind, tt.codings, res.StatusCode, now)
			}
		}
	}
}

// TestModelOfAConversation: further models in a conversation are judged as well, and its
// query, which goes with it, names no other one.
func TestModelOfAConversation(t *testing.T) {
	d := open(t, func(o *Options) {
		rules, err := policy.New(policy.Config{Rules: []policy.Rule{{Allow: []string{"route:*", "model:m"}}}})
		if err != nil {
			t.Fatal(err)
		}
		o.Sessions = session.New(session.Options{
			Tools: session.Shared(&toolset{}), Upstreams: o.Upstreams, Dialects: dialect.Builtin(), Gate: gate.New(gate.Options{Policy: rules}),
		})
	})
	for models, status := range map[string]int{`null`: 200, `["m"]`: 200, `["m","large"]`: 403, `{"m":"large"}`: 403} {
		body := strings.Replace(hello, "{", `{"models":`+models+`,`, 1)
		if a := d.do("POST", "/v1/chat/completions", body); a.status != status {
			t.Errorf("%s: %d %s", models, a.status, a.body)
		}
	}
	for query, status := range map[string]int{"": 200, "?api-version=1": 200, "?model=m": 200, "?model=large": 400, "?MODEL=m": 400, "?model=m&model=m": 400} {
		if a := d.do("POST", "/v1/chat/completions"+query, hello); a.status != status {
			t.Errorf("%q: %d %s", query, a.status, a.body)
		}
	}
}

// A form is the same behind the guard, however it arrives, and one that is refused has
// no end.
func TestFormGuard(t *testing.T) {
	form := formOf(field{named, "small"}, field{`Content-Disposition: form-data; name="x"`, strings.Repeat("y", 5000)})
	for name, in := range map[string]io.Reader{
		"whole": strings.NewReader(form), "byte by byte": iotest.OneByteReader(strings.NewReader(form)), "end with data": iotest.DataErrReader(strings.NewReader(form)),
		"with white space behind it": strings.NewReader(form + "\r\n \t\r\n"),
	} {
		var model string
		g := guardForm(io.NopCloser(in), map[string]string{"boundary": "x"}, false, func(m string) error { model = m; return nil })
		got, err := io.ReadAll(g)
		if err != nil || strings.TrimSpace(string(got)) != strings.TrimSpace(form) || model != "small" {
			t.Errorf("%s: %d bytes, %v, model %q", name, len(got), err, model)
		}
		_ = g.Close()
	}
	no := errors.New("no")
	for name, in := range map[string]io.Reader{"whole": strings.NewReader(form), "byte by byte": iotest.OneByteReader(strings.NewReader(form))} {
		g := guardForm(io.NopCloser(in), map[string]string{"boundary": "x"}, false, func(string) error { return no })
		if got, err := io.ReadAll(g); !errors.Is(err, no) || len(got) >= len(form) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(form), err)
		}
		_ = g.Close()
	}
	// Whoever gives up leaves nobody behind.
	g := guardForm(io.NopCloser(strings.NewReader(form)), map[string]string{"boundary": "x"}, false, func(string) error { return nil })
	_, _ = g.Read(make([]byte, 10))
	_ = g.Close()
	if err := <-g.result; err == nil {
		t.Error("a form that was given up is whole")
	}
	// A form that multipart.Writer writes is one.
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("model", "small")
	_ = w.Close()
	if _, err := io.ReadAll(guardForm(io.NopCloser(&b), map[string]string{"boundary": w.Boundary()}, false, func(string) error { return nil })); err != nil {
		t.Error(err)
	}
}
