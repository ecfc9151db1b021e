package dialect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/schema"
)

// TestJudgePeers judges what other converters made of the corpus by the rules of
// openai-strict, beside our own. bench/CONVERT.md tells how to run it.
func TestJudgePeers(t *testing.T) {
	file, corpus := os.Getenv("DRAGOMAN_PEERS"), os.Getenv("DRAGOMAN_CORPUS")
	if file == "" || corpus == "" {
		t.Skip("DRAGOMAN_PEERS and DRAGOMAN_CORPUS are not set: nothing to judge")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var peers map[string]struct {
		Tools []struct {
			Tool   string
			Schema json.RawMessage
			Strict bool
		}
		Failed       int
		Microseconds float64
	}
	if err := json.Unmarshal(b, &peers); err != nil {
		t.Fatal(err)
	}
	d, err := For("openai-strict")
	if err != nil {
		t.Fatal(err)
	}
	judge := func(parameters json.RawMessage, strict bool) bool {
		root, err := schema.Parse(parameters)
		if err != nil {
			return false
		}
		rules := &d.spec.Rules
		if strict {
			rules = d.spec.Strict
		}
		return len(check(root, rules).faults) == 0
	}
	for name, peer := range peers {
		accepted, strict, acceptedStrict := 0, 0, 0
		for _, tool := range peer.Tools {
			ok := judge(tool.Schema, tool.Strict)
			if ok {
				accepted++
			}
			if tool.Strict {
				if strict++; ok {
					acceptedStrict++
				}
			}
		}
		all := len(peer.Tools) + peer.Failed
		t.Logf("%-16s %d tools: %d accepted, %d failed; %d strict, %d of them accepted; %.0f µs a tool",
			name, all, accepted, peer.Failed, strict, acceptedStrict, peer.Microseconds/float64(all))
	}

	files, _ := filepath.Glob(filepath.Join(corpus, "*.json"))
	all, accepted, strict, acceptedStrict, quarantined := 0, 0, 0, 0, 0
	var took time.Duration
	for _, file := range files {
		if filepath.Base(file) == "MANIFEST.json" {
			continue
		}
		list, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		doc, err := d.Convert(list)
		took += time.Since(start)
		if err != nil {
			t.Fatal(err)
		}
		all += len(doc.Tools) + len(doc.Quarantined)
		quarantined += len(doc.Quarantined)
		for _, plan := range doc.Plans {
			ok := judge(plan.Parameters(), plan.Strict())
			if ok {
				accepted++
			}
			if plan.Strict() {
				if strict++; ok {
					acceptedStrict++
				}
			}
		}
	}
	t.Logf("%-16s %d tools: %d accepted, %d quarantined; %d strict, %d of them accepted; %.0f µs a tool",
		"dragoman", all, accepted, quarantined, strict, acceptedStrict, float64(took.Microseconds())/float64(all))
}
