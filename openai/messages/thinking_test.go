package messages

import (
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestManyThoughts: thoughts in many blocks are one text to the upstream, as is what was
// said between them, and take memory as they are long, whoever sends how many of them.
func TestManyThoughts(t *testing.T) {
	ring := thoughts{seal.New(), "somebody"}
	thought := members("type", "thinking", "thinking", "It may rain. ", "signature", ring.close("reasoning_content", "It may rain. ", false, true))
	joined := func(n int) (text string, size uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m := &spoken{}
		for range n {
			ring.open(m, block{kind: "thinking", Object: thought})
			m.goOn(rawjson.Literal("It rains. "))
		}
		if said, _ := rawjson.String(m.joined()); said != strings.Repeat("It rains. ", n) {
			t.Errorf("%d bytes of text", len(said))
		}
		message := &rawjson.Object{}
		m.thoughts(message)
		runtime.ReadMemStats(&after)
		text, _ = rawjson.String(message.Get("reasoning_content"))
		return text, after.TotalAlloc - before.TotalAlloc
	}
	few, small := joined(200)
	many, large := joined(1600)
	if few != strings.Repeat("It may rain. ", 200) || many != strings.Repeat("It may rain. ", 1600) {
		t.Errorf("%d and %d bytes of thoughts", len(few), len(many))
	}
	if large > 12*small {
		t.Errorf("eight times as many take %d KiB, not %d", large>>10, small>>10)
	}
}

// TestThoughtsWithRest: what an API wants back beside its thoughts stands in the message with
// all of them, those that came before it and those that came after.
func TestThoughtsWithRest(t *testing.T) {
	ring := thoughts{seal.New(), "somebody"}
	m := &spoken{}
	m.think("reasoning", "before ")
	remembered := members("role", "assistant", "content", "x", "reasoning_details", "kept")
	data := ring.sealRest(restOf(remembered, nil))
	if data == "" {
		t.Fatal("nothing was sealed")
	}
	ring.rest(m, block{Object: members("data", data)})
	m.think("reasoning", "after")
	message := members("role", "assistant")
	m.thoughts(message)
	if got := string(message.Bytes()); got != `{"role":"assistant","reasoning_details":"kept","reasoning":"before after"}` {
		t.Error(got)
	}
}
