package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

const (
	listTimeout = 5 * time.Second
	maxList     = 16 << 20 // bytes; the longest known list has 400 KB
)

// A Failure is an upstream whose models are not in a list.
type Failure struct {
	// Host is the upstream's host and port.
	Host string
	// Err says why.
	Err error
}

// A StatusError is an upstream that answered a request for its models with
// something else than 200.
type StatusError struct {
	// Host is the upstream's host and port, and Status what it answered.
	Host   string
	Status int
}

// Error says which upstream answered what.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the upstream %s answered %d to a request for its models", e.Host, e.Status)
}

// Unauthorized reports that the upstream did not take the key, or wants one. Some, such
// as Gemini's API, say so with 400, and a request for models has nothing else in it
// that could be wrong.
func (e *StatusError) Unauthorized() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Status == http.StatusBadRequest
}

// Models returns the answer to GET /v1/models for all upstreams as one, and the
// upstreams that are missing in it because they did not answer within five
// seconds or gave no list. Each upstream is asked once, all at the same time.
//
// The entries are the upstreams' own, byte for byte, in the order of the
// configuration. An entry is left out where a request for its name would go
// somewhere else. A name that stands literally in the configuration is listed
// even where the upstream does not list it. client is the header of the
// client's request; its credentials travel as with
// [Request.ClientCredentials].
func (s *Set) Models(ctx context.Context, client http.Header, clientCredentials bool) (json.RawMessage, []Failure) {
	lists := s.ask(ctx, Request{Method: http.MethodGet, Path: "/models", Header: listHeader(client), ClientCredentials: clientCredentials})

	var entries []json.RawMessage
	seen := make(map[string]bool)
	add := func(id string, entry json.RawMessage) {
		if id != "" && !seen[id] {
			seen[id] = true
			entries = append(entries, entry)
		}
	}
	var failures []Failure
	for _, list := range lists {
		if list.err != nil {
			failures = append(failures, Failure{list.upstream.Host(), list.err})
		}
		for _, entry := range list.entries {
			id := entryID(entry)
			if to, err := s.For(id); err == nil && to.account == list.upstream.account && to.ModelName(id) == id {
				add(id, entry)
			}
		}
	}
	for _, u := range s.upstreams {
		switch {
		case glob.Literal(u.match):
			add(u.match, madeUpEntry(u.match))
		case u.Rehearsal:
			if to, err := s.For(RehearsalModel); err == nil && to == u {
				add(RehearsalModel, madeUpEntry(RehearsalModel))
			}
		}
	}

	body := append([]byte(`{"object":"list","data":`), rawjson.AppendArray(nil, entries)...)
	return append(body, '}'), failures
}

// list is what one upstream answered.
type list struct {
	upstream *Upstream
	entries  []json.RawMessage
	err      error
}

// ask asks every address once for each set of credentials.
func (s *Set) ask(ctx context.Context, r Request) []list {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var lists []list
	asked := make(map[string]bool)
	for _, u := range s.upstreams {
		if !asked[u.account] {
			asked[u.account] = true
			lists = append(lists, list{upstream: u})
		}
	}
	var wg sync.WaitGroup
	for i := range lists {
		wg.Go(func() { lists[i].entries, lists[i].err = lists[i].upstream.list(ctx, r) })
	}
	wg.Wait()
	return lists
}

// list asks the upstream for its models.
func (u *Upstream) list(ctx context.Context, r Request) ([]json.RawMessage, error) {
	req, err := u.NewRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	res, err := u.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, &StatusError{u.Host(), res.StatusCode}
	}
	body, err := safehttp.ReadAll(res.Body, maxList)
	if err != nil {
		return nil, fmt.Errorf("reading the models of %s: %w", u.Host(), err)
	}
	if err := rawjson.Check(body); err != nil {
		return nil, fmt.Errorf("the models of %s: %w", u.Host(), err)
	}
	entries := json.RawMessage(body)
	if rawjson.Kind(body) == '{' { // a few list without the envelope
		object, err := rawjson.ParseObject(body)
		if err != nil {
			return nil, fmt.Errorf("the models of %s: %w", u.Host(), err)
		}
		entries = object.Get("data")
	}
	if rawjson.Kind(entries) != '[' {
		return nil, errors.New("the upstream " + u.Host() + " did not answer with a list of models")
	}
	return rawjson.Elements(entries)
}

// entryID returns the id of an entry; empty for one without.
func entryID(entry json.RawMessage) string {
	if rawjson.Kind(entry) != '{' {
		return ""
	}
	object, err := rawjson.ParseObject(entry)
	if err != nil {
		return ""
	}
	id, _ := rawjson.String(object.Get("id"))
	return id
}

// madeUpEntry is the entry of a model that only the configuration knows.
func madeUpEntry(id string) json.RawMessage {
	return fmt.Appendf(nil, `{"id":%s,"object":"model","created":0,"owned_by":"dragoman"}`, rawjson.Quote(id))
}

// listHeader is what of a client's header goes with a request for models:
// nothing that could make the answer conditional or partial.
func listHeader(client http.Header) http.Header {
	h := http.Header{"Accept": {"application/json"}}
	for name, values := range client {
		if credentialHeaders[fold(name)] || name == "User-Agent" {
			h[name] = values
		}
	}
	return h
}
