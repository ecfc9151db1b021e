package terminal

import (
	"errors"
	"io"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// keys are what a person presses, by their names, with texts between them.
func keys(m *editing, pressed ...string) *editing {
	named := map[string]tea.Key{
		"enter": {Code: tea.KeyEnter}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "tab": {Code: tea.KeyTab},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+j": {Code: 'j', Mod: tea.ModCtrl},
		"left": {Code: tea.KeyLeft}, "home": {Code: tea.KeyHome},
	}
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: 60, Height: 20})
	for _, p := range pressed {
		if key, ok := named[p]; ok {
			m.Update(tea.KeyPressMsg(key))
			continue
		}
		if text, ok := strings.CutPrefix(p, "paste:"); ok {
			m.Update(tea.PasteMsg{Content: text})
			continue
		}
		for _, r := range p {
			m.Update(tea.KeyPressMsg(tea.Key{Code: r, Text: string(r)}))
		}
		m.View()
	}
	return m
}

func TestEditing(t *testing.T) {
	past := []string{"first", "second\nline"}
	complete := func(text string) (c []string) {
		for _, name := range []string{"get_time", "get_weather", "put"} {
			if strings.HasPrefix(name, text[strings.LastIndexByte(text, ' ')+1:]) {
				c = append(c, name)
			}
		}
		return c
	}
	long := strings.Repeat("long line\n", 20_000)
	for _, tt := range []struct {
		name    string
		pressed []string
		want    string
	}{
		{"a line", []string{"hello", "enter"}, "hello"},
		{"edited", []string{"wrld", "home", "hello ", "enter"}, "hello wrld"},
		{"wide", []string{"北京", "left", "!", "enter"}, "北!京"},
		{"two lines", []string{"a", "ctrl+j", "b", "enter"}, "a\nb"},
		{"a paste", []string{"x ", "paste:one\r\ntwo\rthree", "enter"}, "x one\ntwo\nthree"},
		{"a long paste", []string{"x ", "paste:" + long, " y", "enter"}, "x " + long + " y"},
		{"two long pastes", []string{"paste:a" + long, "paste:b" + long, "enter"}, "a" + long + "b" + long},
		{"the last one", []string{"up", "enter"}, "second\nline"},
		{"in the last one", []string{"up", "up", "enter"}, "second\nline"},
		{"one before", []string{"up", "up", "up", "up", "enter"}, "first"},
		{"and back", []string{"draft", "up", "up", "up", "up", "down", "down", "down", "enter"}, "draft"},
		{"completed", []string{"call get_w", "tab", "x", "enter"}, "call get_weather x"},
		{"completed in part", []string{"g", "tab", "enter"}, "get_"},
		{"nothing to complete", []string{"q", "tab", "enter"}, "q"},
		{"emptied", []string{"wrong", "ctrl+c", "right", "enter"}, "right"},
		{"keys behind the end", []string{"a", "enter", "b", "ctrl+c"}, "a"},
		{"no end of the input", []string{"a", "ctrl+d", "enter"}, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := keys(newEditing("› ", past, complete, true), tt.pressed...)
			if got := m.text(); got != tt.want || !m.done || m.err != nil {
				t.Errorf("got %.200q (%v, %v), want %.200q", got, m.done, m.err, tt.want)
			}
		})
	}
}

func TestEditingEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		twice   bool
		pressed []string
		want    error
	}{
		{"no more input", true, []string{"ctrl+d"}, io.EOF},
		{"Ctrl-C twice", true, []string{"ctrl+c", "ctrl+c"}, io.EOF},
		{"Ctrl-C once", true, []string{"ctrl+c"}, nil},
		{"Ctrl-C, a word, Ctrl-C and again", true, []string{"ctrl+c", "word", "ctrl+c", "ctrl+c"}, nil},
		{"a question", false, []string{"half an answer", "ctrl+c"}, ErrInterrupted},
	} {
		m := keys(newEditing("› ", nil, nil, tt.twice), tt.pressed...)
		if !errors.Is(m.err, tt.want) || m.done != (tt.want != nil) {
			t.Errorf("%s: %v, %v", tt.name, m.done, m.err)
		}
	}
}

// What is pasted cannot take the terminal over, and what stays on the screen is
// bounded.
func TestEditingShows(t *testing.T) {
	m := keys(newEditing("› ", nil, nil, false), "paste:a\x1b]0;x\x07"+strings.Repeat("\nline", 40), "enter")
	shown := m.View().Content
	if strings.Contains(shown, "\x1b]") || !strings.Contains(shown, "more lines") || strings.Count(shown, "\n") > editorRows+1 {
		t.Errorf("it shows %q", shown)
	}
}
