package terminal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/show"
	"github.com/dragoman-mcp/dragoman/lint"
)

// A Stream prints findings as they come, those of one rule under one title.
type Stream struct {
	screen *Screen
	report *lint.Report
	last   lint.Finding // of those that were printed
	any    bool
}

// NewStream returns a stream that has printed nothing yet.
func NewStream(s *Screen) *Stream { return &Stream{screen: s} }

// Print prints one finding of a report.
func (p *Stream) Print(r *lint.Report, f *lint.Finding) {
	if !p.any || p.last.Rule != f.Rule || p.last.Server != f.Server {
		p.end()
		if p.any {
			p.screen.Printf("\n")
		}
		p.screen.Printf("%s %s  %s  %s\n", p.screen.severity(f.Severity), p.screen.Bold(f.Rule), f.Title, p.screen.Faint(Visible(f.Server)))
	}
	p.screen.finding(r, f)
	p.report, p.last, p.any = r, *f, true
}

// end says what to do about the findings of the last rule.
func (p *Stream) end() {
	if p.any {
		p.screen.advice(p.report, &p.last)
	}
}

// Close prints what belongs behind all findings: how the servers fare in the whole report.
func (p *Stream) Close(r *lint.Report) {
	p.end()
	if p.any {
		p.screen.Printf("\n")
	}
	p.screen.summary(r)
}

// Findings prints the report of an audit for people: worst first, findings of one
// rule together, each with the line that it is about, and at the end the scores.
func (s *Screen) Findings(r *lint.Report) {
	p := NewStream(s)
	for i := range r.Findings {
		p.Print(r, &r.Findings[i])
	}
	p.Close(r)
}

// summary prints how the servers fare, and what does not count.
func (s *Screen) summary(r *lint.Report) {
	for _, a := range r.Servers {
		s.score(a)
	}
	if n := len(r.Suppressed); n > 0 {
		s.Printf("%s\n", s.Faint(fmt.Sprintf("%d suppressed", n)))
	}
	if n := len(r.Known); n > 0 {
		s.Printf("%s\n", s.Faint(fmt.Sprintf("%d known from the baseline", n)))
	}
	if r.Gone > 0 {
		s.Printf("%s\n", s.Faint(fmt.Sprintf("%d of the baseline gone: --write-baseline writes it again without", r.Gone)))
	}
}

func (s *Screen) severity(level lint.Severity) string {
	text := fmt.Sprintf("%-7s", level)
	switch level {
	case lint.Error:
		return s.Bad(text)
	case lint.Warning:
		return s.Warn(text)
	}
	return s.style(cyan, text)
}

// finding prints one finding, and under it the line with a caret.
func (s *Screen) finding(r *lint.Report, f *lint.Finding) {
	where := ""
	if f.Tool != "" {
		where = OneLine(f.Tool, 80) + ": "
	}
	s.Printf("  %s%s\n", s.Bold(where), OneLine(f.Message, 400))
	place := r.Place(f)
	if strings.TrimSpace(place.Text) == "" {
		return
	}
	line, caret := quoted(place.Text, place.Caret)
	number := strconv.Itoa(place.TextLine)
	s.Printf("    %s %s\n", s.Faint(number+" |"), line)
	s.Printf("    %s %s%s\n", s.Faint(strings.Repeat(" ", len(number))+" |"), strings.Repeat(" ", caret), s.Bad("^"))
}

// quoted returns a line without its indentation, cut to a readable length around
// the caret, and where the caret is in it.
func quoted(line string, caret int) (string, int) {
	const most = 100
	runes := []rune(strings.ReplaceAll(line, "\t", " "))
	at := min(max(caret-1, 0), len(runes))
	indent := 0
	for indent < at && runes[indent] == ' ' {
		indent++
	}
	runes, at = runes[indent:], at-indent
	if at > most/2 {
		runes, at = append([]rune("…"), runes[at-most/2:]...), most/2+1
	}
	if len(runes) > most {
		runes = append(runes[:most:most], '…')
	}
	// What is made visible is wider than it was; the caret counts what is shown.
	return Visible(string(runes)), len([]rune(Visible(string(runes[:at]))))
}

// advice says what to do about the findings of a rule.
func (s *Screen) advice(r *lint.Report, f *lint.Finding) {
	rule, ok := r.Rule(f.Rule)
	if !ok {
		return
	}
	s.Printf("  %s %s\n", s.Faint("do:"), rule.Advice)
	if rule.Gateway != "" {
		s.Printf("  %s %s\n", s.Faint("gateway:"), s.Faint(rule.Gateway))
	}
}

func (s *Screen) score(a *lint.Audited) {
	name := a.Server.Label
	if l := a.Server.Live; l != nil && l.Era != "" {
		name += fmt.Sprintf(" (%s, %s)", l.Version, l.Transport)
	}
	grade := s.Good
	switch {
	case a.Counts[lint.Error] > 0:
		grade = s.Bad
	case a.Counts[lint.Warning] > 0:
		grade = s.Warn
	}
	seen := fmt.Sprintf("%s, about %d tokens in every request", Many(len(a.Server.Tools), "tool"), a.Tokens)
	switch l := a.Server.Live; {
	case a.Grade == lint.Unseen:
		seen = "protected; give a token, since nothing but its authorization was looked at"
	case l != nil && l.Failure != nil:
		seen = "no connection, so nothing else was looked at"
	}
	s.Printf("%s  %s  %s, %s, %s; %s\n", s.Bold(Visible(name)), grade(fmt.Sprintf("%d/100 %s", a.Score, a.Grade)),
		Many(a.Counts[lint.Error], "error"), Many(a.Counts[lint.Warning], "warning"), Many(a.Counts[lint.Info], "info"), seen)
	for _, p := range a.Providers {
		if p.Untouched == len(a.Server.Tools) {
			continue
		}
		s.Printf("  %s\n", s.Faint(fmt.Sprintf("%-14s %d as they are, %d rewritten, %d weakened, %d narrowed, %d left out", p.Dialect, p.Untouched, p.Rewritten, p.Weakened, p.Narrowed, p.Quarantined)))
	}
}

// Rule prints what a rule is about.
func (s *Screen) Rule(r lint.Rule) {
	s.Printf("%s %s  %s\n\n", s.severity(r.Severity), s.Bold(r.ID), r.Title)
	s.Printf("why      %s\ndo       %s\n", r.Why, r.Advice)
	if r.Gateway != "" {
		s.Printf("gateway  %s\n", r.Gateway)
	}
	s.Printf("source   %s\n", r.Source)
}

// A Status is a line that says what is being done, on a screen where lines can be
// written again, and nothing elsewhere.
type Status struct{ screen *Screen }

// NewStatus returns a status that shows nothing yet.
func NewStatus(s *Screen) *Status { return &Status{s} }

// Show replaces the line.
func (s *Status) Show(text string) {
	if s.screen.Live {
		s.screen.Printf("\r\x1b[2K%s", s.screen.Faint(OneLine(text, 100)))
	}
}

// Clear removes it.
func (s *Status) Clear() {
	if s.screen.Live {
		s.screen.Printf("\r\x1b[2K")
	}
}

// Many says how many there are of something, such as "2 tools".
func Many(n int, what string) string { return show.Many(n, what) }
