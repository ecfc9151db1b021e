package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/gateway"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/demo"
	"github.com/dragoman-mcp/dragoman/lint"
)

// targets are the servers to audit: saved lists, or those that the flags or the
// configuration name, or the demo where nothing names any. closing ends what was
// started for them.
func (a *audit) targets(files []string) (targets []lint.Target, closing func(), err error) {
	closing = func() {}
	if len(files) > 0 {
		if a.url != "" || a.mcpConfig != "" || len(a.command) > 0 {
			return nil, closing, &usageError{errors.New("saved lists and running servers exclude each other"), ""}
		}
		targets, err = savedLists(files)
		return targets, closing, err
	}
	file, err := a.load(config.Reader{Lookup: os.LookupEnv, Ask: person()})
	if err != nil {
		return nil, closing, err
	}
	a.warnLeftOut(file)
	written := a.written(file)
	a.partial = len(a.labels) > 0
	for _, label := range slices.Sorted(maps.Keys(file.MCPServers)) {
		c := file.MCPServers[label]
		if c.Disabled {
			a.partial = true
			continue
		}
		c.SetDefaults()
		c.Complete()
		t, err := target(file, label, &c, written[label])
		if err != nil {
			return nil, closing, err
		}
		t.Legacy = a.legacy
		targets = append(targets, t)
	}
	for _, left := range file.LeftOut { // it is not started, and how it is configured can be judged
		if c := written[left.Label]; c != nil {
			targets = append(targets, lint.Target{Label: left.Label, Config: c})
		}
	}
	if len(targets) == 0 && len(file.MCPServers) == 0 {
		d := demo.New(demo.Options{Version: version()})
		closing = func() { d.Close() }
		targets = append(targets, lint.Target{Label: gateway.DemoLabel, Pipe: func(ctx context.Context) (io.ReadCloser, io.WriteCloser, error) {
			r, w := d.Pipe(ctx)
			return r, w, nil
		}})
	}
	return targets, closing, nil
}

func savedLists(files []string) (targets []lint.Target, err error) {
	for _, name := range files {
		list, err := readInput([]string{name})
		if err != nil {
			return nil, &usageError{err, insteadOfFile(name)}
		}
		if block := struct {
			Servers json.RawMessage `json:"mcpServers"`
		}{}; json.Unmarshal(list, &block) == nil && block.Servers != nil {
			return nil, &usageError{fmt.Errorf("%s names servers, and is no saved list of tools", name), "to audit those servers: dragoman lint --mcp-config " + name}
		}
		t := lint.Target{Label: "server", List: list, File: "stdin.json"}
		if name != "-" {
			t.File = name
			t.Label = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// insteadOfFile says what somebody may have meant by the name of a file that
// cannot be read.
func insteadOfFile(name string) string {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return "to audit a server at an address: dragoman lint --url " + name
	}
	if _, err := exec.LookPath(name); err == nil {
		return "to start a server, put -- before its command: dragoman lint -- " + name + " …"
	}
	return ""
}

// target says how to reach one configured server, with the token of a login there.
func target(file *config.File, label string, c *servers.Config, written *lint.Config) (lint.Target, error) {
	t := lint.Target{Label: label, Config: written}
	t.ReadOnly = func(tool string) bool { return c.Effects.Of(tool) == dragoman.ReadOnly }
	for _, given := range c.Secrets(os.LookupEnv) {
		t.Secrets = append(t.Secrets, given.Reveal())
	}
	if c.URL == "" {
		t.Command = c.Process
		return t, nil
	}
	t.URL, t.Header = c.URL, c.Header()
	token, err := loggedIn(file, label, c)
	if token != "" {
		t.Header.Set("Authorization", "Bearer "+token)
	}
	return t, err
}

// written reads the servers as they are written, before variables are filled in:
// the rules about configurations must tell a secret from a reference to one. A
// server that is found under no such name has no such rules.
func (a *audit) written(file *config.File) map[string]*lint.Config {
	path := file.Path
	if a.mcpConfig != "" {
		path = a.mcpConfig
	}
	if path == "" || a.url != "" || len(a.command) > 0 {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var doc struct {
		Servers map[string]*lint.Config `yaml:"mcpServers"`
		Other   map[string]*lint.Config `yaml:"servers"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil // it was read strictly before; here it is only looked at
	}
	all := map[string]*lint.Config{}
	maps.Copy(all, doc.Other)
	maps.Copy(all, doc.Servers)
	lines := labelLines(text)
	for label, c := range all {
		c.File, c.Line = path, lines[label]
	}
	return all
}

// labelLines returns the line on which each server of a configuration is named.
func labelLines(text []byte) map[string]int {
	lines := map[string]int{}
	file, err := parser.ParseBytes(text, 0)
	if err != nil || len(file.Docs) == 0 {
		return lines
	}
	for _, block := range []string{"servers", "mcpServers"} {
		path, err := yaml.PathString("$." + block)
		if err != nil {
			return lines
		}
		node, err := path.FilterFile(file)
		if err != nil {
			continue
		}
		servers, ok := node.(ast.MapNode)
		if !ok {
			continue
		}
		for each := servers.MapRange(); each.Next(); {
			if token := each.Key().GetToken(); token != nil {
				lines[token.Value] = token.Position.Line
			}
		}
	}
	return lines
}
