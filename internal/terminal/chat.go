package terminal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/api"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/sse"
)

// A Chat is a conversation of a person with a model.
type Chat struct {
	// Model is the name of the model.
	Model string
	// Answer answers a request to /v1/chat/completions and tells what happens.
	Answer func(http.ResponseWriter, *http.Request, api.Hooks)
	// In is where an interactive chat reads from, and where questions of servers
	// are answered; Out is where answers go, and Trace everything else.
	In    *Lines
	Out   *Screen
	Trace *Screen
	// Quiet leaves the trace out.
	Quiet bool
	// Attended says that somebody is there to answer questions of servers.
	Attended bool

	messages []json.RawMessage
	name     string // of the conversation, so that the model remembers its tools
}

// ErrAnswer means that there was no answer; the person has been told why.
var ErrAnswer = errors.New("no answer")

// Once sends one message and prints the answer.
func (c *Chat) Once(ctx context.Context, message string) error {
	return c.turn(ctx, message)
}

// Interactive reads messages until the input ends. Ctrl-C cancels a turn; at the
// prompt it ends the chat.
func (c *Chat) Interactive(ctx context.Context) error {
	c.Trace.Printf("Talking to %s. %s\n", c.Trace.Bold(c.Model), c.Trace.Faint("/new forgets the conversation, /quit ends it."))
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	for {
		c.Trace.Printf("%s ", c.Trace.style(cyan, "›"))
		prompt, cancel := context.WithCancel(ctx)
		stop := after(interrupts, cancel)
		line, err := c.In.Read(prompt)
		stop()
		cancel()
		if err != nil {
			c.Trace.Printf("\n")
			return nil
		}
		switch line = strings.TrimSpace(line); line {
		case "":
			continue
		case "/quit", "/exit":
			return nil
		case "/new":
			c.messages = nil
			continue
		}
		turn, cancel := context.WithCancel(ctx)
		stop = after(interrupts, cancel)
		err = c.turn(turn, line)
		stop()
		cancel()
		if err != nil && !errors.Is(err, ErrAnswer) {
			return err
		}
	}
}

// after calls f at the next interrupt, unless stop is called before.
func after(interrupts <-chan os.Signal, f func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-interrupts:
			f()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// turn sends a message with the history, prints the answer as it comes, and
// keeps both.
func (c *Chat) turn(ctx context.Context, message string) error {
	messages := append(c.messages[:len(c.messages):len(c.messages)],
		json.RawMessage(`{"role":"user","content":`+string(rawjson.Quote(message))+`}`))
	var body rawjson.Object
	body.Set("model", rawjson.Quote(c.Model))
	body.Set("stream", json.RawMessage("true"))
	body.Set("messages", rawjson.AppendArray(nil, messages))
	if c.messages == nil {
		c.name = rand.Text()
	}
	body.Set("dragoman", json.RawMessage(`{"progress":true,"conversation":"`+c.name+`"}`))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/chat/completions", bytes.NewReader(body.Bytes()))
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")

	pr, pw := io.Pipe()
	w := &pipeResponse{header: http.Header{}, w: pw}
	t := &trace{chat: c, started: time.Now()}
	go func() {
		c.Answer(w, r, c.hooks(t))
		pw.Close()
	}()
	text, err := c.print(pr, w, t)
	pr.Close()
	t.end()
	switch {
	case ctx.Err() != nil:
		c.Trace.Printf("%s\n", c.Trace.Warn("cancelled"))
		return ErrAnswer
	case err != nil:
		c.Trace.Error(err, "")
		return ErrAnswer
	}
	c.messages = append(messages, json.RawMessage(`{"role":"assistant","content":`+string(rawjson.Quote(text))+`}`))
	return nil
}

// hooks are what a turn is told, and asked.
func (c *Chat) hooks(t *trace) api.Hooks {
	hooks := api.Hooks{Observe: t.observe}
	if c.Attended {
		asker := &Asker{Lines: c.In, Screen: c.Trace, Before: t.pause}
		hooks.Ask, hooks.Can = asker.Ask, CanAsk
	}
	return hooks
}

// print writes the answer's text to the screen as it comes, and returns it.
func (c *Chat) print(body io.Reader, w *pipeResponse, t *trace) (string, error) {
	head := bufio.NewReader(body)
	if _, err := head.Peek(1); err != nil {
		return "", errors.New("the answer is empty")
	}
	if w.code() != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		document, _ := io.ReadAll(io.LimitReader(head, 1<<20))
		return "", apiError(document, w.code())
	}
	var text strings.Builder
	events := sse.NewReader(head, 16<<20)
	for {
		e, err := events.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return text.String(), fmt.Errorf("reading the answer: %w", err)
		}
		if e.Comment || string(e.Data) == "[DONE]" {
			continue
		}
		piece, progress, err := readChunk(e.Data)
		if err != nil {
			return text.String(), err
		}
		if progress != nil {
			t.progress(progress)
		}
		if piece != "" {
			t.pause()
			text.WriteString(piece)
			fmt.Fprint(c.Out, Visible(piece))
		}
	}
	if text.Len() > 0 && !strings.HasSuffix(text.String(), "\n") {
		fmt.Fprintln(c.Out)
	}
	return text.String(), nil
}

// progress is how a call gets on, as a chunk tells it.
type progress struct {
	Tool            string
	Progress, Total float64
	Message         string
}

// readChunk returns the text of a chunk, or the progress that it tells of.
func readChunk(data []byte) (string, *progress, error) {
	var chunk struct {
		Error   json.RawMessage
		Choices []struct {
			Delta struct{ Content, Refusal string }
		}
		Dragoman struct{ Progress *progress }
	}
	if err := json.Unmarshal(data, &chunk); err != nil {
		return "", nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(chunk.Error) > 0 {
		return "", nil, apiError(data, 0)
	}
	if len(chunk.Choices) == 0 {
		return "", nil, nil
	}
	return chunk.Choices[0].Delta.Content + chunk.Choices[0].Delta.Refusal, chunk.Dragoman.Progress, nil
}

func apiError(document []byte, status int) error {
	var e struct {
		Error struct{ Message, Code, ID string }
	}
	if json.Unmarshal(document, &e) != nil || e.Error.Message == "" {
		return fmt.Errorf("the model's API answered with status %d", status)
	}
	if e.Error.ID != "" {
		return fmt.Errorf("%s (%s)", e.Error.Message, e.Error.ID)
	}
	return errors.New(e.Error.Message)
}

// pipeResponse is a response that is read while it is written.
type pipeResponse struct {
	w      *io.PipeWriter
	mu     sync.Mutex
	header http.Header
	status int
}

func (p *pipeResponse) Header() http.Header { return p.header }

func (p *pipeResponse) WriteHeader(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == 0 {
		p.status = status
	}
}

func (p *pipeResponse) code() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

func (p *pipeResponse) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.w.Write(b)
}

// Flush does nothing: a pipe holds nothing back.
func (p *pipeResponse) Flush() {}
