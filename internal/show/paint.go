package show

import (
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// A Paint styles words in a text. The screen of a terminal is one.
type Paint interface {
	Bold(text string) string
	Faint(text string) string
	Good(text string) string
	Bad(text string) string
	Warn(text string) string
}

// A Line is something that is said under a word.
type Line struct {
	Word string `json:"word"`
	Text string `json:"text"`
}

// Many says how many there are of something, such as "2 tools".
func Many(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// spelled is a text on one line of at most n characters, with those spelled out that
// show nothing.
func spelled(text string, n int) string {
	return invisible.Line(canonical.Spelled(strings.Join(strings.Fields(text), " ")), n)
}

// joined is a word and what there is to be said about it.
func joined(word, more string) string {
	if word == "" || more == "" {
		return word + more
	}
	return word + ": " + more
}

// known is somebody's ID, with the name that belonged to it.
func known(id, name string) string {
	if id = invisible.Line(id, 40); name != "" {
		id += " (" + invisible.Line(name, 40) + ")"
	}
	return id
}

// at is a time in the zone of this process.
func at(t time.Time) string { return t.Local().Format(time.DateTime) }
