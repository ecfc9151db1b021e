package upstream

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
	"github.com/dragoman-mcp/dragoman/result"
)

// Model is an entry of models in the configuration: which names it serves, and
// where.
type Model struct {
	Match   string                 `yaml:"match" doc:"Model names that this entry serves: a name, or a pattern with * and ?. The first entry that matches wins."`
	BaseURL string                 `yaml:"base_url" need:"true" secret:"filled" doc:"Where the OpenAI-compatible API begins, such as https://api.openai.com/v1. Needed."`
	APIKey  secret.Text            `yaml:"api_key" doc:"Sent as Authorization: Bearer. Without one the upstream gets no key."`
	Dialect string                 `yaml:"dialect" doc:"What the upstream accepts. Default: recognised from its host, else conservative."`
	Name    string                 `yaml:"name" doc:"Model name to send upstream instead of the one in the request."`
	Headers map[string]secret.Text `yaml:"headers" doc:"HTTP headers sent with each request, such as api-key."`
	TLS     tlsfiles.Files         `yaml:"tls" doc:"Whom the gateway believes at this address, and what it shows there, for a model API inside a company. The files are read again when they change."`
	Wires   []string               `yaml:"wires" doc:"Which APIs the upstream speaks, of chat, responses and messages. With responses, requests of the Responses API go to its own, with the tools of MCP servers beside its hosted ones; without chat, those of the Chat and the Messages API do, too. A request of the Messages API that names none of the MCP servers goes as it is to an upstream that speaks it. With [chat] everything goes over Chat. Where neither chat nor responses is named, chat is meant, too: one of the two it takes for tools of MCP servers. Default: chat, responses at OpenAI and Azure OpenAI, and messages at Anthropic."`
	Context int                    `yaml:"context_window" max:"100000000" doc:"How many tokens the model reads, for clients that ask, such as Codex, and those of Anthropic's API. Codex is told 128000 where it is not set, the others nothing."`
	Offer   string                 `yaml:"offer" enum:"always,named" doc:"When the tools of MCP servers are offered. always; or named: only to requests that name servers, as for a model that clients ask for titles and summaries. A tool of hosted.web_search is one of a server, too."`
	Results result.Form            `yaml:"results" doc:"How results of tools look to this model, where it differs from the section results."`
	Price   usage.Price            `yaml:"price" doc:"What a million tokens cost, in the currency of your choice, for dragoman usage and for budgets of money."`
	Timeout time.Duration          `yaml:"timeout" doc:"Longest wait for the first byte of an answer; without streaming that is the whole answer."`
	Idle    time.Duration          `yaml:"idle_timeout" doc:"Longest time that the upstream may send nothing in the middle of an answer."`
}

// Values of Offer of a [Model].
const (
	OfferAlways = "always"
	OfferNamed  = "named"
)

// DefaultTimeout is the Timeout of a [Model] that has none; OpenAI's own
// clients wait as long.
const DefaultTimeout = 10 * time.Minute

// DefaultIdle is the Idle of a [Model] that has none.
const DefaultIdle = 5 * time.Minute

// DefaultContext is the Context of a [Model] that has none: what most models read at
// least.
const DefaultContext = 128_000

// SetDefaults gives every field that is zero and has a default its default.
func (m *Model) SetDefaults() {
	if m.Match == "" {
		m.Match = "*"
	}
	if m.Offer == "" {
		m.Offer = OfferAlways
	}
	if m.Timeout == 0 {
		m.Timeout = DefaultTimeout
	}
	if m.Idle == 0 {
		m.Idle = DefaultIdle
	}
}

// Validate reports the first thing in m that cannot work, as a [*invalid.Error].
// It wants defaults to be set.
func (m *Model) Validate() error {
	if m.Match == "" {
		return invalid.Key("match", "an empty pattern matches no name")
	}
	if m.BaseURL == "" {
		return invalid.Key("base_url", "a model needs a base_url, such as "+openAIURL)
	}
	u, err := url.Parse(m.BaseURL)
	switch {
	case err != nil && strings.Contains(m.BaseURL, "://"):
		// The parse error repeats the URL, which may hold a secret.
		return invalid.Key("base_url", "not a valid URL")
	case err != nil, u.Scheme != "http" && u.Scheme != "https":
		return invalid.Key("base_url", "a URL here begins with http:// or https://")
	case u.Hostname() == "":
		return invalid.Key("base_url", "the URL has no host")
	case u.User != nil:
		return invalid.Key("base_url", "a user name or password in the URL is not sent; use api_key or headers")
	case u.Fragment != "":
		return invalid.Key("base_url", "a URL with # cannot be a base")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return invalid.Key("base_url", "give the address where the API begins, without /chat/completions")
	}
	if err := m.TLS.Validate(u.Scheme); err != nil {
		return err
	}
	if err := m.Price.Validate(); err != nil {
		return invalid.Key("price", err.Error())
	}
	for _, wire := range m.Wires {
		if wire != Chat && wire != Responses && wire != Messages {
			return invalid.Key("wires", fmt.Sprintf("%q is no API that is known here; it is chat, responses or messages", wire))
		}
	}
	// A key with a line break at its end comes from a file or a copied text.
	if !safehttp.ValidHeaderValue(m.APIKey.Reveal()) {
		return invalid.Key("api_key", "the key has a line break or a control character")
	}
	return safehttp.CheckHeaders(m.Headers)
}

// String says which names go where, without anything that may be a secret, so
// that a Model can be logged.
func (m Model) String() string {
	host := "?"
	if u, err := url.Parse(m.BaseURL); err == nil {
		host = u.Host
	}
	return m.Match + " at " + host
}

// GoString is String, so that %#v does not show secrets either.
func (m Model) GoString() string { return "upstream.Model(" + m.String() + ")" }
