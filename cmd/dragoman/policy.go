package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// policyCheck is what "check" is asked about the policy.
type policyCheck struct {
	show   bool
	caller string
	scopes []string
}

func (c *policyCheck) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&c.show, "policy", false, "print the rules of the configuration as Cedar instead, and connect to nothing")
	f.StringVar(&c.caller, "caller", "", "with --policy: say what this `CALLER`, by id or by the name of a key, may do to everything there is")
	f.StringSliceVar(&c.scopes, "scope", nil, "with --caller: suppose that the caller's token has this `SCOPE`; may be repeated")
}

// run prints the policy of a configuration, and what a caller may do.
func (c *policyCheck) run(ctx context.Context, s *selection, file *config.File) error {
	p, err := policy.New(policy.Config{Rules: file.Policy, File: file.PolicyFile})
	if err != nil {
		return &usageError{err, ""}
	}
	out := terminal.NewScreen(os.Stdout)
	if c.caller == "" {
		s.warn(terminal.NewScreen(os.Stderr), file)
		if p.Zero() {
			out.Printf("// There are no rules: everybody may do what their key grants.\n")
			return nil
		}
		out.Printf("%s\n", strings.TrimRight(p.Cedar(), "\n"))
		return nil
	}
	who, err := c.who(file)
	if err != nil {
		return err
	}
	// What there is, is asked for as if there were no rules.
	file.Policy, file.PolicyFile = nil, ""
	s.warnLeftOut(file)
	g, err := s.start(ctx, file)
	if err != nil {
		return err
	}
	defer g.Close()
	open, err := openSession(ctx, g, "")
	if err != nil {
		return err
	}
	list, err := open.Tools.List(ctx)
	if err != nil {
		return err
	}
	return printVerdicts(p, requests(ctx, g, who, list))
}

// checkRules says how many rules there are, that they let no model be used, which is
// what who wrote rules for tools forgets, and which of their patterns match nothing.
func checkRules(ctx context.Context, out *terminal.Screen, g *gateway.Gateway, file *config.File) bool {
	list, err := g.Of(caller.Local).List(ctx)
	if err != nil {
		out.Printf("policy  %s %v\n", out.Bad("✗"), err)
		return false
	}
	for i, limit := range file.Limits {
		checkPatterns(out, list, "limits", cmp.Or(limit.Name, fmt.Sprintf("limits[%d]", i)), limit.Of)
	}
	p, err := policy.New(policy.Config{Rules: file.Policy, File: file.PolicyFile})
	switch {
	case err != nil:
		out.Printf("policy  %s %v\n", out.Bad("✗"), err)
		return false
	case p.Zero():
		return true
	}
	out.Printf("policy  %s %s\n", out.Good("✓"), terminal.Many(p.Rules(), "rule"))
	models := file.PolicyFile != ""
	for i, r := range file.Policy {
		name := cmp.Or(r.Name, fmt.Sprintf("policy[%d]", i))
		checkPatterns(out, list, "policy", name, slices.Concat(r.Allow, r.Ask, r.Deny))
		if pattern := asksModels(&r); pattern != "" {
			out.Printf("policy  %s %s: ask %q refuses models and routes, whose requests cannot wait; tool:* is all tools\n", out.Warn("!"), terminal.OneLine(name, 100), terminal.OneLine(pattern, 200))
		}
		for _, pattern := range r.Allow {
			models = models || pattern == "*" || strings.HasPrefix(pattern, "model:")
		}
	}
	if !models {
		out.Printf("policy  %s no rule allows a model, so every chat is refused; allow: [\"model:*\"] allows all\n", out.Warn("!"))
	}
	return true
}

// asksModels returns the first pattern by which a rule asks about models or routes;
// empty for none.
func asksModels(r *policy.Rule) string {
	w := &r.When
	if w.Server != nil || w.Effect != nil || w.Hints != nil || w.Arguments != nil {
		return "" // which models have not
	}
	for _, pattern := range r.Ask {
		if kind, _ := permission.CutPattern(pattern); pattern == "*" || kind == "model" || kind == "route" {
			return pattern
		}
	}
	return ""
}

// checkPatterns says which patterns are for one server and match nothing that it offers:
// a rule whose name is misspelt denies nobody anything. Of servers that are not there
// nothing is known, and resources can be read that no list has.
func checkPatterns(out *terminal.Screen, list *dragoman.List, section, name string, patterns []string) {
	for _, pattern := range patterns {
		kind, thing := permission.CutPattern(pattern)
		label, rest, _ := qualified.Split(thing)
		connected := slices.ContainsFunc(list.Servers, func(s dragoman.Server) bool { return s.Label == label && s.State == dragoman.Connected })
		if kind == "model" || kind == "route" || !connected || rest == "*" || kind == "resource" || strings.Contains(rest, "://") {
			continue
		}
		if !slices.ContainsFunc(list.Tools.All(), func(t dragoman.Tool) bool {
			return permission.Matches(pattern, "tool", qualified.Name(t.Server, t.Original))
		}) &&
			!slices.ContainsFunc(list.Entries, func(e dragoman.Entry) bool {
				return permission.Matches(pattern, string(e.Kind), qualified.Name(e.Server, e.Original))
			}) {
			out.Printf("%-7s %s %s: %q matches nothing that %s offers now\n", section, out.Warn("!"), terminal.OneLine(name, 100), terminal.OneLine(pattern, 200), label)
		}
	}
}

// who returns the caller that is meant: of a key in the file of keys, of this
// machine, or one who is supposed to be granted everything.
func (c *policyCheck) who(file *config.File) (caller.Caller, error) {
	who := caller.Caller{ID: c.caller, Name: c.caller, Grants: []string{"*"}, Scopes: c.scopes}
	if issuer, _, ok := strings.Cut(c.caller, "#"); ok {
		who.Issuer = issuer
	}
	if c.caller == caller.Local.ID {
		return caller.Local, nil
	}
	if file.Auth.KeysFile == "" {
		return who, nil
	}
	records, err := apikey.Read(file.Auth.KeysFile)
	if err != nil {
		return who, &usageError{err, ""}
	}
	var meant []apikey.Record
	for _, r := range records {
		if c.caller == "key-"+r.ID || c.caller == r.ID || c.caller == cmp.Or(r.Name, r.User) {
			meant = append(meant, r)
		}
	}
	switch len(meant) {
	case 0:
		return who, nil
	case 1:
		return caller.Caller{ID: "key-" + meant[0].ID, Name: cmp.Or(meant[0].Name, meant[0].User), Grants: meant[0].Rights}, nil
	}
	return who, &usageError{fmt.Errorf("%d keys are called %s", len(meant), c.caller), "name one by its id; dragoman keys lists them"}
}

// requests are one for everything there is: tools, what else servers offer, models.
func requests(ctx context.Context, g *gateway.Gateway, who caller.Caller, list *dragoman.List) (all []policy.Request) {
	for i := range list.Tools.All() {
		if t := &list.Tools.All()[i]; t.Quarantined == nil {
			all = append(all, policy.Request{Caller: who, Action: policy.Call, Tool: t})
		}
	}
	for i := range list.Entries {
		all = append(all, policy.Request{Caller: who, Action: policy.Read, Entry: &list.Entries[i]})
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	document, _ := g.Upstreams().Models(ctx, nil, false)
	var models struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	_ = json.Unmarshal(document, &models) // it is our own
	for _, m := range models.Data {
		all = append(all, policy.Request{Caller: who, Action: policy.Model, Name: m.ID})
	}
	return all
}

// printVerdicts prints a line for each request.
func printVerdicts(p *policy.Policy, all []policy.Request) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	listed := 0
	for _, r := range all {
		preview := p.Preview(r)
		v := preview.Verdict
		if preview.Listed {
			listed++
		}
		note := ""
		switch {
		case len(preview.Open) > 0:
			note = "; arguments decide: " + strings.Join(preview.Open, ", ")
		case v.Effect == policy.Ask && v.Approvers != nil:
			note = "; " + strings.Join(v.Approvers, " or ") + " may approve"
		case v.Err != nil:
			note = "; " + v.Err.Error()
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", v.Effect, terminal.OneLine(r.String(), 100), terminal.OneLine(v.Rule, 100), terminal.OneLine(note, 300))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d of %d are shown to this caller\n", listed, len(all))
	return nil
}
