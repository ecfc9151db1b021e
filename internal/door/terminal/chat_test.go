package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/rehearsal"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A desk is a chat with the rehearsal model, its tools, and what it writes.
type desk struct {
	*Chat
	inner      *toolsettest.Inner
	out, trace bytes.Buffer
	asked      [][]byte // of the model
}

// sit returns a desk where somebody types these lines.
func sit(t *testing.T, typed string) *desk {
	t.Helper()
	return sitWith(t, typed, &rehearsal.Model{})
}

// sitWith is sit with another model.
func sitWith(t *testing.T, typed string, model http.RoundTripper) *desk {
	t.Helper()
	d := &desk{inner: toolsettest.NewInner()}
	set, err := upstream.New(nil, upstream.Options{Rehearsal: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		_, _ = b.ReadFrom(body)
		d.asked = append(d.asked, b.Bytes())
		return model.RoundTrip(r)
	})})
	if err != nil {
		t.Fatal(err)
	}
	opener := session.New(session.Options{Tools: session.Shared(d.inner), Servers: map[string]bool{toolsettest.Server: true}, Upstreams: set, Dialects: dialect.Builtin()})
	out, trace := &Screen{Writer: &d.out}, &Screen{Writer: &d.trace}
	lines := NewLines(strings.NewReader(typed), trace)
	d.Chat = &Chat{
		Model: upstream.RehearsalModel, In: lines, Questions: lines, Out: out, Trace: trace,
		Models: func(context.Context) []string { return []string{"rehearsal", "other"} },
		Open: func(ctx context.Context, want session.Want) (*session.Session, error) {
			return opener.Open(ctx, caller.Local, want)
		},
	}
	return d
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (d *desk) shows(t *testing.T, screen *bytes.Buffer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(screen.String(), text) {
			t.Errorf("%q does not show in\n%s", text, screen.String())
		}
	}
}

func TestOnce(t *testing.T) {
	d := sit(t, "")
	if err := d.Once(t.Context(), "CALL echo {\"a\":1}\nSAY Done \x1b[1m."); err != nil {
		t.Fatal(err)
	}
	if got := d.out.String(); got != "Done \\u{1b}[1m.\n" {
		t.Errorf("the answer is %q", got)
	}
	d.shows(t, &d.trace, "decide", `echo {"a":1}`, "execute", "✓", "summarise", "1 call")
	d = sit(t, "")
	d.Quiet = true
	if err := d.Once(t.Context(), "SAY Done."); err != nil || d.trace.Len() > 0 {
		t.Errorf("quiet: %v, %q", err, d.trace.String())
	}
}

// What goes wrong is told, once, and ends a single message as ErrAnswer.
func TestOnceFails(t *testing.T) {
	for model, want := range map[string]string{
		"rehearsal:500": "500", "rehearsal:html": "status 502", "rehearsal:cut-stream": "broke off",
	} {
		d := sit(t, "")
		d.Model = model
		if err := d.Once(t.Context(), "SAY one two three four five six"); !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: %v", model, err)
		}
		d.shows(t, &d.trace, "dragoman: ", want)
	}
	d := sit(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Once(ctx, "SAY hello"); !errors.Is(err, ErrAnswer) {
		t.Error(err)
	}
	d.shows(t, &d.trace, "cancelled")
}

// A question in the middle of a turn is answered where messages are typed.
func TestTurnAsks(t *testing.T) {
	d := sit(t, "CALL ask {}\n/decline\n")
	d.Attended = true
	if err := d.Interactive(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.shows(t, &d.trace, "asks:", "summarise")
	if !slices.ContainsFunc(d.asked, func(b []byte) bool { return bytes.Contains(b, []byte(`decline`)) }) {
		t.Errorf("the model was not told of the answer:\n%s", d.trace.String())
	}
}

func TestTurnApproves(t *testing.T) {
	for answer, ran := range map[string]int{"y": 1, "n": 0} {
		d := sit(t, "CALL write {}\n"+answer+"\n")
		d.Attended, d.Approve = true, ApproveWrites
		if err := d.Interactive(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.shows(t, &d.trace, "approve?", "Run it?")
		if got := d.inner.Ran(toolsettest.Write); got != ran {
			t.Errorf("%s: it ran %d times\n%s", answer, got, d.trace.String())
		}
	}
	d := sit(t, "CALL write {}\n")
	d.Approve = ApproveWrites // and nobody is there
	if err := d.Interactive(t.Context()); err != nil || d.inner.Ran(toolsettest.Write) != 0 {
		t.Errorf("it ran with nobody there: %v", err)
	}
	d.shows(t, &d.trace, "denied")
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	text, document := filepath.Join(dir, "talk.md"), filepath.Join(dir, "talk.json")
	d := sit(t, strings.Join([]string{
		"/help", "/tools ECHO", "/tools", "/model", "/model other", "/model", "/system", "/system Be brief.", "/system",
		"SAY one", "/save " + text, "/save " + document, "/save " + document, "/save", "/clear", "SAY two", "/system none", "SAY three", "/nonsense",
		"/etc/passwd is a path", "// so is this", "", "/quit", "SAY never",
	}, "\n"))
	if err := d.Interactive(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.shows(t, &d.trace, "/save", "Alt-Enter", "1 of 7 tools", "7 of 7 tools", "From now on other answers.", "There is no system message.", "Be brief.",
		"3 messages are in", "exists", "needs the name of a file", "is forgotten", "there is no /nonsense")
	if got := d.out.String(); strings.Contains(got, "never") || !strings.HasPrefix(got, "one\ntwo\nthree\n") {
		t.Errorf("the answers are %q", got)
	}
	if len(d.asked) != 5 {
		t.Fatalf("the model was asked %d times", len(d.asked))
	}
	for i, want := range []struct {
		in, out string
	}{{"Be brief.", "SAY two"}, {"Be brief.", "SAY one"}, {"SAY two", "Be brief."}, {"/etc/passwd", "Be brief."}, {"// so is", "Be brief."}} {
		if body := string(d.asked[i]); !strings.Contains(body, want.in) || strings.Contains(body, want.out) {
			t.Errorf("request %d: %s", i, body)
		}
	}
	for path, want := range map[string]string{
		text: "# A conversation with other\n\n## system\n\nBe brief.\n\n## user\n\nSAY one\n\n## assistant\n\none\n", document: `[{"role":"system","content":"Be brief."},{"role":"user","content":"SAY one"},`,
	} {
		saved, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(saved), want) {
			t.Errorf("%s: %v\n%s", path, err, saved)
		}
	}
}

// TestListsWrapAtWords: /help and /tools fit the screen, whatever its width, and break
// between words.
func TestListsWrapAtWords(t *testing.T) {
	for _, width := range []int{30, 40, 80, 200} {
		d := sit(t, "/help\n/tools\n")
		d.Trace.Columns = width
		if err := d.Interactive(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := d.trace.String()
		_, got, _ = strings.Cut(got, "\n") // who is talked to
		for line := range strings.Lines(strings.ReplaceAll(got, "› ", "")) {
			if line = strings.TrimRight(line, "\n"); len([]rune(line)) > width && len(strings.Fields(line)) > 1 {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		words := strings.Fields(got)
		for _, h := range slashCommands {
			for word := range strings.FieldsSeq(h.name + " " + h.what) {
				if !slices.Contains(words, word) {
					t.Errorf("%d columns: %q is broken", width, word)
				}
			}
		}
	}
	for text, want := range map[string]string{"": "", "one two": "one two", "one two three four": "one two …", "onetwothreefour": "onetwothr …"} {
		if got := someWords(text, 11); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestNothingToSummarise: where no tool was called there is no line about it.
func TestNothingToSummarise(t *testing.T) {
	d := sit(t, "SAY hello\nCALL echo {}\n")
	if err := d.Interactive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(d.trace.String(), "summarise"); got != 1 || !strings.Contains(d.trace.String(), "1 call,") {
		t.Errorf("%d lines of a summary in\n%s", got, d.trace.String())
	}
}

// TestAnswersThatAreNotWhole: whoever reads an answer is told that it is not whole, and
// reads what a model says in refusing one.
func TestAnswersThatAreNotWhole(t *testing.T) {
	for _, tt := range []struct{ message, finish, out, trace string }{
		{`{"role":"assistant","content":"Whole."}`, "stop", "Whole.\n", ""},
		{`{"role":"assistant","content":"Hal"}`, "length", "Hal\n", "warning: the answer is cut off: it has the length that the model may write\n"},
		{`{"role":"assistant","content":""}`, "content_filter", "", "warning: the answer is cut off by the filter of the model's API\n"},
		{`{"role":"assistant","content":null}`, "stop", "", "warning: the model gave no answer\n"},
		{`{"role":"assistant","content":null,"refusal":"No."}`, "stop", "No.\n", ""},
	} {
		d := sitWith(t, "", roundTrip(func(*http.Request) (*http.Response, error) {
			body := `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + tt.message + `,"finish_reason":"` + tt.finish + `"}]}`
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}))
		d.Quiet = true
		if err := d.Once(t.Context(), "Go."); err != nil || d.out.String() != tt.out || d.trace.String() != tt.trace {
			t.Errorf("%s, %s: %v, out %q, trace %q", tt.message, tt.finish, err, d.out.String(), d.trace.String())
		}
	}
}

func TestComplete(t *testing.T) {
	d := sit(t, "")
	for text, want := range map[string][]string{
		"/s": {"/system", "/save"}, "/model o": {"other"}, "CALL ec": {"echo"}, "ec": {"echo"}, "": nil, "x ": nil, "x /s": nil, "a\nwr": {"write"},
	} {
		if got := d.Complete(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// A line from a pipe is as long as it is.
func TestLinesOfAnyLength(t *testing.T) {
	long := strings.Repeat("0123456789", 1<<16)
	d := sit(t, "SAY "+long+"\r\nSAY short")
	if err := d.Interactive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := long + "\nshort\n"; d.out.String() != want {
		t.Errorf("%d bytes came out, want %d", d.out.Len(), len(want))
	}
}

func TestLeftOut(t *testing.T) {
	names := strings.Split("a b c d e f g h i j", " ")
	if got := LeftOut(names); !strings.HasPrefix(got, "10 tools are left out") || !strings.Contains(got, "g, h and 2 more") || !strings.Contains(got, "tools.include") {
		t.Error(got)
	}
}

func TestProgressLine(t *testing.T) {
	s := &Screen{}
	line := progressLine(s, "tool", dragoman.Progress{Progress: 1, Total: 2, Message: "half"})
	if n := len([]rune(line)); n < 50 || n > 80 || !strings.Contains(line, "█░") || !strings.HasSuffix(line, "1/2 half") {
		t.Errorf("%d columns: %s", n, line)
	}
	if line := progressLine(s, "tool", dragoman.Progress{Progress: 3}); line != "tool 3" {
		t.Error(line)
	}
}
