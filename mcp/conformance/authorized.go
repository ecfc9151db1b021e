package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// authorized reports whether a scenario is about authorization. Those are done with
// package credential: a login whose person agrees to everything at once, and then
// whatever there is to call.
func authorized(name string) bool { return strings.HasPrefix(name, "auth/") }

// document is what the suite takes for the client's own, where a client has one.
const document = "https://conformance-test.local/client-metadata.json"

// given is what scenarios say of a client that is registered already.
func given() (c credential.Config, err error) {
	var said struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Issuer       string `json:"issuer"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		err = json.Unmarshal([]byte(text), &said)
	}
	c.ClientID, c.ClientSecret, c.Issuer = said.ClientID, secret.New(said.ClientSecret), said.Issuer
	if c.ClientID == "" {
		c.Metadata = document
	}
	return c, err
}

func authorize(ctx context.Context, url string, o *mcp.ClientOptions) error {
	c, err := given()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dragoman-conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	back, err := credential.ListenLoopback()
	if err != nil {
		return err
	}
	defer back.Close()
	err = credential.Login(ctx, credential.Account{Server: url}, http.DefaultTransport, credential.LoginOptions{
		Config: c, Store: &credential.File{Path: filepath.Join(dir, "credentials.json")}, Redirect: back.Redirect(),
		Visit: func(ctx context.Context, address string) (credential.Answer, error) {
			return back.Visit(ctx, address, agree)
		},
		Use: func(ctx context.Context, client *http.Client) error { return useAll(ctx, url, client, o) },
	})
	if errors.Is(err, credential.ErrNoLogin) {
		return nil
	}
	return err
}

// agree is a person with a browser.
func agree(ctx context.Context, address string) {
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		res.Body.Close()
	}()
}

// useAll connects and calls every tool.
func useAll(ctx context.Context, url string, client *http.Client, o *mcp.ClientOptions) error {
	c, err := mcp.Connect(ctx, &mcp.HTTP{URL: url, Client: client}, o)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	list, err := c.List(ctx)
	if err != nil {
		return err
	}
	return callAll(`{}`)(ctx, c, append([]dragoman.Tool(nil), list.Tools.All()...))
}
