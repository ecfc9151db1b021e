package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// Bounds of an editor.
const (
	editorRows = 12       // of text that are seen at a time
	foldLines  = 500      // a paste of more lines is folded,
	foldBytes  = 32 << 10 // and one of more bytes
)

// editing is one prompt of an [Editor].
type editing struct {
	area   textarea.Model
	prompt string
	past   []string
	at     int    // in past; len(past) is what is being typed
	draft  string // of it
	pastes []fold

	complete func(string) []string
	twice    bool

	hint  string // the line below
	armed bool   // the next Ctrl-C leaves
	done  bool
	err   error
}

// A fold is a paste that is too long to be seen: a short text stands for it.
type fold struct{ mark, text string }

func newEditing(prompt string, past []string, complete func(string) []string, twice bool) *editing {
	area := textarea.New()
	area.ShowLineNumbers = false
	area.CharLimit, area.MaxHeight, area.MaxContentHeight = 0, editorRows, 1<<20
	area.DynamicHeight, area.MinHeight = true, 1
	area.EndOfBufferCharacter = ' '
	area.SetStyles(textarea.Styles{}) // the terminal's own colours
	area.SetVirtualCursor(false)
	area.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	area.KeyMap.Paste.SetEnabled(false) // the terminal pastes
	width := lipgloss.Width(prompt)
	area.SetPromptFunc(width, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return prompt
		}
		return strings.Repeat(" ", width)
	})
	area.SetWidth(80)
	return &editing{area: area, prompt: prompt, past: past, at: len(past), complete: complete, twice: twice}
}

// Init implements tea.Model.
func (m *editing) Init() tea.Cmd { return m.area.Focus() }

// Update implements tea.Model.
func (m *editing) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if m.done {
		return m, nil // what comes behind the end is no part of it
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.area.SetWidth(max(msg.Width, 10))
		return m, nil
	case tea.PasteMsg:
		m.paste(msg.Content)
		return m, nil
	case tea.KeyPressMsg:
		if done, ok := m.press(msg.String()); ok {
			if done {
				m.done = true
				return m, tea.Quit
			}
			return m, nil
		}
		m.hint, m.armed = "", false
	}
	var cmd tea.Cmd
	m.area, cmd = m.area.Update(msg)
	return m, cmd
}

// press handles the keys that are ours; ok is false for others. done ends the
// prompt.
func (m *editing) press(key string) (done, ok bool) {
	switch key {
	case "enter":
		return true, true
	case "ctrl+c":
		return m.interrupt(), true
	case "ctrl+d":
		if m.area.Length() > 0 {
			return false, false
		}
		m.err = io.EOF
		return true, true
	case "tab":
		m.extend()
		return false, true
	case "up":
		if m.at == 0 || m.area.Line() > 0 || m.area.LineInfo().RowOffset > 0 {
			return false, m.at == 0 && m.area.Line() == 0
		}
		m.recall(m.at - 1)
		return false, true
	case "down":
		if m.at == len(m.past) || m.area.Line() < m.area.LineCount()-1 {
			return false, false
		}
		m.recall(m.at + 1)
		return false, true
	}
	return false, false
}

// interrupt is Ctrl-C: it empties the line, and where there is nothing to empty,
// leaves.
func (m *editing) interrupt() (done bool) {
	switch {
	case m.twice && m.area.Length() > 0:
		m.area.Reset()
		m.pastes, m.at = nil, len(m.past)
		return false
	case m.twice && !m.armed:
		m.armed, m.hint = true, "Ctrl-C once more leaves."
		return false
	case m.twice:
		m.err = io.EOF
	default:
		m.err = ErrInterrupted
	}
	return true
}

// recall shows an earlier text.
func (m *editing) recall(at int) {
	if m.at == len(m.past) {
		m.draft = m.text()
	}
	text := m.draft
	if m.at = at; at < len(m.past) {
		text = m.past[at]
	}
	m.area.Reset()
	m.pastes = nil
	m.paste(text)
}

// paste puts in a text of any length. One that is too long to be edited is folded.
func (m *editing) paste(text string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	lines := strings.Count(text, "\n") + 1
	if lines > foldLines || len(text) > foldBytes {
		f := fold{mark: fmt.Sprintf("[paste %d: %d lines, %d bytes]", len(m.pastes)+1, lines, len(text)), text: text}
		m.pastes = append(m.pastes, f)
		text = f.mark
	}
	m.area.InsertString(text)
}

// text returns what was typed, with all pastes in their place.
func (m *editing) text() string {
	text := m.area.Value()
	for _, f := range m.pastes {
		text = strings.Replace(text, f.mark, f.text, 1)
	}
	return text
}

// extend completes the last word as far as all candidates agree, and shows them.
func (m *editing) extend() {
	if m.complete == nil {
		return
	}
	text := m.area.Value()
	word := text[strings.LastIndexAny(text, " \n\t")+1:]
	candidates := m.complete(text)
	if len(candidates) == 0 {
		m.hint = ""
		return
	}
	shared := candidates[0]
	for _, c := range candidates[1:] {
		for !strings.HasPrefix(c, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	if len(candidates) == 1 {
		shared += " "
	}
	if len(shared) > len(word) && strings.HasPrefix(shared, word) {
		m.area.MoveToEnd()
		m.area.InsertString(shared[len(word):])
	}
	m.hint = ""
	if len(candidates) > 1 {
		m.hint = strings.Join(candidates[:min(len(candidates), 12)], "  ")
		if more := len(candidates) - 12; more > 0 {
			m.hint += fmt.Sprintf("  and %d more", more)
		}
	}
}

// View implements tea.Model.
func (m *editing) View() tea.View {
	if m.done {
		return tea.NewView(m.settled() + "\n")
	}
	text := m.area.View()
	if m.hint != "" {
		text += "\n" + lipgloss.NewStyle().Faint(true).MaxWidth(m.area.Width()).Render(Visible(m.hint))
	}
	v := tea.NewView(text)
	v.Cursor = m.area.Cursor()
	return v
}

// settled is what stays on the screen.
func (m *editing) settled() string {
	lines := strings.Split(Visible(m.area.Value()), "\n")
	if more := len(lines) - editorRows; more > 0 {
		lines = append(slices.Clone(lines[:editorRows]), fmt.Sprintf("… %d more lines", more))
	}
	return m.prompt + strings.Join(lines, "\n"+strings.Repeat(" ", lipgloss.Width(m.prompt)))
}
