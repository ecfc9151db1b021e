package credential

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// exchanging is a server for which the tokens of callers are exchanged.
func exchanging(w *world) Config {
	return Config{Grant: TokenExchangeGrant, ClientID: "robot", ClientSecret: secret.New("robot-secret"), Issuer: w.login.URL}
}

func (w *world) onBehalf(t *testing.T, who string, c Config, s *Subjects) *Transport {
	t.Helper()
	return transportOf(t, TransportOptions{Account: Account{w.url(), who}, Config: c, Subjects: s})
}

// The server sees what the caller's token was exchanged for, the token endpoint alone
// sees the caller's, and neither sees that of another caller.
func TestExchange(t *testing.T) {
	w, s := newWorld(t), NewSubjects()
	c := exchanging(w)
	clients := map[string]*http.Client{}
	for _, who := range []string{"ann", "bob"} {
		s.Keep(who, w.login.URL, "subject-"+who, time.Now().Add(time.Hour))
		clients[who] = &http.Client{Transport: w.onBehalf(t, who, c, s)}
	}
	var wg sync.WaitGroup
	for range 5 {
		for who, client := range clients {
			wg.Go(func() {
				if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
					t.Errorf("%s: %d, %v", who, status, err)
				}
			})
		}
	}
	wg.Wait()
	w.do(func() {
		var subjects []string
		for _, form := range w.asked {
			subjects = append(subjects, form.Get("subject_token"))
			if form.Get("resource") != w.url() || form.Has("audience") || form.Has("actor_token") {
				t.Errorf("asked %v", form)
			}
		}
		slices.Sort(subjects)
		// Once before anything was known of scopes, and once with those that the server wants.
		if want := []string{"subject-ann", "subject-ann", "subject-bob", "subject-bob"}; !slices.Equal(subjects, want) {
			t.Errorf("exchanged %q", subjects)
		}
		for _, token := range w.shown {
			if strings.Contains(token, "subject") {
				t.Errorf("the server was shown %q", token)
			}
		}
		w.asked = nil
	})
	// A token that ends is exchanged anew, for what the caller showed last.
	s.Keep("ann", w.login.URL, "subject-ann-2", time.Now().Add(time.Hour))
	ann := clients["ann"].Transport.(*Transport).source.(*exchange)
	ann.until = time.Now()
	if status, err := ask(t.Context(), clients["ann"], w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	w.do(func() {
		if len(w.asked) != 1 || w.asked[0].Get("subject_token") != "subject-ann-2" || w.asked[0].Get("scope") != "read" {
			t.Errorf("asked %v", w.asked)
		}
	})
}

// Who showed nothing that can be exchanged is told what to show; and what is shown
// afterwards is used.
func TestExchangeOfNothing(t *testing.T) {
	w, s := newWorld(t), NewSubjects()
	transport := w.onBehalf(t, "ann", exchanging(w), s)
	client := &http.Client{Transport: transport}
	for name, show := range map[string]func(){
		"nothing":    func() {},
		"of another": func() { s.Keep("ann", "https://other.example", "subject-x", time.Time{}) },
		"ended":      func() { s.Keep("ann", w.login.URL, "subject-x", time.Now().Add(-time.Second)) },
		"of bob":     func() { s.Keep("bob", w.login.URL, "subject-bob", time.Time{}) },
	} {
		show()
		if status, err := ask(t.Context(), client, w.url()); status != 401 || err != nil {
			t.Errorf("%s: %d, %v", name, status, err)
		}
		if stuck := transport.Stuck(); stuck == nil || !strings.Contains(stuck.Error(), "an access token of "+w.login.URL) {
			t.Errorf("%s: %v", name, stuck)
		}
	}
	if len(w.asked) != 0 {
		t.Errorf("asked %v", w.asked)
	}
	s.Keep("ann", w.login.URL, "subject-ann", time.Time{})
	if stuck := transport.Stuck(); stuck != nil {
		t.Errorf("still %v", stuck)
	}
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

// The word of the configuration on what is asked for holds.
func TestExchangeAsConfigured(t *testing.T) {
	w, s := newWorld(t), NewSubjects()
	s.Keep("ann", "https://callers.example", "subject-ann", time.Time{})
	c := exchanging(w)
	c.TokenURL, c.SubjectIssuer, c.Audience, c.Resource, c.Scopes = w.login.URL+"/token", "https://callers.example", "tickets", w.url(), []string{"write"}
	client := &http.Client{Transport: w.onBehalf(t, "ann", c, s)}
	w.needs = "write"
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	w.needs = "read" // is not asked for, whatever the server wants
	for range 3 {
		if status, err := ask(t.Context(), client, w.url()); status != 403 || err != nil {
			t.Errorf("%d, %v", status, err)
		}
	}
	if len(w.asked) != 1 || w.asked[0].Get("audience") != "tickets" || w.asked[0].Get("scope") != "write" {
		t.Errorf("asked %v", w.asked)
	}
}

// What is wrong with the answer of a token endpoint is said without a token, and
// nothing is sent to the server, nor is the endpoint hammered.
func TestExchangeRefused(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody else was asked: %s", r.URL)
	}))
	defer elsewhere.Close()
	refuse := func(code string) func(http.ResponseWriter, *http.Request, map[string]any) bool {
		return func(rw http.ResponseWriter, r *http.Request, _ map[string]any) bool {
			rw.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(rw).Encode(map[string]any{"error": code, "error_description": "no " + r.Form.Get("subject_token")})
			return true
		}
	}
	change := func(key string, value any) func(http.ResponseWriter, *http.Request, map[string]any) bool {
		return func(_ http.ResponseWriter, _ *http.Request, answer map[string]any) bool {
			if answer[key] = value; value == nil {
				delete(answer, key)
			}
			return false
		}
	}
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, map[string]any) bool
		says   string // of the login that is wanted, or of the error
	}{
		"invalid request":   {refuse("invalid_request"), "invalid_request"}, // what RFC 8693 has for a bad subject
		"invalid target":    {refuse("invalid_target"), "invalid_target"},
		"a code of its own": {refuse("\x1b[31mlook"), "an unknown error"},
		"no type":           {change("issued_token_type", nil), "no access token"},
		"another type":      {change("issued_token_type", "urn:ietf:params:oauth:token-type:saml2"), "no access token"},
		"not for a header":  {change("token_type", "N_A"), "no bearer token"},
		"bound to a key":    {change("token_type", "DPoP"), "no bearer token"},
		"no token":          {change("access_token", ""), "cannot be asked"},
		"a line break":      {change("access_token", "a\r\nX-Evil: 1"), "no header carries"},
		"a very long token": {change("access_token", strings.Repeat("x", maxToken+1)), "bytes"},
		"a redirect": {func(rw http.ResponseWriter, r *http.Request, _ map[string]any) bool {
			http.Redirect(rw, r, elsewhere.URL, http.StatusTemporaryRedirect)
			return true
		}, "cannot be asked"},
		"a page": {func(rw http.ResponseWriter, r *http.Request, _ map[string]any) bool {
			rw.Header().Set("Content-Type", "text/html")
			_, _ = rw.Write([]byte("<html>" + r.Form.Get("subject_token")))
			return true
		}, "cannot be asked"},
		"trouble": {func(rw http.ResponseWriter, _ *http.Request, _ map[string]any) bool { rw.WriteHeader(500); return true }, "cannot be asked"},
		"something unending": {func(rw http.ResponseWriter, _ *http.Request, _ map[string]any) bool {
			_, _ = rw.Write([]byte(`{"x":"` + strings.Repeat("x", 4<<20)))
			return true
		}, "cannot be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(t), NewSubjects()
			w.exchanged = tt.answer
			s.Keep("ann", w.login.URL, "subject-ann", time.Time{})
			transport := w.onBehalf(t, "ann", exchanging(w), s)
			text := ""
			for range 3 {
				status, err := ask(t.Context(), &http.Client{Transport: transport}, w.url())
				if err == nil && status != 401 {
					t.Errorf("%d", status)
				}
				if stuck := transport.Stuck(); err == nil && stuck != nil {
					err = stuck
				}
				text = fmt.Sprint(err)
			}
			if !strings.Contains(text, tt.says) || strings.Contains(text, "subject-") || strings.Contains(text, "\x1b") {
				t.Errorf("said: %q", text)
			}
			w.do(func() {
				if len(w.asked) > 2 { // without scopes, and with those that the server wants
					t.Errorf("asked %d times", len(w.asked))
				}
				if slices.ContainsFunc(w.shown, func(token string) bool { return token != "" }) {
					t.Errorf("the server was shown %q", w.shown)
				}
			})
		})
	}
}

// An issuer whose metadata are of somebody else, or that send tokens over the network
// in the clear, gets no token.
func TestExchangeMetadata(t *testing.T) {
	for name, change := range map[string]map[string]any{
		"of another": {"issuer": "https://evil.example"}, "in the clear": {"token_endpoint": "http://evil.example/token"},
		"no endpoint": {"token_endpoint": nil}, "a file": {"token_endpoint": "file:///etc/passwd"},
	} {
		w, s := newWorld(t), NewSubjects()
		w.metadata = change
		s.Keep("ann", w.login.URL, "subject-ann", time.Time{})
		if status, err := ask(t.Context(), &http.Client{Transport: w.onBehalf(t, "ann", exchanging(w), s)}, w.url()); err == nil {
			t.Errorf("%s: %d", name, status)
		}
		if len(w.asked) != 0 {
			t.Errorf("%s: asked %v", name, w.asked)
		}
	}
}

// A server that does not take what it gets is not asked for more each time.
func TestExchangeIsNotHammered(t *testing.T) {
	w, s := newWorld(t), NewSubjects()
	s.Keep("ann", w.login.URL, "subject-ann", time.Time{})
	transport := w.onBehalf(t, "ann", exchanging(w), s)
	for range 5 {
		w.do(func() { clear(w.tokens) })
		w.exchanged = func(_ http.ResponseWriter, _ *http.Request, answer map[string]any) bool {
			delete(w.tokens, answer["access_token"].(string)) // good nowhere
			return false
		}
		if status, err := ask(t.Context(), &http.Client{Transport: transport}, w.url()); status != 401 || err != nil {
			t.Errorf("%d, %v", status, err)
		}
	}
	if len(w.asked) > 2 {
		t.Errorf("asked %d times", len(w.asked))
	}
	if stuck := transport.Stuck(); stuck == nil || !strings.Contains(stuck.Error(), "does not take") {
		t.Errorf("%v", stuck)
	}
}

// A token endpoint that is slow holds up nobody who goes away, and that is no reason
// not to ask it again.
func TestSlowExchange(t *testing.T) {
	w, s := newWorld(t), NewSubjects()
	s.Keep("ann", w.login.URL, "subject-ann", time.Time{})
	client := &http.Client{Transport: w.onBehalf(t, "ann", exchanging(w), s)}
	hold := make(chan struct{})
	w.do(func() { w.hold = hold })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if status, err := ask(ctx, client, w.url()); err == nil {
		t.Errorf("%d", status)
	}
	close(hold)
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

func TestSubjects(t *testing.T) {
	s := NewSubjects()
	s.Keep("ann", "https://login.example", "canary-1", time.Time{})
	s.Keep("ann", "https://login.example", "canary-2", time.Now().Add(time.Minute))
	if got := s.newest("ann"); got == nil || got.token.Reveal() != "canary-2" {
		t.Error("the newest is not kept")
	}
	if s.newest("bob") != nil || (*Subjects)(nil).newest("ann") != nil {
		t.Error("somebody has what nobody showed")
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "subjects", s, "in", struct{ S *Subjects }{s})
	for _, shown := range []string{log.String(), fmt.Sprintf("%v %+v %#v", s, s, s)} {
		if strings.Contains(shown, "canary") || strings.Contains(shown, fmt.Sprintf("%x", "canary")) {
			t.Errorf("shown: %s", shown)
		}
	}
}
