package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/door/ops"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// A remote is a gateway somewhere, and who we are there. Its caller's browser and
// terminal are here; what comes of a login is there.
type remote struct {
	base   string
	key    string
	client *http.Client
}

func newRemote(address, key string) (*remote, error) {
	if err := checkGateway("--gateway", address, ourGateway); err != nil {
		return nil, err
	}
	base := strings.TrimRight(address, "/")
	if err := accesstoken.CheckURL(base); err != nil {
		return nil, &usageError{errors.New("--gateway: a key goes to an https address, such as https://gateway.example, or to this machine"), ""}
	}
	// The gateway asks others meanwhile.
	client := safehttp.NewClient(safehttp.Options{MaxRedirects: -1, HeaderTimeout: time.Minute})
	return &remote{base, key, client}, nil
}

// login logs in through the gateway.
func (g *remote) login(ctx context.Context, screen *terminal.Screen, label string, browser bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, servers.LoginPatience, errors.New("nobody logged in"))
	defer cancel()
	back, err := credential.ListenLoopback()
	if err != nil {
		return err
	}
	defer back.Close()
	at, err := g.ask(ctx, http.MethodPost, label, ops.LoginWish{Redirect: back.Redirect()})
	for err == nil && at.Visit != "" {
		var answer credential.Answer
		if err = checkVisit(at.Visit); err == nil {
			answer, err = back.Visit(ctx, at.Visit, shower(screen, browser))
		}
		if err == nil {
			at, err = g.ask(ctx, http.MethodPut, label, answer)
		}
	}
	if err != nil {
		return fmt.Errorf("logging in at %s: %w", label, err)
	}
	screen.Printf("logged in at %s\n", label)
	return nil
}

// checkVisit says why a browser is not opened at an address that a gateway names.
func checkVisit(address string) error {
	u, err := url.Parse(address)
	if err == nil {
		u.RawQuery = ""
		err = accesstoken.CheckURL(u.String())
	}
	if err != nil {
		return errors.New("the gateway names no https address to log in at")
	}
	return nil
}

func (g *remote) forget(ctx context.Context, screen *terminal.Screen, label string) error {
	if _, err := g.ask(ctx, http.MethodDelete, label, struct{}{}); err != nil {
		return err
	}
	screen.Printf("nothing is kept any more for %s\n", label)
	return nil
}

// maxRemote bounds an answer of the gateway, in bytes.
const maxRemote = 1 << 20

// ask makes a request about the login at a server.
func (g *remote) ask(ctx context.Context, method, label string, body any) (at ops.Login, err error) {
	status, answer, err := g.post(ctx, method, "/logins/"+url.PathEscape(label), body)
	if err != nil {
		return at, err
	}
	if status != http.StatusOK {
		return at, refusal(status, answer)
	}
	if err := json.Unmarshal(answer, &at); err != nil {
		return at, errors.New("the answer is none of a gateway's")
	}
	return at, nil
}

// post sends a document to the gateway, and returns its answer.
func (g *remote) post(ctx context.Context, method, path string, body any) (status int, answer []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, g.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if g.key != "" {
		r.Header.Set("Authorization", "Bearer "+g.key)
	}
	res, err := g.client.Do(r)
	if err != nil {
		return 0, nil, unanswered("--gateway", err)
	}
	defer res.Body.Close()
	if answer, err = safehttp.ReadAll(res.Body, maxRemote); err != nil {
		return 0, nil, fmt.Errorf("the answer of the gateway: %w", err)
	}
	return res.StatusCode, answer, checkTLS(res.StatusCode, answer)
}

// refusal is why a gateway does not do something, in its words.
func refusal(status int, answer []byte) error {
	var said struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(answer, &said) != nil || said.Error.Message == "" {
		return fmt.Errorf("the gateway answers %d", status)
	}
	err := errors.New(terminal.OneLine(said.Error.Message, 400))
	if status == http.StatusUnauthorized {
		return &failure{err, "set DRAGOMAN_API_KEY to your key or access token"}
	}
	return err
}
