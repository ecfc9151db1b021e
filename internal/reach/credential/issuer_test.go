package credential

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestIssuerOfAnswer: an answer that names its issuer is compared with the one whose
// person was sent there, whether the metadata say that it will or not (MCP 2026-07-28,
// "Authorization Response Validation").
func TestIssuerOfAnswer(t *testing.T) {
	const evil, silent = "https://evil.example", "-"
	for name, test := range map[string]struct {
		promised bool
		issuer   string // empty: the right one
		good     bool
	}{
		"promised, and the right one":     {true, "", true},
		"promised, and another one":       {true, evil, false},
		"promised, and missing":           {true, silent, false},
		"not promised, and the right one": {false, "", true},
		"not promised, and another one":   {false, evil, false},
		"not promised, and missing":       {false, silent, true},
	} {
		w, s := newWorld(t), newStore(t)
		w.issuer = test.issuer
		if !test.promised {
			w.metadata["authorization_response_iss_parameter_supported"] = nil
		}
		if err := logIn(t, w, s, Config{}); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
		o := LoginOptions{Store: newStore(t), Redirect: "http://127.0.0.1:1/callback", Use: func(ctx context.Context, client *http.Client) error {
			_, err := ask(ctx, client, w.url())
			return err
		}}
		a := Account{w.url(), "ann"}
		address, begun, err := Begin(t.Context(), a, http.DefaultTransport, o)
		if err != nil {
			t.Fatal(err)
		}
		back := visit(t, address)
		_, _, err = Finish(t.Context(), a, http.DefaultTransport, o, begun, Answer{Code: back.Get("code"), Issuer: back.Get("iss")})
		if (err == nil) != test.good {
			t.Errorf("%s, in steps: %v", name, err)
		}
		if _, err := o.Store.Get(a); errors.Is(err, ErrNone) == test.good {
			t.Errorf("%s: kept: %v", name, err)
		}
	}
}

// TestIssuerOfRefusal: a refusal that names another issuer is none of the one that the person
// was sent to. It is not shown as one, and changes nothing.
func TestIssuerOfRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		issuer string
		theirs bool
	}{
		"the right one": {"", true},
		"missing":       {"-", true},
		"another one":   {"https://evil.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(t), newStore(t)
			if test.issuer == "" {
				test.issuer = w.login.URL
			}
			answer := Answer{Error: "invalid_scope", Issuer: strings.Trim(test.issuer, "-")}
			o := LoginOptions{Store: s, Redirect: "http://127.0.0.1:1/callback", Use: func(ctx context.Context, client *http.Client) error {
				_, err := ask(ctx, client, w.url())
				return err
			}}
			check := func(how string, a Account, err error) {
				_, refused := errors.AsType[*Refused](err)
				e, _ := s.Get(a)
				if err == nil || refused != test.theirs || (len(e.Scopes) == 0) != test.theirs {
					t.Errorf("%s: %v, kept %v", how, err, e.Scopes)
				}
			}
			had := Entry{TokenURL: w.login.URL + "/token", Scopes: []string{"read"}}
			steps, whole := Account{w.url(), "ann"}, Account{w.url(), "bob"}
			for _, err := range []error{s.Put(steps, had), s.Put(whole, had)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			_, begun, err := Begin(t.Context(), steps, http.DefaultTransport, o)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Finish(t.Context(), steps, http.DefaultTransport, o, begun, answer)
			check("in steps", steps, err)
			o.Visit = func(_ context.Context, address string) (Answer, error) { return answer, nil }
			check("at once", whole, Login(t.Context(), whole, http.DefaultTransport, o))
		})
	}
}

// visit returns what an authorization server sends a browser back with.
func visit(t *testing.T, address *url.URL) url.Values {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := browser.Get(address.String())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	to, err := res.Location()
	if err != nil {
		t.Fatal(err)
	}
	return to.Query()
}
