package toolkit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxCompletions is what MCP allows in one answer to completion/complete.
const maxCompletions = 100

// A Completer proposes values for an argument of a prompt or a variable of a
// resource template by what was typed so far. The other arguments, as far as
// they are known, are in given. At most 100 values are sent.
type Completer func(ctx context.Context, typed string, given map[string]string) ([]string, error)

// Choices completes from a fixed list, ignoring case.
func Choices(values ...string) Completer {
	return func(_ context.Context, typed string, _ map[string]string) ([]string, error) {
		var found []string
		for _, v := range values {
			if strings.HasPrefix(strings.ToLower(v), strings.ToLower(typed)) {
				found = append(found, v)
			}
		}
		return found, nil
	}
}

// A completion is a completer, and the server that it was added to.
type completion struct {
	of       *Server
	complete Completer
}

// completers puts the completers of one prompt or template in force: those
// given, and one for each argument with an enumeration.
func (s *Server) completers(reference string, given map[string]Completer, args *shape) error {
	for name := range given {
		if args.field(name) == nil {
			return fmt.Errorf("a completer for %q, which is no argument", name)
		}
	}
	root := s.root()
	root.mu.Lock()
	defer root.mu.Unlock()
	for _, f := range args.fields {
		c := given[f.name]
		if c == nil && len(f.at.rules.enum) > 0 {
			var words []string
			for _, v := range f.at.rules.enum {
				var word string
				if json.Unmarshal(v, &word) != nil {
					word = string(v)
				}
				words = append(words, word)
			}
			c = Choices(words...)
		}
		if c != nil {
			root.completed[reference+" "+f.name] = completion{s, c}
		}
	}
	return nil
}

// complete answers completion/complete. What nobody can complete has no values.
func (s *Server) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	if completes, _ := s.abilities(); !completes {
		return nil, noMethod("completion/complete")
	}
	values := []string{}
	if ref := req.Params.Ref; ref != nil {
		kind, name := "prompt", ref.Name
		if ref.Type == "ref/resource" {
			kind, name = "resource", ref.URI
		}
		s.mu.Lock()
		c := s.completed[kind+" "+name+" "+req.Params.Argument.Name]
		s.mu.Unlock()
		if c.complete != nil {
			var given map[string]string
			if req.Params.Context != nil {
				given = req.Params.Context.Arguments
			}
			r := newRequest(ctx, "completion", kind+" "+name, req.ClientInfo(), req.Session, req.Extra)
			j := job{request: r, session: req.Session, name: r.Name, requires: s.demands.get(r.Name), timeout: c.of.opts.Timeout}
			found, err := do(ctx, c.of, j, func(ctx context.Context) ([]string, error) {
				return c.complete(ctx, req.Params.Argument.Value, given)
			})
			if err != nil {
				return nil, protocolError(err, "")
			}
			values = append(values, found...)
		}
	}
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{
		Values:  values[:min(len(values), maxCompletions)],
		Total:   len(values),
		HasMore: len(values) > maxCompletions,
	}}, nil
}
