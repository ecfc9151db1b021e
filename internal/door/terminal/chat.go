package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A Chat is a conversation of a person with a model.
type Chat struct {
	// Model is the name of the model.
	Model string
	// Open opens a session, for each turn anew.
	Open func(context.Context, session.Want) (*session.Session, error)
	// Models returns the names of the models there are; nil where nobody knows.
	Models func(context.Context) []string
	// In is where messages are typed, and Questions where those of servers are
	// answered.
	In, Questions Input
	// Out is where answers go, and Trace everything else.
	Out, Trace *Screen
	// Quiet leaves the trace out.
	Quiet bool
	// Attended says that somebody is there to answer questions.
	Attended bool
	// Approve says before which calls that somebody is asked.
	Approve Approve

	talk     *chat.Talk
	offers   model.Offers
	system   string
	missing  string   // the servers that were said to be missing
	left     []string // the tools that were said to be left out
	withheld string   // why tools were said to be withheld
}

// ErrAnswer means that there was no answer; the person has been told why.
var ErrAnswer = errors.New("no answer")

// Once sends one message and prints the answer.
func (c *Chat) Once(ctx context.Context, message string) error {
	interrupts := listen()
	defer signal.Stop(interrupts)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer after(interrupts, cancel)()
	return c.turn(ctx, message)
}

// Interactive reads messages until the input ends. Ctrl-C ends a turn; at the prompt
// it empties the line, and at an empty one it leaves when pressed twice.
func (c *Chat) Interactive(ctx context.Context) error {
	if !c.Quiet {
		c.Trace.Printf("Talking to %s. %s\n", c.Trace.Bold(Visible(c.Model)), c.Trace.Faint("/help says what else there is."))
	}
	interrupts := listen()
	defer signal.Stop(interrupts)
	for {
		line, err := c.read(ctx, interrupts)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, ErrInterrupted), ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		turn, cancel := context.WithCancel(ctx)
		stop := after(interrupts, cancel)
		leave, err := c.line(turn, line)
		stop()
		cancel()
		if leave || err != nil && !errors.Is(err, ErrAnswer) {
			return err
		}
	}
}

// read reads what is typed next. An [Editor] knows of Ctrl-C itself; elsewhere it is
// a signal, and ends the chat.
func (c *Chat) read(ctx context.Context, interrupts <-chan os.Signal) (string, error) {
	prompt, cancel := context.WithCancel(ctx)
	defer cancel()
	defer after(interrupts, cancel)()
	line, err := c.In.Read(prompt, c.Trace.style(cyan, "›")+" ")
	if prompt.Err() != nil && ctx.Err() == nil {
		err = ErrInterrupted
	}
	return line, err
}

// line does what a line says: a command, or a message to the model.
func (c *Chat) line(ctx context.Context, line string) (leave bool, err error) {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		return false, nil
	case isCommand(line):
		return c.command(ctx, line)
	}
	return false, c.turn(ctx, line)
}

// listen returns the interrupts from now on.
func listen() chan os.Signal {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	return interrupts
}

// after calls f at the next interrupt, unless stop is called before. At a second one
// before that, what is left to do is hurried: from then on an interrupt ends the
// program, as it would have without us.
func after(interrupts <-chan os.Signal, f func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-interrupts:
				if n > 0 {
					signal.Reset(os.Interrupt)
					return
				}
				f()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
