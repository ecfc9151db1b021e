package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
)

var errInterrupted = errors.New("interrupted")

// person asks the person at the terminal for an input of the configuration. It
// is the terminal itself that is read, so that standard input can be a pipe.
// Where there is none, nobody is asked.
func person() func(config.Input) (string, error) {
	in, out, err := openTerminal()
	if err != nil {
		return nil
	}
	in.Close()
	out.Close()
	return func(input config.Input) (string, error) {
		in, out, err := openTerminal()
		if err != nil {
			return "", err
		}
		defer in.Close()
		defer out.Close()
		p := &prompter{out: terminal.NewScreen(out), line: func(hidden bool) (string, error) { return readTerminal(in, hidden) }}
		return p.ask(input)
	}
}

// openTerminal opens the terminal that this process belongs to.
func openTerminal() (in, out *os.File, err error) {
	from, to := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		from, to = "CONIN$", "CONOUT$"
	}
	if in, err = os.OpenFile(from, os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if out, err = os.OpenFile(to, os.O_RDWR, 0); err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

// A prompter asks for inputs.
type prompter struct {
	out *terminal.Screen
	// line reads a line, hidden from view or not.
	line func(hidden bool) (string, error)
}

// ask asks until there is an answer, or the input ends.
func (p *prompter) ask(in config.Input) (string, error) {
	question := in.Description
	if question == "" {
		question = in.ID
	}
	for i, option := range in.Options {
		p.out.Printf("  %d  %s\n", i+1, terminal.Visible(option))
	}
	for {
		p.out.Printf("%s", p.out.Bold(terminal.OneLine(question, 200)))
		if in.Default != "" && !in.Password {
			p.out.Printf(" [%s]", terminal.OneLine(in.Default, 100))
		}
		p.out.Printf(": ")
		answer, err := p.line(in.Password)
		if in.Password || err != nil {
			p.out.Printf("\n")
		}
		if err != nil {
			return "", err
		}
		if answer == "" {
			answer = in.Default
		}
		if answer, ok := choice(in, answer); ok {
			return answer, nil
		}
		p.out.Printf("%s\n", p.out.Warn("one of the options is needed, or its number"))
	}
}

// choice resolves the number of an option; any other text is an answer where
// there are no options.
func choice(in config.Input, answer string) (string, bool) {
	if in.Type != config.PickString || slices.Contains(in.Options, answer) {
		return answer, true
	}
	n, err := strconv.Atoi(answer)
	if err != nil || n < 1 || n > len(in.Options) {
		return "", false
	}
	return in.Options[n-1], true
}

// readTerminal reads a line from a terminal, and puts the terminal back in order
// when the person interrupts.
func readTerminal(f *os.File, hidden bool) (string, error) {
	fd := int(f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		if hidden {
			text, err := term.ReadPassword(fd)
			read <- line{string(text), err}
			return
		}
		text, err := readLine(f)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return l.text, l.err
	case <-interrupts:
		_ = term.Restore(fd, before)
		return "", errInterrupted
	}
}

// maxAnswer is the longest line that is read, in bytes.
const maxAnswer = 64 << 10

// readLine reads one line and not a byte more: what follows belongs to somebody
// else.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < maxAnswer; {
		switch n, err := r.Read(one); {
		case n == 1 && one[0] == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		case n == 1:
			line = append(line, one[0])
		case err != nil && (err != io.EOF || len(line) == 0):
			return "", err
		case err == io.EOF:
			return string(line), nil
		}
	}
	return "", fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
}
