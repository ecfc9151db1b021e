// Package upstream knows which model API serves a model name, and how to reach
// it: address, key, limits.
//
// A [Set] is made once from the configuration. [Set.For] takes the model name
// of a request and returns the [Upstream] of the first entry whose pattern
// matches; [Upstream.NewRequest] makes a request to it from a client's request,
// with the credentials that belong there and no others; [Upstream.Do] sends it.
// [Set.Models] answers GET /v1/models for all upstreams as one.
//
// Without any entry the Set follows the environment variables that OpenAI's own
// clients use, and without those every name is served by the built-in rehearsal
// model.
//
// # Who may see which key
//
// The key of an entry goes to the address of that entry and to no other: the
// transport follows no redirects, so an upstream cannot send it on. What a
// client sent as its own credentials (Authorization, api-key, cookies) is
// dropped, unless the caller of NewRequest says that it may travel and the
// entry has no key of its own. Errors of this package name hosts, never keys,
// headers or queries.
package upstream

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/retry"
	"github.com/dragoman-mcp/dragoman/result"
)

// RehearsalURL is the base URL of the built-in rehearsal model. A [Model] with
// this base URL is served by [Options.Rehearsal]; no connection is made. The
// name cannot exist in DNS (RFC 6761).
const RehearsalURL = "http://rehearsal.invalid/v1"

// RehearsalModel is the name under which the rehearsal model lists itself.
const RehearsalModel = "rehearsal"

const openAIURL = "https://api.openai.com/v1"

// ErrUnknownModel is what [Set.For] returns, wrapped, for a name that no entry
// matches. HTTP says it with 404.
var ErrUnknownModel = errors.New("no upstream serves this model")

// Options is what a [Set] needs beside its models.
type Options struct {
	// Rehearsal serves the built-in model. Without it a Set that needs it cannot
	// be made.
	Rehearsal http.RoundTripper
	// Getenv looks up an environment variable, like [os.LookupEnv]. It is asked
	// only when there are no models; nil means an empty environment.
	Getenv func(string) (string, bool)
	// DisableHTTP2 keeps connections to upstreams at HTTP/1.1.
	DisableHTTP2 bool
	// Log is told of files of tls that are renewed, or cannot be used any more; nil for
	// nobody.
	Log *slog.Logger
}

// A Set is the upstreams of a gateway, in order. It is safe for concurrent use.
type Set struct {
	upstreams    []*Upstream
	wires        []string // the APIs that some of them speak
	transports   []transport
	defaultModel string
}

// New makes a Set of models, which are tried in this order. With no models the
// environment says where to go: OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL,
// OPENAI_ORG_ID and OPENAI_PROJECT_ID, as OpenAI's clients read them. With
// neither a base URL nor a key there, every name is served by the rehearsal
// model. An error names the entry, such as models[2].
func New(models []Model, opts Options) (*Set, error) {
	s := &Set{}
	place, from := func(i int) string { return fmt.Sprintf("models[%d]", i) }, ""
	if len(models) == 0 {
		models, from = s.fromEnvironment(opts.Getenv)
	}
	pool := make(map[transportKey]transport)
	for i, m := range models {
		m.SetDefaults()
		err := m.Validate()
		if err != nil && from != "" {
			return nil, blamed(err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(i), err)
		}
		u, err := newUpstream(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(i), err)
		}
		if u.From = from; from == "" {
			u.From = "base_url of " + place(i)
		}
		if u.Rehearsal {
			if opts.Rehearsal == nil {
				return nil, fmt.Errorf("%s: there is no rehearsal model in this program", place(i))
			}
			u.transport = opts.Rehearsal
		} else {
			key := transportKey{timeout: m.Timeout, http1: opts.DisableHTTP2, files: m.TLS}
			if pool[key] == nil {
				if pool[key], err = newTransport(key, opts.Log); err != nil {
					return nil, fmt.Errorf("%s: %w", place(i), err)
				}
				s.transports = append(s.transports, pool[key])
			}
			u.transport = pool[key]
		}
		s.upstreams = append(s.upstreams, u)
		for _, wire := range []string{Chat, Responses, Messages} {
			if u.Speaks(wire) && !s.Speaks(wire) {
				s.wires = append(s.wires, wire)
			}
		}
	}
	if s.defaultModel == "" && glob.Literal(models[0].Match) {
		s.defaultModel = models[0].Match
	}
	return s, nil
}

// blamed names the variable of the environment that an error is about.
func blamed(err error) error {
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok {
		return err
	}
	name := map[string]string{"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY", "headers": "OPENAI_ORG_ID or OPENAI_PROJECT_ID"}[wrong.Key]
	return fmt.Errorf("the environment variable %s: %s", name, wrong.Reason)
}

// fromEnvironment returns the one model that stands in for an empty
// configuration, and the variable that says where it is.
func (s *Set) fromEnvironment(lookup func(string) (string, bool)) (models []Model, from string) {
	env := func(name string) string {
		if lookup == nil {
			return ""
		}
		value, _ := lookup(name)
		return strings.TrimSpace(value)
	}
	m := Model{Match: "*", BaseURL: env("OPENAI_BASE_URL"), APIKey: secret.New(env("OPENAI_API_KEY"))}
	if m.BaseURL == "" && m.APIKey.IsZero() {
		s.defaultModel = RehearsalModel
		return []Model{{Match: "*", BaseURL: RehearsalURL}}, "the defaults"
	}
	from = "OPENAI_BASE_URL"
	if m.BaseURL == "" {
		m.BaseURL, from = openAIURL, "OPENAI_BASE_URL, which is not set, so that OPENAI_API_KEY chose this address"
	}
	m.Headers = make(map[string]secret.Text)
	for header, name := range map[string]string{"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"} {
		if value := env(name); value != "" {
			m.Headers[header] = secret.New(value)
		}
	}
	s.defaultModel = env("OPENAI_MODEL")
	return []Model{m}, from
}

// Routes returns the upstreams with the patterns that choose them, in order.
func (s *Set) Routes() iter.Seq2[string, *Upstream] {
	return func(yield func(string, *Upstream) bool) {
		for _, u := range s.upstreams {
			if !yield(u.match, u) {
				return
			}
		}
	}
}

// For returns the upstream that serves model: that of the first entry whose
// pattern matches. For a name that no entry matches it returns an error that
// wraps [ErrUnknownModel].
func (s *Set) For(model string) (*Upstream, error) {
	for _, u := range s.upstreams {
		if glob.Match(u.match, model) {
			return u, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownModel, clip.Text(model, 100))
}

// Label returns what a model is called where few names are wanted: its name where the
// configuration has it, else the pattern that it matches. A name under which an upstream
// knows a model counts, too.
func (s *Set) Label(model string) (label string, price usage.Price) {
	for _, u := range s.upstreams {
		switch {
		case u.name != "" && u.name == model:
			return u.name, u.Price
		case glob.Match(u.match, model):
			if u.name != "" {
				return u.name, u.Price
			}
			return u.match, u.Price
		}
	}
	return observe.Other, usage.Price{}
}

// First returns the upstream of the first entry. Requests that name no model,
// such as those for files or batches, go there.
func (s *Set) First() *Upstream { return s.upstreams[0] }

// DefaultModel returns the model to use where a person named none: OPENAI_MODEL
// or rehearsal without configured models, else the name in the first entry. It
// is empty where that is a pattern.
func (s *Set) DefaultModel() string { return s.defaultModel }

// Close closes connections that are not in use.
func (s *Set) Close() {
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
}

// An Upstream is one model API, with the credentials for it. Its fields do not
// change.
type Upstream struct {
	// BaseURL is where the API's paths begin, without a slash at the end. Its
	// query, if any, goes with each request.
	BaseURL *url.URL
	// Dialect is the name of the dialect that the configuration gives; empty
	// means to recognise it from the host.
	Dialect string
	// Results is what the configuration says about results for its models.
	Results result.Form
	// Context is how many tokens its models read.
	Context int
	// OffersNamed says that its models are offered tools only where a request names servers.
	OffersNamed bool
	// Idle is how long it may send nothing in the middle of an answer.
	Idle time.Duration
	// Rehearsal reports that this is the built-in model.
	Rehearsal bool
	// From says where the address comes from: a key of the configuration, or a
	// variable of the environment.
	From string
	// HasKey reports that the configuration has credentials for the upstream, so
	// that a client's own must not go there.
	HasKey bool
	// Price is what its tokens cost.
	Price usage.Price
	// Retries is what may be sent again of conversations.
	Retries *retry.Budget
	// NoUsage is set once it has refused a request for its wish for usage.
	NoUsage atomic.Bool
	// Unsealed has the names of its models that have no thoughts which could be sealed.
	Unsealed sync.Map

	match, name string
	wires       []string    // what it speaks; nil where only its host tells
	account     string      // equal for upstreams with the same address and credentials
	header      http.Header // set on each request, credentials included
	mask        secret.Mask // hides those in an answer
	transport   http.RoundTripper
}

func newUpstream(m Model) (*Upstream, error) {
	base, err := url.Parse(m.BaseURL)
	if err != nil {
		return nil, invalid.Key("base_url", "not a valid URL")
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = strings.TrimRight(base.RawPath, "/")
	u := &Upstream{
		BaseURL:   base,
		Dialect:   m.Dialect,
		Results:   m.Results,
		Context:   m.Context,
		wires:     m.Wires,
		Idle:      m.Idle,
		Price:     m.Price,
		Rehearsal: base.Hostname() == "rehearsal.invalid",
		HasKey:    !m.APIKey.IsZero(),
		Retries:   &retry.Budget{},
		match:     m.Match,
		name:      m.Name,
		header:    make(http.Header, len(m.Headers)+1),

		OffersNamed: m.Offer == OfferNamed,
	}
	if !m.APIKey.IsZero() {
		u.header.Set("Authorization", "Bearer "+m.APIKey.Reveal())
	}
	for name, value := range m.Headers {
		u.header.Set(name, value.Reveal())
		if credentialHeaders[fold(name)] {
			u.HasKey = true
		}
	}
	u.mask = secret.NewMask(slices.Concat([]secret.Text{m.APIKey}, secret.InHeaders(m.Headers), secret.InAddress(m.BaseURL))...)
	u.account = base.String()
	if m.TLS.Cert != "" {
		u.account += "\x00" + m.TLS.Cert
	}
	for _, name := range slices.Sorted(maps.Keys(credentialHeaders)) {
		u.account += "\x00" + u.header.Get(name)
	}
	return u, nil
}

// ModelName returns the name under which the upstream knows the model that a
// client calls requested.
func (u *Upstream) ModelName(requested string) string {
	if u.name != "" {
		return u.name
	}
	return requested
}

// Pattern returns what the names match that the upstream serves.
func (u *Upstream) Pattern() string { return u.match }

// Host returns host and port of the upstream, for logs and for recognising its
// dialect.
func (u *Upstream) Host() string { return u.BaseURL.Host }

// String returns the address of the upstream without its query, and without what looks
// like a secret in its path.
func (u *Upstream) String() string {
	return u.mask.Hide(u.BaseURL.Scheme + "://" + u.BaseURL.Host + u.BaseURL.EscapedPath())
}

// GoString is String, so that %#v does not show the key.
func (u *Upstream) GoString() string { return "upstream.Upstream(" + u.String() + ")" }
