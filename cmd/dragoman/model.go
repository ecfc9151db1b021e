package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

var errNoModel = errors.New("the configuration names no single model")

// openChat is open, for a chat with a model: the one that is named, or the default.
func (s *selection) openChat(ctx context.Context, model string) (*gateway.Gateway, string, error) {
	file, err := s.load(config.Reader{Lookup: os.LookupEnv, Ask: person()})
	if err != nil {
		return nil, "", err
	}
	if model == "" {
		if model, err = s.defaultModel(ctx, file); err != nil {
			return nil, "", err
		}
	}
	g, err := s.openFile(ctx, file)
	if err != nil {
		return nil, "", err
	}
	return g, model, nil
}

// defaultModel returns the model to talk to where none was named. There may be none:
// the configuration may have patterns only, or the environment a key and no model.
// Then the error says which models there are. Who is only trying things out, with no
// server of their own, gets the stand-in model, and is told so; but not where the API
// refused the key, which nothing would tell them so well.
func (s *selection) defaultModel(ctx context.Context, file *config.File) (string, error) {
	set, err := upstream.New(file.Models, upstream.Options{Rehearsal: &rehearsal.Model{}, Getenv: os.LookupEnv})
	if err != nil {
		return "", &usageError{err, ""}
	}
	defer set.Close()
	if name := set.DefaultModel(); name != "" {
		return name, nil
	}
	document, failures := set.Models(ctx, nil, false)
	names := modelNames(document)
	hint := "name one with --model"
	cause := errNoModel
	if len(file.Models) == 0 {
		hint = "set OPENAI_MODEL, or name one with --model"
		cause = fmt.Errorf("%s is set, so the model's API is %s, but OPENAI_MODEL is not", environmentChoice(), set.First().BaseURL.Redacted())
	}
	switch {
	case len(names) > 0:
		cause = fmt.Errorf("%w. Its models are %s", cause, someOf(names, 20))
	case len(failures) > 0:
		cause = fmt.Errorf("%w. Its models cannot be listed: %w", cause, failures[0].Err)
	}
	if refusedKey(failures) && len(file.Models) == 0 {
		return "", &usageError{cause, keyHint()}
	}
	if len(file.Models) > 0 || file.NamesServers() || s.quiet {
		return "", &usageError{cause, hint}
	}
	stderr := terminal.NewScreen(os.Stderr)
	stderr.Printf("%s %s.\nhint: %s. Until then the built-in stand-in model answers, which only knows the demo.\n", stderr.Warn("warning:"), terminal.Visible(cause.Error()), hint)
	file.Models = []upstream.Model{{Match: "*", BaseURL: upstream.RehearsalURL}}
	return upstream.RehearsalModel, nil
}

// refusedKey reports whether an API did not take the key that it was shown, or none.
func refusedKey(failures []upstream.Failure) bool {
	return slices.ContainsFunc(failures, func(f upstream.Failure) bool {
		status, ok := errors.AsType[*upstream.StatusError](f.Err)
		return ok && status.Unauthorized()
	})
}

// keyHint says what to do about a key that was refused.
func keyHint() string {
	if os.Getenv("OPENAI_API_KEY") == "" {
		return "set OPENAI_API_KEY and OPENAI_MODEL; without OPENAI_BASE_URL the built-in stand-in model answers"
	}
	variables := "OPENAI_API_KEY"
	if os.Getenv("OPENAI_BASE_URL") != "" {
		variables += " and OPENAI_BASE_URL"
	}
	return "check " + variables + ", and set OPENAI_MODEL; without them the built-in stand-in model answers"
}

// environmentChoice says which variable chose the model's API.
func environmentChoice() string {
	if os.Getenv("OPENAI_BASE_URL") != "" {
		return "OPENAI_BASE_URL"
	}
	return "OPENAI_API_KEY"
}

// modelNames returns the names in a list of models, sorted.
func modelNames(document json.RawMessage) (names []string) {
	var list struct{ Data []struct{ ID string } }
	if json.Unmarshal(document, &list) != nil {
		return nil
	}
	for _, m := range list.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// someOf names the first n of many.
func someOf(names []string, n int) string {
	text := strings.Join(names[:min(n, len(names))], ", ")
	if more := len(names) - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return terminal.OneLine(text, 2000)
}
