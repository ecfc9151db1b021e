package dragoman

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// A List is what a toolset has to offer at a moment. It is an immutable
// snapshot.
type List struct {
	// Tools are the tools that can be called. While they stay equal, so does the
	// pointer, from list to list: what is derived from them can be kept under it.
	// Nil means none.
	Tools *Tools

	// Entries are prompts, resources, templates and skills, in a stable order.
	Entries []Entry

	// Servers are the MCP servers behind the list, sorted by label, also those
	// that have nothing to offer now. They must not be changed.
	Servers []Server

	// Changed is closed when there is a newer list; [Toolset.List] then returns
	// another *List. Nil means that the list never changes.
	Changed <-chan struct{}
}

// An Entry is something that a server offers beside its tools.
type Entry struct {
	// Kind says what it is.
	Kind EntryKind
	// Definition is the whole entry in the server's list, byte for byte.
	Definition json.RawMessage
	// Name is the public name of a prompt or skill. URI is the public URI of a
	// resource, the template of several, or that of a skill's SKILL.md.
	Name, URI string
	// Server is the label of the MCP server, and Original the name of a prompt, or
	// the URI, by which that server knows the entry.
	Server, Original string
}

// EntryKind is a kind of [Entry].
type EntryKind string

// The kinds of entries.
const (
	Prompt   EntryKind = "prompt"
	Resource EntryKind = "resource"
	Template EntryKind = "template"
	Skill    EntryKind = "skill"
)

// A Server is what is known of one MCP server, for people, for readiness and for
// doors that speak MCP themselves.
type Server struct {
	// Label is its name in our configuration.
	Label string
	// State is what it is doing, since Since.
	State ServerState
	Since time.Time
	// Problem says why the server failed; nil otherwise.
	Problem *Problem
	// Retry is when a failed server is tried again; zero for never.
	Retry time.Time
	// Era is "legacy" or "modern", and Version the version of the protocol, once
	// known.
	Era, Version string
	// Info is the raw object in which the server names itself, Capabilities the
	// raw object of what it can do, and Instructions its text on how to use it.
	// None is to be trusted.
	Info, Capabilities json.RawMessage
	Instructions       string
	// TTL is how long the server wants its lists to be taken for fresh, and
	// Public that they hold nothing of a single user (MCP 2026-07-28, "Caching").
	TTL    time.Duration
	Public bool
	// Tools and Quarantined count what the server listed.
	Tools, Quarantined int
	// Held are those of its texts that wait until somebody approves them, sorted by
	// name. None is in the list: in place of instructions that are held stand those
	// that were approved before, or none.
	Held []HeldText
	// Sandbox says what confines a server that is a process of ours: landlock/N, by
	// the version of Linux's Landlock, and seccomp behind a space where it has no
	// sockets, or else none. It is empty for other servers.
	Sandbox string
}

// A HeldText is a prompt, a skill or the instructions of a server, for people.
type HeldText struct {
	// Name is instructions, prompt: and its name, or skill: and its URI.
	Name string
	// Problem says why it waits.
	Problem *Problem
}

// ServerState is what a server is doing.
type ServerState string

// The states of a server.
const (
	// Starting: connecting for the first time.
	Starting ServerState = "starting"
	// Connected: its tools are listed and can be called.
	Connected ServerState = "connected"
	// Failed: not connected. Its last list may still stand: calls wait a moment
	// for it to come back.
	Failed ServerState = "failed"
	// Stopped: ended, and not coming back.
	Stopped ServerState = "stopped"
)

// Tools are the tools of a [List], in a stable order, and the names that models
// and people use for them. They are immutable and safe for concurrent use. A nil
// *Tools has none.
type Tools struct {
	all    []Tool
	once   sync.Once
	exact  map[string]*Tool
	folded map[string]*Tool // nil value: several tools share the folded name
}

// NewTools returns Tools of all, which it keeps and which must not change.
func NewTools(all []Tool) *Tools { return &Tools{all: all} }

// All returns the tools, quarantined ones included. The slice must not be
// changed; it is the same each time, so that &All()[i] names a tool.
func (t *Tools) All() []Tool {
	if t == nil {
		return nil
	}
	return t.all
}

// Len returns the number of tools.
func (t *Tools) Len() int { return len(t.All()) }

// Find returns the tool of that name, or nil. A name in the wrong case, or
// without the prefix that tells servers apart, is understood where only one
// tool can be meant.
func (t *Tools) Find(name string) *Tool {
	if t == nil {
		return nil
	}
	t.once.Do(t.index)
	if tool := t.exact[name]; tool != nil {
		return tool
	}
	return t.folded[strings.ToLower(name)]
}

// Exact returns the tool whose public name is exactly name, or nil.
func (t *Tools) Exact(name string) *Tool {
	if t == nil {
		return nil
	}
	t.once.Do(t.index)
	return t.exact[name]
}

// Equal reports whether t offers the same as other: the same definitions under
// the same names, with the same effects and in the same order.
func (t *Tools) Equal(other *Tools) bool {
	return t == other || slices.EqualFunc(t.All(), other.All(), func(a, b Tool) bool {
		return a.Pin == b.Pin && a.Name == b.Name && a.Declared == b.Declared && a.ClosedWorld == b.ClosedWorld &&
			(a.Quarantined == nil) == (b.Quarantined == nil) &&
			(a.Quarantined == nil || a.Quarantined.Message == b.Quarantined.Message)
	})
}

func (t *Tools) index() {
	t.exact = make(map[string]*Tool, len(t.all))
	t.folded = make(map[string]*Tool, 2*len(t.all))
	for i := range t.all {
		tool := &t.all[i]
		t.exact[tool.Name] = tool
		name := strings.ToLower(tool.Name)
		t.fold(name, tool)
		if original := strings.ToLower(tool.Original); original != name {
			t.fold(original, tool)
		}
	}
}

func (t *Tools) fold(name string, tool *Tool) {
	other, taken := t.folded[name]
	switch {
	case taken && (other == tool || tool.Quarantined != nil):
		return // nobody means a tool in quarantine who can mean another
	case other != nil && other.Quarantined == nil, taken && other == nil:
		tool = nil
	}
	t.folded[name] = tool
}
