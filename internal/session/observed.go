package session

import (
	"context"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/judge/meter"
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

// toldTokens returns a meter that tells a span, too, what it counts: of a stream the
// conversation may not see it. Estimates are for budgets alone.
func toldTokens(span *observe.Span, m *meter.Meter) *meter.Meter {
	if !span.On() {
		return m
	}
	return &meter.Meter{Count: func(u meter.Used) {
		if !u.Estimated {
			for key, n := range map[string]int64{observe.InputTokens: u.In, observe.OutputTokens: u.Out, observe.CacheReadTokens: u.Cached, observe.ReasoningTokens: u.Reasoning} {
				if n > 0 {
					span.Int(key, n)
				}
			}
		}
		m.Count(u)
	}}
}
