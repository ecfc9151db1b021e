package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// The size of the terminal. Rows are more than any picture has, so that nothing
// scrolls away.
const (
	columns = 96
	rows    = 200
)

// A terminal is a screen that commands write to, one after the other.
type terminal struct{ screen *vt.Emulator }

func newTerminal() *terminal { return &terminal{vt.NewEmulator(columns, rows)} }

// prompt shows a command as it is typed.
func (t *terminal) prompt(command string) {
	if t.screen.CursorPosition().Y > 0 {
		t.screen.WriteString("\r\n")
	}
	t.screen.WriteString("\x1b[32m$\x1b[0m \x1b[1m" + command + "\x1b[0m\r\n")
}

// run runs a command to its end.
func (t *terminal) run(command, bin, work string) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = work
	cmd.Env = []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + work,
		"TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8",
	}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return err
	}
	defer tty.Close()
	// A program may ask the terminal something; the answers are its input.
	go func() { _, _ = io.Copy(tty, t.screen) }()
	_, _ = io.Copy(t.screen, tty) // it ends with an error when the program does
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, t.screen.String())
	}
	return nil
}

// lines returns the cells of the lines down to the last that shows anything.
func (t *terminal) lines() [][]uv.Cell {
	var lines [][]uv.Cell
	last := 0
	for y := range rows {
		var line []uv.Cell
		for x := 0; x < columns; {
			cell := uv.Cell{Content: " ", Width: 1}
			if c := t.screen.CellAt(x, y); c != nil && c.Width > 0 {
				cell = *c
			}
			line = append(line, cell)
			x += cell.Width
			if strings.TrimSpace(cell.Content) != "" {
				last = y
			}
		}
		lines = append(lines, line)
	}
	return lines[:last+1]
}
