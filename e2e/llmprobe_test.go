package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// probed is what llmprobe reports, as far as it is judged. Its check of the
// engine is what counts here; what it says of the model's knowledge is about a
// stand-in that has none.
type probed struct {
	Version     int
	Conformance struct {
		BySurface []struct {
			Surface       string
			Passed, Total int
		}
		Results []struct {
			ID, Surface, Outcome, Reason string
			Failures                     []struct{ Severity, Label, Message string }
		}
		Warnings, Nits []struct{ ID, Label, Message string } // SHOULD, and finer
	}
}

// TestLLMProbe: the conformance suite for OpenAI-compatible servers finds
// nothing to say about the gateway in front of rehearsal.
func TestLLMProbe(t *testing.T) {
	program, script := node(t, filepath.Join("node_modules", "llmprobe", "bin", "dist", "llmprobe.mjs"))
	g := start(t, nil, servers{"tools": idle(t)}).ready()
	for _, depth := range [][]string{nil, {"--full"}} {
		report := probe(t, program, append([]string{script, g.Base, "-m", "rehearsal", "--no-bench", "--no-save", "--json", "--timeout", strconv.FormatFloat(patience.Longest.Seconds(), 'f', 0, 64)}, depth...)...)
		chat := -1
		for i, s := range report.Conformance.BySurface {
			if s.Passed+beyond(report, s.Surface) != s.Total {
				t.Errorf("%s %v: %d of %d MUST", s.Surface, depth, s.Passed, s.Total)
			}
			t.Logf("llmprobe %v, %s: %d of %d MUST, %d of them beyond a stand-in", depth, s.Surface, s.Passed, s.Total, beyond(report, s.Surface))
			if s.Surface == "chat" {
				chat = i
			}
		}
		// As many as it had when this was written: a probe that asks nothing finds
		// nothing.
		if chat < 0 || report.Conformance.BySurface[chat].Total < 60 {
			t.Fatalf("llmprobe %v checked next to nothing: %+v", depth, report.Conformance.BySurface)
		}
		judgeResults(t, report)
	}
}

// beyondAStandIn are the demands that only a model can meet: rehearsal recalls nobody's
// name, and caches no prompts. That a chain has its context is what openai/responses
// tests.
var beyondAStandIn = []string{"responses-previous-response-id", "responses-prompt-caching", "responses-prompt-cache-prefix"}

// beyond counts the demands of a surface that are not met and that are beyond rehearsal.
func beyond(report probed, surface string) (n int) {
	for _, r := range report.Conformance.Results {
		if r.Surface != surface || !slices.Contains(beyondAStandIn, r.ID) {
			continue
		}
		for _, f := range r.Failures {
			if f.Severity == "MUST" {
				n++
			}
		}
	}
	return n
}

// notOfAStandIn are the checks that rehearsal gives no occasion for: it does not
// think, and does not continue what is put into its mouth; one question in plain
// words is one call to it.
var notOfAStandIn = []string{
	"chat-parallel-tools", "chat-reasoning-cap", "chat-assistant-prefill",
	"messages-parallel-tools", "messages-reasoning-cap", "messages-assistant-prefill",
	"messages-thinking-budget", "messages-system-blocks", "messages-stop-sequence-echo",
	"responses-parallel-tools", "responses-reasoning-cap",
}

// notMeasured are those of what rehearsal does not have: questions in plain words
// that it answers without a tool of ours, so that they cost what was counted, and a sum
// that it would have to work out.
var notMeasured = []string{"count-tokens-matches-usage", "messages-content-blocks-honored"}

// dictated are those of the text that is written into a tool's argument: rehearsal
// does not take dictation.
var dictated = []string{"chat-tool-args-literal-any", "chat-tool-args-literal-all", "messages-tool-args-literal-any", "messages-tool-args-literal-all", "responses-tool-args-literal-any", "responses-tool-args-literal-all"}

// required are those that may be left out, and that the gateway has wherever they are asked.
var required = []string{"chat-logprobs", "responses-background"}

func judgeResults(t *testing.T, report probed) {
	t.Helper()
	for _, r := range report.Conformance.Results {
		switch r.Outcome {
		case "pass", "skipped", "unsupported", "absent":
		case "inconclusive":
			if !slices.Contains(notOfAStandIn, r.ID) {
				t.Errorf("%s is inconclusive: %s", r.ID, r.Reason)
			}
		default:
			if !slices.Contains(beyondAStandIn, r.ID) {
				t.Errorf("%s is %s: %+v", r.ID, r.Outcome, r.Failures)
			}
		}
		if slices.Contains(required, r.ID) && r.Outcome != "pass" && r.Outcome != "skipped" {
			t.Errorf("%s: %s", r.ID, r.Outcome)
		}
	}
	for _, w := range slices.Concat(report.Conformance.Warnings, report.Conformance.Nits) {
		if !slices.Contains(dictated, w.ID) && !slices.Contains(notMeasured, w.ID) {
			t.Errorf("%s: %s: %s", w.ID, w.Label, w.Message)
		}
	}
}

// probe runs llmprobe. It exits with 1 where the model is below its floor, as a
// stand-in must be.
func probe(t *testing.T, program string, args ...string) probed {
	t.Helper()
	cmd := exec.CommandContext(patience.Context(t), program, args...)
	cmd.Env = cleanEnv(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("llmprobe: %v\n%s", err, stderr.Bytes())
	}
	var report probed
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || report.Version != 2 {
		t.Fatalf("llmprobe printed no report of version 2: %v\n%.2000s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	return report
}
