package pin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// LockName is the usual name of the file that holds a [Lock].
const LockName = "dragoman.lock"

// The forms of the file that we read, and write: 1 has tools alone.
const (
	toolsVersion = 1
	lockVersion  = 2
)

// A Lock holds the pins of servers, as they stand in a file. It is meant to be kept
// under version control: one tool takes a few lines, and names are sorted.
type Lock struct {
	// Version is the form of the file.
	Version int `json:"version"`
	// Servers holds what is pinned of each server, by the server's label.
	Servers map[string]Server `json:"servers"`
}

// A Server is what a [Lock] holds of one server. What is nil, the lock says nothing
// of.
type Server struct {
	// Tools are the pinned tools by the names that the server gives them; Prompts and
	// Skills likewise, these by their URIs.
	Tools   map[string]Pinned `json:"tools"`
	Prompts map[string]Pinned `json:"prompts,omitzero"`
	Skills  map[string]Pinned `json:"skills,omitzero"`
	// Instructions are its instructions, be it the empty text.
	Instructions *Pinned `json:"instructions,omitempty"`
}

// Pinned is one pinned definition.
type Pinned struct {
	// Pin is the digest that decides; see [Key.Of].
	Pin Digest `json:"pin"`
	// Parts are short digests of the definition's parts, which say what changed
	// where Pin differs.
	Parts map[string]string `json:"parts"`
}

// Get returns what is pinned under a key.
func (s *Server) Get(k Key) (p Pinned, ok bool) {
	p, ok = s.of(k.Kind)[k.Name]
	return p, ok
}

// Names reports whether it is said which definitions of a kind are pinned, be it none.
func (s *Server) Names(k Kind) bool { return s.of(k) != nil }

// of returns what is pinned of a kind, by name; nil where nothing is said of it.
func (s *Server) of(k Kind) map[string]Pinned {
	switch {
	case k == Tool && s.Tools == nil:
		return map[string]Pinned{}
	case k == Tool:
		return s.Tools
	case k == Prompt:
		return s.Prompts
	case k == Skill:
		return s.Skills
	case s.Instructions != nil:
		return map[string]Pinned{"": *s.Instructions}
	}
	return nil
}

// Seen is one definition as a server lists it now.
type Seen struct {
	Key
	// Definition is its entry in the server's list.
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
	if l.Version != toolsVersion && l.Version != lockVersion {
		return nil, fmt.Errorf("reading pins: the file has version %d, and we know %d and %d", l.Version, toolsVersion, lockVersion)
	}
	if l.Version == toolsVersion && l.version() != toolsVersion {
		return nil, fmt.Errorf("reading pins: the file has version %d, and more than tools in it", l.Version)
	}
	return &l, nil
}

// Bytes returns the lock as it is written to a file: the same for the same pins.
func (l *Lock) Bytes() []byte {
	l.Version = l.version()
	if l.Servers == nil {
		l.Servers = map[string]Server{}
	}
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		panic(err) // maps of strings
	}
	return append(b, '\n')
}

// version is the lowest version that has what the lock says.
func (l *Lock) version() int {
	for _, s := range l.Servers {
		if s.Prompts != nil || s.Skills != nil || s.Instructions != nil {
			return lockVersion
		}
	}
	return toolsVersion
}

// Set pins what a server lists as it is now, in place of what was pinned of that
// server before. Kinds are those of which all is there, be it nothing; of others the
// lock says nothing, but for tools, of which it always does.
func (l *Lock) Set(server string, seen []Seen, kinds ...Kind) {
	s := Server{Tools: map[string]Pinned{}}
	for _, kind := range kinds {
		switch kind {
		case Prompt:
			s.Prompts = map[string]Pinned{}
		case Skill:
			s.Skills = map[string]Pinned{}
		case Instructions:
			none := pinned(server, Seen{Key{Kind: Instructions}, TextOf("")})
			s.Instructions = &none
		}
	}
	for _, d := range seen {
		if p := pinned(server, d); d.Kind == Instructions && s.Instructions != nil {
			s.Instructions = &p
		} else if of := s.of(d.Kind); of != nil {
			of[d.Name] = p
		}
	}
	if l.Servers == nil {
		l.Servers = map[string]Server{}
	}
	l.Servers[server] = s
}

func pinned(server string, d Seen) Pinned {
	return Pinned{Pin: d.Of(server, d.Definition), Parts: partDigests(d.Definition)}
}

// A Difference is one way in which what a server lists is not what is pinned.
type Difference struct {
	Key
	// Added and Removed report that the definition is new, or is listed no more.
	Added, Removed bool
	// Parts are the parts of the definition that changed, sorted; none where the
	// same definition is merely spelled differently.
	Parts []string
}

// Compare returns how what a server lists differs from what is pinned, sorted by kind
// and name. Kinds are those of which all is there; others are not compared, and
// neither are those of which the lock says nothing. ok is false where nothing is
// pinned of the server at all.
func (l *Lock) Compare(server string, seen []Seen, kinds ...Kind) (differences []Difference, ok bool) {
	s, ok := l.Servers[server]
	if !ok {
		return nil, false
	}
	for _, kind := range kinds {
		if !s.Names(kind) {
			continue
		}
		left := maps.Clone(s.of(kind))
		for _, d := range seen {
			if d.Kind != kind {
				continue
			}
			was, known := s.Get(d.Key)
			delete(left, d.Name)
			switch is := pinned(server, d); {
			case !known:
				differences = append(differences, Difference{Key: d.Key, Added: true})
			case was.Pin != is.Pin:
				differences = append(differences, Difference{Key: d.Key, Parts: changed(was.Parts, is.Parts)})
			}
		}
		for name := range left {
			differences = append(differences, Difference{Key: Key{kind, name}, Removed: true})
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Name, b.Name))
	})
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
