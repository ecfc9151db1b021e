package session

import (
	"context"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// told returns post with who watches told to whom it goes.
func (s *Session) told(post func(context.Context, [][]byte) (*http.Response, error)) func(context.Context, [][]byte) (*http.Response, error) {
	return func(ctx context.Context, parts [][]byte) (*http.Response, error) {
		span := observe.Current(ctx)
		for _, each := range []*observe.Span{span, span.Nearest(observe.Conversation)} {
			each.Text(observe.ProviderName, s.provider())
			each.Text(observe.ServerAddress, s.Upstream.BaseURL.Hostname())
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

// provider is what the model API is called.
func (s *Session) provider() string {
	if s.Upstream.Rehearsal {
		return "rehearsal"
	}
	name := s.Dialect.Name()
	if known, ok := providers[name]; ok {
		return known
	}
	return name
}
