package pin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// LockName is the usual name of the file that holds a [Lock].
const LockName = "dragoman.lock"

// lockVersion is the form of the file that we write and read.
const lockVersion = 1

// A Lock holds the pins of the tools of servers, as they stand in a file. It is
// meant to be kept under version control: one tool takes a few lines, and names
// are sorted.
type Lock struct {
	// Version is the form of the file; 1.
	Version int `json:"version"`
	// Servers holds the tools of each server, by the server's label.
	Servers map[string]Server `json:"servers"`
}

// A Server is what a [Lock] holds of one server.
type Server struct {
	// Tools are the pinned tools by the names that the server gives them.
	Tools map[string]Tool `json:"tools"`
}

// A Tool is one pinned tool.
type Tool struct {
	// Pin is the digest that decides; see [Of].
	Pin Digest `json:"pin"`
	// Parts are short digests of the definition's parts, which say what changed
	// where Pin differs.
	Parts map[string]string `json:"parts"`
}

// Seen is one tool as a server lists it now.
type Seen struct {
	// Name is the server's own name of the tool, Definition its entry in
	// tools/list.
	Name       string
	Definition []byte
}

// ParseLock reads a lock. Unknown members, and members that stand twice, are refused,
// since a file that we do not understand must not approve anything.
func ParseLock(data []byte) (*Lock, error) {
	if err := rawjson.Check(bytes.TrimSpace(data)); err != nil {
		return nil, fmt.Errorf("reading pins: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var l Lock
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("reading pins: %w", err)
	}
	if d.More() {
		return nil, errors.New("reading pins: there is something after the document")
	}
	if l.Version != lockVersion {
		return nil, fmt.Errorf("reading pins: the file has version %d, and we know %d", l.Version, lockVersion)
	}
	return &l, nil
}

// Bytes returns the lock as it is written to a file: the same for the same pins.
func (l *Lock) Bytes() []byte {
	l.Version = lockVersion
	if l.Servers == nil {
		l.Servers = map[string]Server{}
	}
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		panic(err) // maps of strings
	}
	return append(b, '\n')
}

// Set pins the tools of a server as they are now, in place of what was pinned of
// that server before.
func (l *Lock) Set(server string, tools []Seen) {
	pinned := make(map[string]Tool, len(tools))
	for _, t := range tools {
		pinned[t.Name] = Tool{Pin: Of(server, t.Name, t.Definition), Parts: partDigests(t.Definition)}
	}
	if l.Servers == nil {
		l.Servers = map[string]Server{}
	}
	l.Servers[server] = Server{pinned}
}

// A Difference is one way in which a server's tools are not the pinned ones.
type Difference struct {
	// Tool is the server's own name of the tool.
	Tool string
	// Added and Removed report that the tool is new, or is listed no more.
	Added, Removed bool
	// Parts are the parts of the definition that changed, sorted; none where the
	// same definition is merely spelled differently.
	Parts []string
}

// Compare returns how the tools that a server lists differ from what is pinned,
// sorted by name. ok is false where nothing is pinned of the server at all.
func (l *Lock) Compare(server string, tools []Seen) (differences []Difference, ok bool) {
	pinned, ok := l.Servers[server]
	if !ok {
		return nil, false
	}
	left := maps.Clone(pinned.Tools)
	for _, t := range tools {
		was, known := pinned.Tools[t.Name]
		delete(left, t.Name)
		switch {
		case !known:
			differences = append(differences, Difference{Tool: t.Name, Added: true})
		case was.Pin != Of(server, t.Name, t.Definition):
			differences = append(differences, Difference{Tool: t.Name, Parts: changed(was.Parts, partDigests(t.Definition))})
		}
	}
	for name := range left {
		differences = append(differences, Difference{Tool: name, Removed: true})
	}
	slices.SortFunc(differences, func(a, b Difference) int { return bytes.Compare([]byte(a.Tool), []byte(b.Tool)) })
	return differences, true
}

func changed(was, is map[string]string) (names []string) {
	for name, digest := range is {
		if was[name] != digest {
			names = append(names, name)
		}
	}
	for name := range was {
		if _, still := is[name]; !still {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
