package upstream_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

func TestModelsMerges(t *testing.T) {
	var asked atomic.Int32
	serve := func(body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.URL.Path != "/v1/models" || r.Header.Get("If-None-Match") != "" {
				http.Error(w, "unexpected request", http.StatusBadRequest)
				return
			}
			fmt.Fprint(w, body)
		}))
		t.Cleanup(server.Close)
		return server.URL + "/v1"
	}
	first := serve(`{"object":"list","data":[ {"id":"gpt-5", "z":1,"a":12345678901234567890}, {"id":"o9"}, {"id":"local-x"}, {"no":"id"}, 7 ], "more":1}`)
	second := serve(`[{"id":"gpt-5","owned_by":"second"},{"id":"llama/8b"},{"id":"llama/8b"}]`)
	broken := serve(`<html>`)
	set, err := upstream.New([]upstream.Model{
		{Match: "gpt-*", BaseURL: first},
		{Match: "o?", BaseURL: first},
		{Match: "quick", BaseURL: second, Name: "llama/8b"},
		{Match: "local-*", BaseURL: broken},
		{Match: "*", BaseURL: second},
	}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, failures := set.Models(t.Context(), http.Header{"If-None-Match": {"x"}}, false)
	want := `{"object":"list","data":[{"id":"gpt-5", "z":1,"a":12345678901234567890},{"id":"o9"},{"id":"llama/8b"},{"id":"quick","object":"model","created":0,"owned_by":"dragoman"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if len(failures) != 1 || !strings.HasSuffix(broken, failures[0].Host+"/v1") {
		t.Errorf("failures: %v", failures)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// TestModelsListsTheRehearsalWhereItAnswers: by its own name only where that leads to it.
func TestModelsListsTheRehearsalWhereItAnswers(t *testing.T) {
	for match, want := range map[string]string{
		"*":          `{"object":"list","data":[{"id":"rehearsal","object":"model","created":0,"owned_by":"dragoman"}]}`,
		"practice":   `{"object":"list","data":[{"id":"practice","object":"model","created":0,"owned_by":"dragoman"}]}`,
		"practice-*": `{"object":"list","data":[]}`,
	} {
		set, err := upstream.New([]upstream.Model{{Match: match, BaseURL: upstream.RehearsalURL}}, upstream.Options{Rehearsal: rehearsal{}})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := set.Models(t.Context(), nil, false); string(got) != want {
			t.Errorf("%s lists %s", match, got)
		}
	}
}

func TestModelsFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		status     int
		body, want string
	}{
		"status":    {503, `{}`, "the upstream HOST answered 503 to a request for its models"},
		"no list":   {200, `{"data":{}}`, "the upstream HOST did not answer with a list of models"},
		"text":      {200, `"gpt"`, "the upstream HOST did not answer with a list of models"},
		"too large": {200, strings.Repeat(" ", 17<<20), "reading the models of HOST: body is too large: over 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer server.Close()
			set, err := upstream.New([]upstream.Model{{BaseURL: server.URL}}, upstream.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			got, failures := set.Models(t.Context(), nil, false)
			if string(got) != `{"object":"list","data":[]}` {
				t.Errorf("models: %s", got)
			}
			if len(failures) != 1 {
				t.Fatalf("failures: %v", failures)
			}
			if got := strings.ReplaceAll(failures[0].Err.Error(), failures[0].Host, "HOST"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// hangs answers nothing before the request is given up.
type hangs struct{}

func (hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestModelsWaitsFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := upstream.New(nil, upstream.Options{Rehearsal: hangs{}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, failures := set.Models(t.Context(), nil, false)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("took %v", took)
		}
		if want := `{"object":"list","data":[{"id":"rehearsal","object":"model","created":0,"owned_by":"dragoman"}]}`; string(got) != want {
			t.Errorf("got %s", got)
		}
		if len(failures) != 1 || failures[0].Err.Error() != "the upstream rehearsal.invalid did not answer within 5s" {
			t.Errorf("failures: %v", failures)
		}
	})
}

func TestModelsSendsTheClientsKeyWhereItMay(t *testing.T) {
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"data":[]}`)
	}))
	defer server.Close()
	set, err := upstream.New([]upstream.Model{{BaseURL: server.URL}}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	client := http.Header{"Authorization": {"Bearer client"}}
	for may, want := range map[bool]string{true: "Bearer client", false: ""} {
		if _, failures := set.Models(t.Context(), client, may); failures != nil {
			t.Fatal(failures)
		}
		if got.Load() != want {
			t.Errorf("credentials allowed %v: got %q", may, got.Load())
		}
	}
}

// TestWrongKeyIsTold: an upstream that refuses the key is told from one that has no
// list, or is in trouble.
func TestWrongKeyIsTold(t *testing.T) {
	for status, refused := range map[int]bool{400: true, 401: true, 403: true, 404: false, 405: false, 429: false, 500: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		set, err := upstream.New([]upstream.Model{{BaseURL: server.URL}}, upstream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, failures := set.Models(t.Context(), nil, false)
		var got *upstream.StatusError
		if len(failures) != 1 || !errors.As(failures[0].Err, &got) || got.Status != status || got.Unauthorized() != refused {
			t.Errorf("%d: %+v", status, failures)
		}
		set.Close()
		server.Close()
	}
}
