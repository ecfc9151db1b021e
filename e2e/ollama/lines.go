package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"runtime/debug"

	"github.com/ollama/ollama/api"
)

// answer speaks the lines of JSON that docs/prove.md describes. Ollama enforces
// nothing; what it says is which part of a schema the model gets to see.
func answer(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	reply := json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var request struct {
			Op     string
			Schema json.RawMessage
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return err
		}
		var said any = map[string]string{"error": "unknown op " + request.Op}
		switch request.Op {
		case "hello":
			said = map[string]string{"engine": "Ollama's types", "version": version()}
		case "load":
			shown, err := shown(request.Schema)
			if err != nil {
				said = map[string]string{"error": err.Error()}
			} else {
				said = map[string]any{"ok": true, "shown": shown}
			}
		}
		if err := reply.Encode(said); err != nil {
			return err
		}
	}
}

// shown is what is left of a schema behind Ollama's types.
func shown(schema json.RawMessage) (json.RawMessage, error) {
	function := map[string]any{"name": "tool", "description": "A tool.", "parameters": schema}
	sent, err := json.Marshal(map[string]any{"type": "function", "function": function})
	if err != nil {
		return nil, err
	}
	var tool api.Tool
	if err := json.Unmarshal(sent, &tool); err != nil {
		return nil, err
	}
	return json.Marshal(tool.Function.Parameters)
}

// version is that of Ollama's module.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/ollama/ollama" {
			return m.Version
		}
	}
	return "unknown"
}
