package prove

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// patience is how long an engine may take for one answer.
const patience = 60 * time.Second

// maxAnswer is the length of an answer of an engine, in bytes.
const maxAnswer = 64 << 20

// A Process is an engine of somebody else's: a program that answers lines of JSON
// on its standard input with lines of JSON on its standard output, as
// docs/prove.md describes. It is started when it is first asked, and again when it
// has died over a schema.
type Process struct {
	command []string
	name    string

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer
}

// Start starts an engine and asks for its name.
func Start(ctx context.Context, command ...string) (*Process, error) {
	p := &Process{command: command}
	var hello struct{ Engine, Version string }
	if err := p.ask(ctx, map[string]any{"op": "hello"}, &hello); err != nil {
		p.Close()
		return nil, fmt.Errorf("starting the engine %s: %w", command[len(command)-1], err)
	}
	if hello.Engine == "" {
		p.Close()
		return nil, fmt.Errorf("the engine %s does not say its name", command[len(command)-1])
	}
	p.name = hello.Engine + " " + hello.Version
	return p, nil
}

// Name is what the engine calls itself.
func (p *Process) Name() string { return p.name }

// Close ends the program.
func (p *Process) Close() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.in.Close()
	_ = p.cmd.Process.Kill() // it holds nothing that could be lost
	_ = p.cmd.Wait()
	p.cmd = nil
	return nil
}

func (p *Process) begin() error {
	if p.cmd != nil {
		return nil
	}
	cmd := exec.Command(p.command[0], p.command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.stderr = &bytes.Buffer{}
	cmd.Stderr = &tail{p.stderr}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.in, p.out = cmd, in, bufio.NewReader(out)
	return nil
}

// tail keeps the first few kilobytes of what an engine complains about.
type tail struct{ b *bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	if room := 8<<10 - t.b.Len(); room > 0 {
		t.b.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// errDied means that the program ended, or did not answer in time.
var errDied = errors.New("the engine gave up")

// ask sends a request and reads the answer. What the engine itself calls an error
// is an [ErrRefused].
func (p *Process) ask(ctx context.Context, request, answer any) error {
	if err := p.begin(); err != nil {
		return err
	}
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	read := make(chan []byte, 1)
	failed := make(chan error, 1)
	in, out := p.in, p.out
	go func() {
		if _, err := in.Write(append(line, '\n')); err != nil {
			failed <- err
			return
		}
		reply, err := readLine(out)
		if err != nil {
			failed <- err
			return
		}
		read <- reply
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var reply []byte
	select {
	case reply = <-read:
	case err := <-failed:
		p.Close()
		return fmt.Errorf("%w: %w: %s", errDied, err, firstLine(p.stderr.Bytes()))
	case <-ctx.Done():
		p.Close()
		return fmt.Errorf("%w: no answer in %v", errDied, patience)
	}
	var trouble struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(reply, &trouble); err != nil {
		return fmt.Errorf("the engine answers no JSON: %w", err)
	}
	if trouble.Error != "" {
		return fmt.Errorf("%w: %.400s", ErrRefused, trouble.Error)
	}
	return json.Unmarshal(reply, answer)
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, more, err := r.ReadLine()
		if err != nil {
			return nil, err
		}
		if line = append(line, part...); !more {
			return line, nil
		}
		if len(line) > maxAnswer {
			return nil, fmt.Errorf("an answer of more than %d MiB", maxAnswer>>20)
		}
	}
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte{'\n'})
	return line[:min(len(line), 300)]
}

// Read makes the engine read a schema. One over which it dies is refused, too: the
// server that embeds the engine would die of it, or answer with an error.
func (p *Process) Read(ctx context.Context, sent json.RawMessage) (Language, error) {
	var answer struct {
		Shown json.RawMessage
	}
	request := map[string]any{"op": "load", "schema": sent}
	used := p.cmd != nil
	err := p.ask(ctx, request, &answer)
	if errors.Is(err, errDied) && used && ctx.Err() == nil {
		err = p.ask(ctx, request, &answer) // it may have died of the schema before
	}
	if errors.Is(err, errDied) && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err != nil {
		return nil, err
	}
	if answer.Shown != nil {
		return newShown(answer.Shown), nil
	}
	return &grammar{p, sent}, nil
}

// grammar is the language of the schema that the program has read last.
type grammar struct {
	engine *Process
	sent   json.RawMessage
}

func (g *grammar) Shown() json.RawMessage { return g.sent }

func (g *grammar) Writes(ctx context.Context, texts []string) ([]bool, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	var answer struct{ Accepted []bool }
	err := g.engine.ask(ctx, map[string]any{"op": "accepts", "texts": texts}, &answer)
	return answer.Accepted, err
}

// sampleLength is the number of characters after which a sample comes to its end
// where it can.
const sampleLength = 200

func (g *grammar) Sample(ctx context.Context, count int, seed uint64) ([]string, error) {
	var answer struct{ Texts []string }
	err := g.engine.ask(ctx, map[string]any{"op": "sample", "count": count, "seed": seed % (1 << 31), "limit": sampleLength}, &answer)
	return answer.Texts, err
}
