package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/prove"
)

// goals are the parts of the calls, of a hundred, that are to be accepted: where what
// is sent holds the model, and where the model also reads descriptions, which say
// what a dialect does not take.
var goals = map[string]struct{ held, kept float64 }{
	"openai": {99, 99}, "openai-strict": {99, 99}, "llamacpp": {99, 99}, "vllm": {99, 99}, "sglang": {99, 99},
	"anthropic-strict": {97, 99}, "gemini": {97, 98}, "ollama": {0, 97},
}

// enoughTools is the number of tools from which on figures mean something.
const enoughTools = 150

// TestAccepted counts, of the calls that a model can write by what is sent, those
// that the server's schema takes; and of those that the server takes, what a model
// can write. Of the tools of DRAGOMAN_CORPUS every fourth is asked, or every one
// that DRAGOMAN_JUDGE_EVERY says.
func TestAccepted(t *testing.T) {
	engines := prove.Engines{Dir: "engines"}
	defer engines.Close()
	calls, every := 4, 4
	if n, err := strconv.Atoi(os.Getenv("DRAGOMAN_JUDGE_EVERY")); err == nil {
		every = n
	}
	names := strings.Split("openai,openai-strict,anthropic-strict,gemini,llamacpp,vllm,ollama", ",")
	if only := os.Getenv("DRAGOMAN_JUDGE_DIALECTS"); only != "" {
		names = strings.Split(only, ",")
	}
	tools := listedTools(t)
	if len(tools) < 4*enoughTools {
		every = 1
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			engine, err := engines.For(t.Context(), name)
			if err != nil {
				missing(t, "%v; run make engines", err)
			}
			d, err := dialect.For(name)
			if err != nil {
				t.Fatal(err)
			}
			tally := prove.NewTally()
			for i, tool := range tools {
				if i%every != 0 {
					continue
				}
				p := prove.Prover{Dialect: d, Engine: engine, Seed: uint64(i)}
				if err := p.Count(t.Context(), tool, calls, tally); err != nil {
					t.Error(err)
				}
			}
			t.Logf("%s: %d tools, %d unusable; %d of %d calls that can be written are accepted (%.2f %%), %d are no JSON; %d of %d of who reads descriptions (%.2f %%); %d of %d that the server takes can be written (%.2f %%)",
				name, tally.Tools, tally.Unusable, tally.Accepted, tally.Written, tally.Rate(), tally.NoJSON,
				tally.Kept, tally.Obedient, tally.KeptRate(), tally.Writable, tally.Wanted, tally.WritableRate())
			goal := goals[name]
			if tally.Tools-tally.Unusable >= enoughTools && (tally.Rate() < goal.held || tally.KeptRate() < goal.kept || tally.WritableRate() < 99) {
				t.Errorf("fewer than %.0f %% are accepted, or %.0f %% of who reads descriptions", goal.held, goal.kept)
			}
			for what, reasons := range map[string]map[string]int{"refused": tally.Refusals, "refused though descriptions were read": tally.Disobeyed, "cannot be written": tally.Unsaid} {
				for _, why := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return reasons[b] - reasons[a] }) {
					t.Logf("%s %6d  %s\n        %.400s", what, reasons[why], why, tally.Examples[why])
				}
			}
		})
	}
}

// listedTools are the tools of all lists, in the order of their names.
func listedTools(t *testing.T) (tools []dragoman.Tool) {
	all := lists(t)
	for _, label := range slices.Sorted(maps.Keys(all)) {
		var read struct {
			Tools []struct {
				Name, Description         string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(all[label], &read); err != nil {
			t.Fatal(err)
		}
		for _, tool := range read.Tools {
			tools = append(tools, dragoman.Tool{Name: tool.Name, Original: tool.Name, Server: label, Description: tool.Description, InputSchema: tool.InputSchema, OutputSchema: tool.OutputSchema})
		}
	}
	return tools
}
