package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
)

// ErrServerUnavailable is wrapped by a [ServerError].
var ErrServerUnavailable = errors.New("MCP server not available")

// A ServerError says that a request names a server that has nothing to offer
// now, and what it is doing.
type ServerError struct{ Server dragoman.Server }

// Error names the server and its state, and what is wrong with it.
func (e *ServerError) Error() string {
	s := e.Server
	if s.Problem != nil && s.Problem.Code == dragoman.CodeNeedsAuthorization {
		return fmt.Sprintf("the MCP server %q is not available: %s", s.Label, s.Problem.Message)
	}
	text := fmt.Sprintf("the MCP server %q is not available: it is %s", s.Label, s.State)
	if !s.Since.IsZero() {
		text += " for " + time.Since(s.Since).Round(time.Second).String()
	}
	if !s.Retry.IsZero() {
		text += ", and is tried again in " + max(0, time.Until(s.Retry)).Round(time.Second).String()
	}
	return text
}

// Unwrap returns [ErrServerUnavailable].
func (e *ServerError) Unwrap() error { return ErrServerUnavailable }

// RetryAfter is how long to wait before the same request may succeed.
func (e *ServerError) RetryAfter() time.Duration {
	if e.Server.Retry.IsZero() {
		return time.Second
	}
	return max(time.Second, time.Until(e.Server.Retry))
}

// ErrUnknownTool: the request names a tool that its server does not have.
var ErrUnknownTool = errors.New("no such tool")

// await waits for the servers that a request wants and that are still starting,
// and returns those that then have nothing to offer. One that the request names
// is an error, and so is a tool that its server does not have. tools are those that the
// caller may see, since what is said of them names them.
func (o *Opener) await(ctx context.Context, owner servers.Owner, tools dragoman.Toolset, wanted catalog.Selection) (missing []dragoman.Server, err error) {
	labels := make([]string, 0, len(wanted))
	for _, c := range wanted {
		labels = append(labels, c.Server)
	}
	o.settle(ctx, owner, tools, labels)
	list, err := tools.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing tools: %w", err)
	}
	for _, s := range list.Servers {
		named := slices.Contains(labels, s.Label)
		if s.State == dragoman.Connected || len(labels) > 0 && !named || offers(list, s.Label) {
			continue
		}
		if named {
			return nil, &ServerError{s}
		}
		missing = append(missing, s)
	}
	for _, c := range wanted {
		if err := checkChoice(c, list); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// settle waits for servers that are still starting. Those that a request names are
// worth the whole wait; where it names none, each has as long from its start, so
// that one that hangs does not hold up every request until it is given up.
func (o *Opener) settle(ctx context.Context, owner servers.Owner, tools dragoman.Toolset, labels []string) {
	if o.o.Settle == nil {
		return
	}
	wait := o.o.Wait
	if list, err := tools.List(ctx); err == nil && len(labels) == 0 {
		wait = 0
		for _, s := range list.Servers {
			if s.State == dragoman.Starting {
				wait = max(wait, time.Until(s.Since.Add(o.o.Wait)))
			}
		}
	}
	if wait <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	o.o.Settle(ctx, owner, labels)
}

// offers reports whether the list has tools of a server: those of one that is
// down stay for a while, and calls of them wait for it.
func offers(list *dragoman.List, label string) bool {
	return slices.ContainsFunc(list.Tools.All(), func(t dragoman.Tool) bool { return t.Server == label })
}

// checkChoice says which tool of a choice its server does not have.
func checkChoice(c catalog.Choice, list *dragoman.List) error {
	for _, name := range c.Tools {
		found := slices.ContainsFunc(list.Tools.All(), func(t dragoman.Tool) bool { return t.Server == c.Server && t.Original == name })
		if !found {
			return fmt.Errorf("%w: the MCP server %q has no tool %q%s", ErrUnknownTool, c.Server, name, near(list, c.Server, name))
		}
	}
	return nil
}

// near says which tool of a server may have been meant.
func near(list *dragoman.List, server, name string) string {
	for _, t := range list.Tools.All() {
		have, want := strings.ToLower(t.Original), strings.ToLower(name)
		if t.Server == server && want != "" && (t.Name == name || strings.Contains(have, want) || strings.Contains(want, have) || alike(have, want)) {
			return fmt.Sprintf("; did you mean %q?", t.Original)
		}
	}
	return ""
}

// alike reports whether two names differ in no more than two places.
func alike(a, b string) bool {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, last+1)
		}
	}
	return row[len(b)] <= 2
}
