package accesstoken_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
)

const resource = "https://gateway.example/mcp"

// verifier returns a verifier of one issuer, whose requests that issuer answers.
func verifier(t *testing.T, i *issuertest.Issuer, change func(*accesstoken.Issuer)) *accesstoken.Verifier {
	t.Helper()
	config := accesstoken.Issuer{Name: i.Name}
	if change != nil {
		change(&config)
	}
	v, err := accesstoken.New(i.Client(), config)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// outcome is how a verification ended: "good", "invalid" or "unavailable".
func outcome(t *testing.T, token *accesstoken.Token, err error) string {
	t.Helper()
	if _, ok := errors.AsType[*accesstoken.Invalid](err); ok && token == nil {
		return "invalid"
	}
	if failed, ok := errors.AsType[*accesstoken.Unavailable](err); ok && token == nil && failed.RetryAfter > 0 && failed.Issuer != "" {
		return "unavailable"
	}
	if err != nil || token == nil {
		t.Fatalf("%+v, %v", token, err)
	}
	return "good"
}

func TestGoodTokens(t *testing.T) {
	i := issuertest.New(t, "https://login.example")
	v := verifier(t, i, nil)
	for name, tt := range map[string]struct {
		change issuertest.Claims
		want   accesstoken.Token
	}{
		"usual":             {nil, accesstoken.Token{Scopes: []string{"openid", "tool:weather"}}},
		"several audiences": {issuertest.Claims{"aud": []string{"x", resource}}, accesstoken.Token{Audience: []string{"x", resource}, Scopes: []string{"openid", "tool:weather"}}},
		"scp":               {issuertest.Claims{"scope": nil, "scp": []string{"a:b"}}, accesstoken.Token{Scopes: []string{"a:b"}}},
		"scp as words":      {issuertest.Claims{"scope": nil, "scp": "a:b c:d"}, accesstoken.Token{Scopes: []string{"a:b", "c:d"}}},
		"no scopes":         {issuertest.Claims{"scope": nil}, accesstoken.Token{}},
		"azp":               {issuertest.Claims{"scope": nil, "client_id": nil, "azp": "cli"}, accesstoken.Token{Client: "cli"}},
		"a name":            {issuertest.Claims{"scope": nil, "preferred_username": "Ada"}, accesstoken.Token{Username: "Ada"}},
		"a name of lines":   {issuertest.Claims{"scope": nil, "preferred_username": "A\nda", "email": "ada@example.com"}, accesstoken.Token{Username: "ada@example.com"}},
		"clocks apart":      {issuertest.Claims{"scope": nil, "nbf": time.Now().Add(10 * time.Second).Unix(), "iat": time.Now().Add(10 * time.Second).Unix()}, accesstoken.Token{}},
		"of Cognito":        {issuertest.Claims{"scope": nil, "token_use": "access"}, accesstoken.Token{}},
		"of Keycloak":       {issuertest.Claims{"scope": nil, "typ": "Bearer", "nonce": "n"}, accesstoken.Token{}},
		"not before 1970":   {issuertest.Claims{"scope": nil, "nbf": 0}, accesstoken.Token{}},
		"seconds in parts":  {issuertest.Claims{"scope": nil, "nbf": 1.5e9}, accesstoken.Token{}},
	} {
		t.Run(name, func(t *testing.T) {
			token := i.Token(i.Good(resource, tt.change))
			for range 2 { // the second time it is known
				got, err := v.Verify(t.Context(), token, "https://gateway.example/other", resource)
				if err != nil {
					t.Fatal(err)
				}
				want := tt.want
				want.Issuer, want.Subject, want.Expires = i.Name, "ada", got.Expires
				if want.Client == "" {
					want.Client = "ide"
				}
				if want.Audience == nil {
					want.Audience = []string{resource}
				}
				if diff := cmp.Diff(&want, got); diff != "" || got.Expires.IsZero() {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if got, err := v.Verify(t.Context(), token, "https://gateway.example/other", ""); outcome(t, got, err) != "invalid" {
				t.Error("a token that is known is good for another resource")
			}
			if got, err := v.Verify(t.Context(), token); outcome(t, got, err) != "invalid" {
				t.Error("good for nothing in particular")
			}
		})
	}
}

func TestBadTokens(t *testing.T) {
	i := issuertest.New(t, "https://login.example")
	v := verifier(t, i, nil)
	bad := i.Bad(resource)
	if len(bad) < 24 {
		t.Errorf("only %d", len(bad))
	}
	for name, token := range bad {
		got, err := v.Verify(t.Context(), token, resource)
		// Keys that nobody knows are looked for, and then not any more: that is no reason
		// to tell a forger to come again.
		if end := outcome(t, got, err); end != "invalid" {
			t.Errorf("%s: %s", name, end)
		}
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 10 && strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error shows it: %v", name, err)
			}
		}
	}
	if n := i.Asked("/keys"); n > 5 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// An audience of the configuration stands in place of the resource.
func TestAudience(t *testing.T) {
	i := issuertest.New(t, "https://login.example")
	v := verifier(t, i, func(c *accesstoken.Issuer) { c.Audience = []string{"api://gateway"} })
	for audience, want := range map[string]string{"api://gateway": "good", resource: "invalid", "": "invalid"} {
		token, err := v.Verify(t.Context(), i.Token(i.Good(audience, nil)), resource)
		if got := outcome(t, token, err); got != want {
			t.Errorf("%s: %s", audience, got)
		}
	}
}

// What is remembered of a token ends when the token does.
func TestExpiryOfKnownTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := issuertest.New(t, "https://login.example")
		v := verifier(t, i, nil)
		token := i.Token(i.Good(resource, issuertest.Claims{"exp": time.Now().Add(20 * time.Second).Unix()}))
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{0, "good"}, {30 * time.Second, "good"}, {21 * time.Second, "invalid"}, {time.Hour, "invalid"}} {
			time.Sleep(step.wait)
			got, err := v.Verify(t.Context(), token, resource)
			if end := outcome(t, got, err); end != step.want {
				t.Errorf("after %s more: %s", step.wait, end)
			}
		}
	})
}

func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := issuertest.New(t, "https://login.example")
		v := verifier(t, i, nil)
		verify := func(token string) string {
			t.Helper()
			got, err := v.Verify(t.Context(), token, resource)
			return outcome(t, got, err)
		}
		old := func() string { return i.Token(i.Good(resource, nil)) }
		first, second := old(), i.Token(i.Good(resource, issuertest.Claims{"sub": "bob"}))
		if got := verify(first); got != "good" {
			t.Fatal(got)
		}
		i.Rotate("k2")
		if got := verify(old()); got != "good" {
			t.Errorf("a token with the new key: %s", got)
		}
		if got := verify(second); got != "invalid" {
			t.Errorf("a token with a key that was withdrawn: %s", got)
		}
		// One that was known is forgotten within a minute, with its key.
		time.Sleep(61 * time.Second)
		if got := verify(first); got != "invalid" {
			t.Errorf("a token that was known, with a key that was withdrawn: %s", got)
		}
		// Nothing else tells us of a withdrawal than asking now and then.
		third := old()
		i.Rotate("k3")
		if got := verify(third); got != "good" {
			t.Errorf("a withdrawal that we cannot know of: %s", got)
		}
		time.Sleep(6 * time.Minute)
		if got := verify(third); got != "invalid" {
			t.Errorf("after six minutes: %s", got)
		}
	})
}

// TestRotationInPlace: a key that takes the place of another one by the same id, or by none,
// is found at once; forged tokens ask for keys once in ten seconds, and never where they say
// that they are old.
func TestRotationInPlace(t *testing.T) {
	for _, id := range []string{"k2", ""} {
		synctest.Test(t, func(t *testing.T) {
			i, forger := issuertest.New(t, "https://login.example"), issuertest.New(t, "https://login.example")
			v := verifier(t, i, nil)
			verify := func(from *issuertest.Issuer, change issuertest.Claims) string {
				t.Helper()
				got, err := v.Verify(t.Context(), from.Token(from.Good(resource, change)), resource)
				return outcome(t, got, err)
			}
			i.Rotate(id)
			if got := verify(i, nil); got != "good" {
				t.Fatal(got)
			}
			i.Rotate(id)
			time.Sleep(time.Minute)
			if got := verify(i, nil); got != "good" {
				t.Errorf("a token with the new key %q: %s", id, got)
			}
			forger.Rotate(id)
			if got := verify(forger, issuertest.Claims{"iat": time.Now().Add(-time.Hour).Unix()}); got != "invalid" {
				t.Errorf("a forged token that is old: %s", got)
			}
			if n := i.Asked("/keys"); n != 2 {
				t.Errorf("the keys were fetched %d times, of 2", n)
			}
			for range 20 {
				if got := verify(forger, nil); got != "invalid" {
					t.Fatalf("a forged token: %s", got)
				}
			}
			time.Sleep(time.Minute)
			for range 20 {
				if got := verify(forger, nil); got != "invalid" {
					t.Fatalf("a forged token: %s", got)
				}
			}
			if n := i.Asked("/keys"); n != 3 {
				t.Errorf("the keys were fetched %d times, of 3", n)
			}
			i.Refuse(503)
			time.Sleep(time.Minute)
			if got := verify(forger, nil); got != "invalid" {
				t.Errorf("a forged token while the issuer is down: %s", got)
			}
		})
	}
}

// Keys that are there go on working while the issuer is down, and slow issuers hold
// nobody up who has them.
func TestIssuerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := issuertest.New(t, "https://login.example")
		v := verifier(t, i, nil)
		verify := func(change issuertest.Claims) string {
			t.Helper()
			got, err := v.Verify(t.Context(), i.Token(i.Good(resource, change)), resource)
			return outcome(t, got, err)
		}
		i.Refuse(http.StatusBadGateway)
		// What is no good whoever signed it is no good without the issuer, too.
		for name, change := range map[string]issuertest.Claims{"expired": {"exp": 1e8}, "nobody's": {"sub": nil}, "bound": {"cnf": map[string]string{"jkt": "x"}}} {
			if got := verify(change); got != "invalid" {
				t.Errorf("a token that is %s, without the issuer: %s", name, got)
			}
		}
		if got := verify(nil); got != "unavailable" {
			t.Errorf("before there are keys: %s", got)
		}
		i.Refuse(0)
		if got := verify(nil); got != "good" {
			t.Errorf("up again: %s", got)
		}
		i.Refuse(http.StatusServiceUnavailable)
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{4 * time.Minute, "good"}, {10 * time.Minute, "good"}, {40 * time.Minute, "good"}, {10 * time.Minute, "unavailable"}} {
			time.Sleep(step.wait)
			if got := verify(nil); got != step.want {
				t.Errorf("after %s more without the issuer: %s", step.wait, got)
			}
		}
		i.Refuse(0)
		time.Sleep(11 * time.Second)
		if got := verify(nil); got != "good" {
			t.Errorf("after an hour, up again: %s", got)
		}
		// Slow: whoever has keys waits a second, once they are to be asked for again.
		release := i.Hold()
		defer release()
		time.Sleep(6 * time.Minute)
		began := time.Now()
		if got := verify(nil); got != "good" || time.Since(began) != time.Second {
			t.Errorf("slow: %s after %s", got, time.Since(began))
		}
		i.Rotate("k2")
		began = time.Now()
		if got := verify(nil); got != "unavailable" || time.Since(began) > 10*time.Second {
			t.Errorf("slow, and a key that is not known: %s after %s", got, time.Since(began))
		}
		release()
		time.Sleep(time.Minute)
		if got := verify(nil); got != "good" {
			t.Errorf("fast again: %s", got)
		}
	})
}

// Whoever gives up is not waited for, and others get what was fetched.
func TestWaitingTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := issuertest.New(t, "https://login.example")
		v := verifier(t, i, nil)
		release := i.Hold()
		token := i.Token(i.Good(resource, nil))
		impatient, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			got, err := v.Verify(impatient, token, resource)
			if end := outcome(t, got, err); end != "unavailable" {
				t.Errorf("whoever gave up: %s", end)
			}
		})
		synctest.Wait()
		for range 50 {
			wg.Go(func() {
				got, err := v.Verify(t.Context(), token, resource)
				if end := outcome(t, got, err); end != "good" {
					t.Error(end)
				}
			})
		}
		cancel()
		synctest.Wait()
		release()
		wg.Wait()
		if n := i.Asked("/keys"); n != 1 {
			t.Errorf("the keys were fetched %d times", n)
		}
	})
}

// Forged tokens cannot make us attack the issuer, nor shut out those who are good.
func TestForgedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, forger := issuertest.New(t, "https://login.example"), issuertest.New(t, "https://login.example")
		v := verifier(t, i, func(c *accesstoken.Issuer) { c.KeySet = c.Name + "/keys" })
		began := time.Now()
		for n := range 100 {
			forger.Rotate("forged" + string(rune('a'+n%26)))
			got, err := v.Verify(t.Context(), forger.Token(forger.Good(resource, nil)), resource)
			if end := outcome(t, got, err); end == "good" {
				t.Fatal("a forged token is good")
			}
			got, err = v.Verify(t.Context(), i.Token(i.Good(resource, issuertest.Claims{"jti": n})), resource)
			if end := outcome(t, got, err); end != "good" {
				t.Fatalf("a good one among them: %s", end)
			}
			time.Sleep(600 * time.Millisecond)
		}
		if n, most := i.Asked("/keys"), 5+int(time.Since(began)/(10*time.Second)); n > most {
			t.Errorf("the keys were fetched %d times in %s, over %d", n, time.Since(began), most)
		}
		if n := i.Asked("/.well-known/openid-configuration"); n != 0 {
			t.Errorf("metadata were fetched %d times", n)
		}
		// A token that is older than the keys that we have was not signed with younger
		// ones: it is no good, however busy forgers are.
		got, err := v.Verify(t.Context(), forger.Token(forger.Good(resource, issuertest.Claims{"iat": time.Now().Add(-time.Hour).Unix()})), resource)
		if end := outcome(t, got, err); end != "invalid" {
			t.Errorf("an old token: %s", end)
		}
	})
}

// TestRotationAmongForgers: while forged tokens use up how often keys may be asked for, one
// that is signed with a new key is not refused, but told to come again.
func TestRotationAmongForgers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, forger := issuertest.New(t, "https://login.example"), issuertest.New(t, "https://login.example")
		v := verifier(t, i, nil)
		verify := func(from *issuertest.Issuer, change issuertest.Claims) string {
			t.Helper()
			got, err := v.Verify(t.Context(), from.Token(from.Good(resource, change)), resource)
			return outcome(t, got, err)
		}
		for n := range 10 {
			forger.Rotate("forged" + strconv.Itoa(n))
			if end := verify(forger, nil); end == "good" {
				t.Fatal("a forged token is good")
			}
		}
		i.Rotate("k2")
		if got := verify(i, nil); got != "unavailable" {
			t.Errorf("a token with a new key: %s", got)
		}
		// What says nothing of when it was made is not older than keys that have just come.
		if got := verify(forger, issuertest.Claims{"iat": nil}); got != "invalid" {
			t.Errorf("a forged token without a time: %s", got)
		}
		time.Sleep(11 * time.Second)
		if got := verify(i, nil); got != "good" {
			t.Errorf("it comes again: %s", got)
		}
	})
}

// Keys that are of no use are no trouble, and of no use.
func TestOtherKeys(t *testing.T) {
	i := issuertest.New(t, "https://login.example")
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	encryption, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.Publish(jose.JSONWebKey{Key: weak.Public(), KeyID: "weak", Algorithm: "RS256"})
	i.Publish(jose.JSONWebKey{Key: []byte(strings.Repeat("k", 32)), KeyID: "shared", Algorithm: "HS256"})
	i.Publish(jose.JSONWebKey{Key: encryption.Public(), KeyID: "enc", Use: "enc"})
	v := verifier(t, i, nil)
	if got, err := v.Verify(t.Context(), i.Token(i.Good(resource, nil)), resource); outcome(t, got, err) != "good" {
		t.Error("the good key is not found among the others")
	}
	for name, signer := range map[string]func() (jose.Signer, error){
		"weak": func() (jose.Signer, error) {
			return jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: weak}, (&jose.SignerOptions{}).WithHeader("kid", "weak"))
		},
		"for encryption": func() (jose.Signer, error) {
			return jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: encryption}, (&jose.SignerOptions{}).WithHeader("kid", "enc"))
		},
		"for encryption, without id": func() (jose.Signer, error) {
			return jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: encryption}, nil)
		},
	} {
		s, err := signer()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := v.Verify(t.Context(), i.TokenBy(s, i.Good(resource, nil)), resource); outcome(t, got, err) != "invalid" {
			t.Errorf("signed with a key that is %s: good", name)
		}
	}
}
