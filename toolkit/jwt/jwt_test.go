package jwt_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
	"github.com/dragoman-mcp/dragoman/toolkit/jwt"
)

const resource = "https://weather.example/mcp"

func TestVerifier(t *testing.T) {
	i := issuertest.Serve(t)
	verify := jwt.Verifier(jwt.Options{Resource: resource, Issuers: []string{i.Name}})
	info, err := verify(t.Context(), i.Token(i.Good(resource, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &auth.TokenInfo{UserID: "ada", Scopes: []string{"openid", "tool:weather"}, Expiration: info.Expiration}
	if diff := cmp.Diff(want, info); diff != "" || time.Until(info.Expiration) < time.Minute {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, token := range i.Bad(resource) {
		if info, err := verify(t.Context(), token, nil); err == nil || info != nil {
			t.Errorf("%s: %+v", name, info)
		}
	}
	// With several issuers a subject alone says nothing.
	verify = jwt.Verifier(jwt.Options{Resource: resource, Issuers: []string{i.Name, "https://other.example"}, Keys: map[string]string{i.Name: i.Name + "/keys"}})
	if info, err := verify(t.Context(), i.Token(i.Good(resource, nil)), nil); err != nil || info.UserID != i.Name+"#ada" {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestIssuerInTrouble keeps a server whose issuer is down from sending its
// clients to log in again, and lets it recover.
func TestIssuerInTrouble(t *testing.T) {
	i := issuertest.Serve(t)
	verify := jwt.Verifier(jwt.Options{Resource: resource, Issuers: []string{i.Name}, Client: http.DefaultClient})
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	i.Refuse(http.StatusServiceUnavailable)
	if _, err := verify(t.Context(), i.Token(i.Good(resource, nil)), nil); err == nil || errors.Is(err, auth.ErrInvalidToken) {
		t.Errorf("down: %v", err)
	}
	i.Refuse(0)
	if _, err := verify(t.Context(), i.Token(i.Good(resource, nil)), nil); err != nil {
		t.Errorf("up again: %v", err)
	}
	i.Rotate("k2")
	if _, err := verify(t.Context(), i.Token(i.Good(resource, nil)), nil); err != nil {
		t.Errorf("after a rotation: %v", err)
	}
}

// TestForgedKeys keeps tokens with unknown keys from making the server fetch
// without end.
func TestForgedKeys(t *testing.T) {
	i := issuertest.Serve(t)
	verify := jwt.Verifier(jwt.Options{Resource: resource, Issuers: []string{i.Name}})
	forger := issuertest.New(t, i.Name)
	for n := range 20 {
		forger.Rotate(fmt.Sprint("forged", n))
		if _, err := verify(t.Context(), forger.Token(forger.Good(resource, nil)), nil); err == nil {
			t.Fatal("a forged token is good")
		}
	}
	if _, err := verify(t.Context(), i.Token(i.Good(resource, nil)), nil); err != nil {
		t.Errorf("a good one after them: %v", err)
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	i := issuertest.Serve(t)
	verify := jwt.Verifier(jwt.Options{Resource: resource, Issuers: []string{i.Name, "http://plain.example"}})
	if info, err := verify(t.Context(), i.Token(i.Good(resource, nil)), nil); err == nil || errors.Is(err, auth.ErrInvalidToken) {
		t.Errorf("%+v, %v", info, err)
	}
}
