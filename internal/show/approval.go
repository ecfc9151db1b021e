package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// An Approval is a call that waits for a person, or about which one has decided.
type Approval struct {
	ID    string         `json:"id"`
	State approval.State `json:"state"`
	// Call names the server and the tool; Digest is that of the arguments, which an answer
	// brings back to be for what was shown.
	Call   string         `json:"call"`
	Digest canonical.Hash `json:"digest"`
	Asked  time.Time      `json:"asked"`
	// Expires is when the question, or the approval, is void.
	Expires time.Time `json:"expires"`
	// About is who asks, by which rule, and what the server says of the tool.
	About []Line `json:"about"`
	// Arguments are all of them, laid out as JSON in lines. What shows nothing is escaped
	// as JSON escapes it, so that they stay the same value.
	Arguments string `json:"arguments"`
	// Since is who answered, and which call used the answer.
	Since []Line `json:"since,omitempty"`
}

// ApprovalOf returns an approval of the inbox.
func ApprovalOf(a *approval.Approval) Approval {
	who := a.Caller
	if a.CallerName != "" && a.CallerName != a.Caller {
		who += " (" + a.CallerName + ")"
	}
	return Approval{
		ID: a.ID, State: a.State, Call: spelled(a.Server+" / "+a.Tool, 200), Digest: a.Digest, Asked: a.Asked, Expires: a.Expires,
		About: said(
			Line{"caller", who},
			Line{"may", a.Effect},
			Line{"rule", joined(a.Rule, a.Reason)},
			Line{"approvers", strings.Join(a.Approvers, ", ")},
			Line{"title", a.Title},
			Line{"says", a.Description},
		),
		Arguments: invisible.Spell(canonical.Readable(indented(a.Arguments))),
		Since:     said(Line{"answered", joined(a.By, a.Why)}, Line{"used by", a.UsedBy}),
	}
}

// said returns the lines that say something, made harmless.
func said(lines ...Line) (kept []Line) {
	for _, l := range lines {
		if l.Text != "" {
			kept = append(kept, Line{l.Word, spelled(l.Text, 400)})
		}
	}
	return kept
}

// indented lays JSON out without changing a value in it.
func indented(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}

// Text returns all that is asked, in lines.
func (a *Approval) Text(p Paint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  asked %s\n", p.Bold(a.ID), p.Bold(a.Call), at(a.Asked))
	line := func(l Line) {
		fmt.Fprintf(&b, "  %-10s %s\n", l.Word, strings.ReplaceAll(l.Text, "\n", "\n             "))
	}
	for _, l := range a.About {
		line(l)
	}
	line(Line{"arguments", a.Arguments})
	for _, l := range a.Since {
		line(l)
	}
	return b.String()
}

// Verdict says what became of the question.
func (a *Approval) Verdict(p Paint) string {
	until := a.Expires.Local().Format(time.TimeOnly)
	switch a.State {
	case approval.Approved:
		return p.Good("approved") + ": the call may run once, until " + until
	case approval.Denied:
		return p.Bad("denied")
	case approval.Pending:
		return "pending until " + until
	}
	return string(a.State)
}
