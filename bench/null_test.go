package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// got records what a server was sent, and answers.
func got(t *testing.T, answer http.HandlerFunc) (string, *[]string) {
	t.Helper()
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, r.URL.Path+" "+string(body))
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, &bodies
}

func ask(t *testing.T, body string, env map[string]string) string {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	g, err := newNull()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The null gateway makes the same round trips as the gateway, or it would be no
// measure.
func TestNullGateway(t *testing.T) {
	upstream, asked := got(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, plainBody) })
	server, called := got(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, `{"jsonrpc":"2.0","id":1,"result":{}}`) })

	if text := ask(t, `{"model":"m"}`, map[string]string{envTarget: upstream}); text != plainBody {
		t.Errorf("the client got %s", text)
	}
	ask(t, `{"model":"m"}`, map[string]string{envTools: file(t, `,"tools":[1]}`)})
	ask(t, `{"model":"first"}`, map[string]string{envServer: server, envSecond: file(t, `{"model":"second"}`)})
	want := []string{`{"model":"m"}`, `{"model":"m","tools":[1]}`, `{"model":"first"}`, `{"model":"second"}`}
	for i, body := range want {
		if i >= len(*asked) || (*asked)[i] != "/v1/chat/completions "+body {
			t.Fatalf("the upstream got %q, want %q", *asked, want)
		}
	}
	if len(*called) != 1 || (*called)[0] != "/mcp "+callMessage {
		t.Errorf("the server got %q", *called)
	}
}

func TestNullGatewayStreams(t *testing.T) {
	upstream, _ := got(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, 3, 0) })
	text := ask(t, `{"model":"m","stream":true}`, map[string]string{envTarget: upstream})
	if want := firstPart + strings.Repeat(textPart, 3) + lastPart; text != want {
		t.Errorf("the client got %q", text)
	}
}

// A missed target must say so, and the worst round stands beside it.
func TestTargets(t *testing.T) {
	f := figures{ours: {8, 9, 10}, proxy: {10, 10, 10}, null: {4, 3, 5}}
	for _, tt := range []struct {
		target target
		met    bool
		worst  string
	}{
		{atLeast(0.85, proxy), true, "0.80"},
		{atLeast(0.95, proxy), false, "0.80"},
		{atMost(2.5, null), true, "3.00"},
		{atMost(2, null), false, "3.00"},
		{limit(9, perSecond), true, "10/s"},
		{limit(8, perSecond), false, "10/s"},
		{atLeast(1, before), false, ""}, // nobody to compare with
	} {
		if met, worst := tt.target.judge(f, perSecond); met != tt.met || worst != tt.worst {
			t.Errorf("%s: %t, %q; want %t, %q", tt.target.text, met, worst, tt.met, tt.worst)
		}
	}
	b := &bench{rows: []row{{item: "a", what: "x", figures: f, show: perSecond, target: atMost(2, null)}}}
	if lines := b.lines(); len(lines[0]) != len(lines[1]) || lines[1][len(lines[1])-1] != "MISSED" {
		t.Errorf("the table is %q", lines)
	}
}
