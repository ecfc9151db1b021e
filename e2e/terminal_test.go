//go:build !windows

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// A terminal is a program at a pseudo terminal, and a person before it.
type terminal struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	home string

	mu   sync.Mutex
	out  bytes.Buffer // all of it
	seen int          // of what was on the screen, without spaces
	more chan struct{}
	done chan struct{}
}

// sitDown starts dragoman at a pseudo terminal of 100 columns.
func sitDown(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command(binary(t), args...)
	cmd.Dir, cmd.Env = home, append(append(cleanEnv(t), "HOME="+home, terminalKind), env...)
	term := sitBefore(t, cmd)
	term.home = home
	return term
}

// terminalKind is what programs are told of it.
const terminalKind = "TERM=xterm-256color"

// sitBefore starts a program at one.
func sitBefore(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	term := &terminal{t: t, cmd: cmd, more: make(chan struct{}, 1), done: make(chan struct{})}
	f, err := pty.StartWithSize(term.cmd, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		missing(t, "a pseudo terminal: %v", err)
	}
	term.pty = f
	go term.read()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill()
		_ = f.Close()
		<-term.done
	})
	return term
}

func (s *terminal) read() {
	defer close(s.done)
	b := make([]byte, 4096)
	for {
		n, err := s.pty.Read(b)
		s.mu.Lock()
		s.out.Write(b[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// visible is text as one sees it, without spaces: a screen may be drawn by moving the
// cursor over them.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, ansi.Strip(text))
}

// sees waits until a text appears behind what was seen before.
func (s *terminal) sees(text string) {
	s.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		all := visible(s.out.String())
		at := strings.Index(all[min(s.seen, len(all)):], visible(text))
		if at >= 0 {
			s.seen += at + len(visible(text))
		}
		s.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-s.more:
		case <-deadline.C:
			s.t.Fatalf("nobody sees %q in\n%s", text, s.screen())
		case <-s.done:
			if s.mu.Lock(); !strings.Contains(visible(s.out.String())[s.seen:], visible(text)) {
				s.mu.Unlock()
				s.t.Fatalf("it has ended, and nobody saw %q in\n%s", text, s.screen())
			}
			s.mu.Unlock()
		}
	}
}

func (s *terminal) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ansi.Strip(s.out.String())
}

// types is what the person presses.
func (s *terminal) types(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.pty, keys); err != nil {
		s.t.Fatal(err)
	}
}

const (
	enter  = "\r"
	escape = "\x1b"
	ctrlC  = "\x03"
	ctrlU  = "\x15"
)

// skips takes all that is on the screen as seen.
func (s *terminal) skips() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = len(visible(s.out.String()))
}

// ends waits for the program's end and its exit code.
func (s *terminal) ends(code int) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		s.t.Fatalf("it does not end:\n%s", s.screen())
	}
	err := s.cmd.Wait()
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	if got != code {
		s.t.Errorf("exit code %d, want %d:\n%s", got, code, s.screen())
	}
}

// Questions that servers ask in these tests.
const (
	askForm = `{"message":"Which table?","requestedSchema":{"type":"object","properties":{
		"name":{"type":"string","title":"Your name"},
		"seats":{"type":"integer","minimum":1,"maximum":8,"default":2},
		"outside":{"type":"boolean"}},"required":["name","outside"]}}`
	askURL = `{"mode":"url","message":"Log in first","url":"https://login.example/x?y=1","elicitationId":"e1"}`
)

// asking starts a server that asks, and returns the arguments that name it: a legacy
// one over stdio, or a modern one over HTTP.
func asking(t *testing.T, era fakemcp.Era, question string) []string {
	t.Helper()
	cfg := fakemcp.Config{Era: era, Tools: []fakemcp.Tool{{Name: "book", Do: fakemcp.Ask, Question: json.RawMessage(question)}}}
	if era == fakemcp.ModernOnly {
		server := httptest.NewServer(fakemcp.New(cfg))
		t.Cleanup(server.Close)
		return []string{"--url", server.URL}
	}
	path, args, env := fakemcp.Command(cfg)
	all := []string{}
	for _, v := range env {
		all = append(all, "--env", v)
	}
	return append(append(all, "--", path), args...)
}

// A server asks in the middle of a call; the person at the terminal answers, in each
// way that there is, and the server gets the answer.
func TestElicitation(t *testing.T) {
	form := func(s *terminal) {
		s.sees("asks: Which table?")
		s.sees("Your name:")
		s.types("Ann Müller" + enter)
		s.sees("seats (integer, default 2):")
		s.types("12" + enter)
		s.sees("expected")
		s.sees("seats (integer, default 2):")
		s.types(enter)
		s.sees("outside (y or n):")
		s.types("y" + enter)
	}
	tests := []struct {
		name, question string
		person         func(*terminal)
		reply          string
	}{
		{"accept", askForm, form, `{"action":"accept","content":{"name":"Ann Müller","seats":2,"outside":true}}`},
		{"decline", askForm, func(s *terminal) {
			s.sees("Your name:")
			s.types("/decline" + enter)
		}, `{"action":"decline"}`},
		{"cancel", askForm, func(s *terminal) {
			s.sees("Your name:")
			s.types(ctrlC)
		}, `{"action":"cancel"}`},
		{"visit", askURL, func(s *terminal) {
			s.sees("asks: Log in first")
			s.sees("visit login.example")
			s.sees("https://login.example/x?y=1")
			s.sees("[y/N]")
			s.types("y" + enter)
		}, `{"action":"accept"}`},
		{"do not visit", askURL, func(s *terminal) {
			s.sees("[y/N]")
			s.types(enter)
		}, `{"action":"decline"}`},
	}
	for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		for _, tt := range tests {
			t.Run(string(era)+"/"+tt.name, func(t *testing.T) {
				server := asking(t, era, tt.question)
				s := sitDown(t, nil, append([]string{"call", "book"}, server...)...)
				tt.person(s)
				s.sees(`"data": ` + tt.reply)
				s.ends(0)
			})
		}
	}
}

// The same in a conversation, where a turn goes on after the answer.
func TestElicitationInChat(t *testing.T) {
	for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		t.Run(string(era), func(t *testing.T) {
			server := asking(t, era, askForm)
			s := sitDown(t, nil, append([]string{"chat"}, server...)...)
			s.sees("Talking to rehearsal")
			s.sees("›")
			s.types("CALL book {}" + enter)
			s.sees("Your name:")
			s.types("Ann" + enter)
			s.sees("default 2):")
			s.types("3" + enter)
			s.sees("outside (y or n):")
			s.types("n" + enter)
			s.sees("execute")
			s.sees("✓")
			s.sees("Ann")
			s.sees("summarise")
			s.sees("›")

			s.types("CALL book {}" + enter)
			s.sees("Your name:")
			s.types(ctrlC) // gives the question up, not the turn
			s.sees("✓")
			s.sees("cancel")
			s.sees("summarise")
			s.sees("›")
			s.types("/quit" + enter)
			s.ends(0)
		})
	}
}

// The line editor: history, completion, pastes, and Ctrl-C as people know it.
func TestLineEditor(t *testing.T) {
	s := sitDown(t, nil, "chat")
	s.sees("›")
	s.types("first of all" + enter)
	s.sees("not a language model")
	s.sees("›")

	s.types("\x1b[A" + enter) // up: the last message again
	s.sees("first of all")
	s.sees("not a language model")
	s.sees("›")

	s.types("/he\t" + enter)
	s.sees("/save")
	s.sees("›")
	s.types("get_wea\t")
	s.sees("get_weather")
	s.types(ctrlC) // empties the line
	s.types("/tools weather" + enter)
	s.sees("get_weather")
	s.sees("tools")
	s.sees("›")

	long := "SAY " + strings.Repeat("0123456789", 3000)
	s.types("\x1b[200~SAY one\nSAY " + long[4:] + "\nCALL get_weather {\"city\":\"Oslo\"}\nSAY three\x1b[201~" + enter)
	s.sees("summarise")
	s.sees("›")
	s.types("/save talk.json" + enter)
	s.sees("messages are in")
	s.sees("›")

	s.types(ctrlC)
	s.sees("once more leaves")
	s.types(ctrlC)
	s.ends(0)

	saved, err := os.ReadFile(filepath.Join(s.home, "talk.json"))
	if err != nil || !bytes.Contains(saved, []byte(long[4:])) || !bytes.Contains(saved, []byte(`SAY one\nSAY `)) {
		t.Errorf("the paste did not arrive whole: %v, %d bytes", err, len(saved))
	}
	history := filepath.Join(s.home, ".local", "state", "dragoman", "history")
	info, err := os.Stat(history)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("history: %v, %v", info, err)
	}
}

// Ctrl-C in the middle of an answer ends the turn and nothing else.
func TestInterrupt(t *testing.T) {
	s := sitDown(t, nil, "chat", "-m", "rehearsal:slow-stream")
	s.sees("›")
	s.types("SAY " + strings.Repeat("word ", 300) + enter)
	s.sees("decide") // what goes on is shown
	s.sees("word word")
	s.types(ctrlC)
	s.sees("cancelled")
	s.sees("›")
	s.types("/quit" + enter)
	s.ends(0)
}

// A tool that says it is destructive waits for a yes.
func TestApproval(t *testing.T) {
	ask := func(flags ...string) *terminal {
		return sitDown(t, nil, append([]string{"chat", "CALL delete_file {\"path\":\"/no/such\"}"}, flags...)...)
	}
	s := ask()
	s.sees("approve?")
	s.sees("delete_file")
	s.sees("Run it? [y/N]")
	s.types("n" + enter)
	s.sees("denied")
	s.ends(0)

	s = ask("--yes")
	s.sees("execute")
	s.ends(0)
	if strings.Contains(s.screen(), "approve?") {
		t.Errorf("--yes asks:\n%s", s.screen())
	}
}

// Markdown is rendered, and what a model writes cannot take the terminal over.
func TestMarkdown(t *testing.T) {
	s := sitDown(t, []string{"NO_COLOR="}, "chat", "SAY # A heading\nSAY Some **bold** text\x1b]0;gotcha\x07.")
	s.sees("A heading")
	s.sees("Some bold text")
	s.ends(0)
	if raw := s.out.String(); strings.Contains(raw, "\x1b]0;") || !strings.Contains(raw, "\x1b[1mbold\x1b[0m") {
		t.Errorf("the screen got %q", raw)
	}
}

// A terminal that cannot place its cursor is read by lines, questions included.
func TestDumbTerminal(t *testing.T) {
	s := sitDown(t, []string{"TERM=dumb"}, append([]string{"chat"}, asking(t, fakemcp.ModernOnly, askForm)...)...)
	s.sees("›")
	s.types("CALL book {}\n")
	s.sees("Your name:")
	s.types("/cancel\n")
	s.sees("summarise")
	s.sees("›")
	s.types("hello\n")
	s.sees("not a language model")
	s.sees("›")
	s.types(ctrlC)
	s.ends(0)
	if strings.Contains(s.out.String(), "\x1b") {
		t.Errorf("it got %q", s.out.String())
	}
}
