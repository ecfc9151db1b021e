package session

import (
	"context"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// told returns post with who watches told to whom it goes.
func (s *Session) told(post func(context.Context, [][]byte) (*http.Response, error)) func(context.Context, [][]byte) (*http.Response, error) {
	return func(ctx context.Context, parts [][]byte) (*http.Response, error) {
		span := observe.Current(ctx)
		for _, each := range []*observe.Span{span, span.Nearest(observe.Conversation)} {
			each.Text(observe.ProviderName, s.provider())
			each.Text(observe.ServerAddress, s.Upstream.BaseURL.Hostname())
			observe.Port(each, s.Upstream.BaseURL)
			each.Text(observe.RequestModel, s.Model)
		}
		return post(ctx, parts)
	}
}

// providers are those whose names the conventions have, by their dialects; others are
// called by the dialect.
var providers = map[string]string{
	"azure": "azure.ai.openai", "gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai", "vertex": "gcp.vertex_ai", "bedrock": "aws.bedrock",
}

// Provider returns what the API of an upstream is called by the conventions.
func (o *Opener) Provider(up *upstream.Upstream) string { return provider(up, o.spoken(up).Name()) }

func (s *Session) provider() string { return provider(s.Upstream, s.Dialect.Name()) }

func provider(up *upstream.Upstream, dialect string) string {
	known, ok := providers[dialect]
	switch {
	case up.Rehearsal:
		return "rehearsal"
	case ok:
		return known
	}
	return dialect
}
