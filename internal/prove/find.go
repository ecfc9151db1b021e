package prove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// engineOf says which engine of others holds the models of a dialect. All other
// dialects are those of APIs whose engines nobody can ask offline.
var engineOf = map[string]string{
	"vllm": "xgrammar", "sglang": "xgrammar",
	"llamacpp": "llamacpp", "lmstudio": "llamacpp",
	"ollama": "ollama",
}

// programs are where an engine is in the folder of engines.
var programs = map[string]string{
	"xgrammar": "xgrammar.mjs",
	"llamacpp": filepath.Join("bin", "llamacpp"),
	"ollama":   filepath.Join("bin", "ollama"),
}

// ErrMissing means that an engine is not installed.
var ErrMissing = errors.New("not installed")

// Engines are the engines of others, each started when it is first needed. The
// zero value has none.
type Engines struct {
	// Dir is the folder where they are installed, such as e2e/engines of this
	// project after "make engines"; empty for none. Programs in it are run.
	Dir string

	running map[string]*Process
	missing map[string]error
}

// For returns the engine for a dialect: [Sent] where no engine of others is known
// for it. The error is an [ErrMissing] where there is one and it is not here; Sent
// can stand in for it, but knows nothing of what the engine really does.
func (e *Engines) For(ctx context.Context, dialect string) (Engine, error) {
	name := engineOf[dialect]
	if name == "" {
		return Sent{}, nil
	}
	if p := e.running[name]; p != nil {
		return p, nil
	}
	if err := e.missing[name]; err != nil {
		return nil, err
	}
	p, err := e.start(ctx, name)
	if err != nil {
		if e.missing == nil {
			e.missing = map[string]error{}
		}
		e.missing[name] = err
		return nil, err
	}
	if e.running == nil {
		e.running = map[string]*Process{}
	}
	e.running[name] = p
	return p, nil
}

func (e *Engines) start(ctx context.Context, name string) (*Process, error) {
	if e.Dir == "" {
		return nil, fmt.Errorf("the engine %s, which is %w", name, ErrMissing)
	}
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, programs[name])
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("the engine %s, which is %w in %s", name, ErrMissing, e.Dir)
	}
	command := []string{path}
	if filepath.Ext(path) == ".mjs" {
		node, err := exec.LookPath("node")
		if err != nil {
			return nil, fmt.Errorf("the engine %s, which needs Node.js, and that is %w", name, ErrMissing)
		}
		command = []string{node, path}
	}
	p, err := Start(ctx, command...)
	if err != nil {
		return nil, fmt.Errorf("the engine %s, which is %w in working order: %w", name, ErrMissing, err)
	}
	return p, nil
}

// Close ends all that run.
func (e *Engines) Close() {
	for _, p := range e.running {
		p.Close()
	}
	e.running = nil
}
