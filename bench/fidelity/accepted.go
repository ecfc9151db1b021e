package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/prove"
)

// callsEach is how many calls of each kind are made up for a tool.
const callsEach = 4

// maxReasons is how many reasons for refusals are told.
const maxReasons = 3

// accepted writes how many of the calls are accepted that a model can write, by
// dialect.
func accepted(out io.Writer, engineDir string, dialects, files []string) error {
	var tools []dragoman.Tool
	for _, file := range files {
		found, err := toolsOf(file)
		if err != nil {
			return err
		}
		tools = append(tools, found...)
	}
	engines := prove.Engines{Dir: engineDir}
	defer engines.Close()
	fmt.Fprintf(out, "\n## Calls at random\n\nOf the calls that a model can write by what is sent, made up at random by the schema and by the engine itself, how many the server's schema takes after the way back; the same of a model that also keeps to what the conversion says in descriptions; and of the calls that the server takes, how many can be written. %d tools.\n\n", len(tools))
	fmt.Fprintf(out, "| dialect | accepted | with descriptions read | can be written | refused most |\n|---|---|---|---|---|\n")
	for _, name := range dialects {
		t, err := count(&engines, name, tools)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| `%s` | %d of %d (%.1f %%) | %d of %d (%.1f %%) | %d of %d (%.1f %%) | %s |\n", name,
			t.Accepted, t.Written, t.Rate(), t.Kept, t.Obedient, t.KeptRate(), t.Writable, t.Wanted, t.WritableRate(), most(t.Refusals))
	}
	return nil
}

// count makes up calls of all tools in one dialect.
func count(engines *prove.Engines, name string, tools []dragoman.Tool) (*prove.Tally, error) {
	d, err := dialect.For(name)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	engine, err := engines.For(ctx, name)
	if err != nil {
		return nil, err
	}
	t := prove.NewTally()
	for i, tool := range tools {
		p := prove.Prover{Dialect: d, Engine: engine, Seed: uint64(i)}
		if err := p.Count(ctx, tool, callsEach, t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// most are the reasons that were counted most often.
func most(reasons map[string]int) string {
	order := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		if reasons[a] != reasons[b] {
			return reasons[b] - reasons[a]
		}
		return strings.Compare(a, b)
	})
	var words []string
	for _, why := range order[:min(len(order), maxReasons)] {
		words = append(words, fmt.Sprintf("%d × %s", reasons[why], strings.TrimRight(strings.ReplaceAll(why, "|", `\|`), ".")))
	}
	return strings.Join(words, "; ")
}

// toolsOf reads a list of tools.
func toolsOf(file string) ([]dragoman.Tool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []struct {
			Name, Description         string
			InputSchema, OutputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	var tools []dragoman.Tool
	for _, t := range list.Tools {
		tools = append(tools, dragoman.Tool{
			Name: t.Name, Original: t.Name, Server: strings.TrimSuffix(filepath.Base(file), ".json"),
			Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		})
	}
	return tools, nil
}
