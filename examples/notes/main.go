// Notes is an MCP server for the text files of one folder: list, read, write and
// delete them. It shows how to touch files safely, how to state what a tool does
// to the world, and how to offer the same things as resources.
//
//	go run ./examples/notes ~/notes
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

const (
	maxNote  = 256 << 10 // bytes of one note
	maxNotes = 10_000
)

func main() {
	line := toolkit.Flags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: notes [flags] FOLDER")
		os.Exit(2)
	}
	folder, err := toolkit.OpenFolder(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "notes:", err)
		os.Exit(2)
	}
	defer folder.Close()
	line.Main(newServer(folder))
}

type (
	name struct {
		Path string `json:"path" desc:"Path of the note, relative to the folder" min:"1" max:"500"`
	}
	draft struct {
		name
		Text    string `json:"text" desc:"The whole text"`
		Replace bool   `json:"replace" desc:"Whether an existing note may be replaced" default:"false"`
	}
	note struct {
		Path string `json:"path" md:"name"`
		Text string `json:"text"`
	}
	done struct {
		Path string `json:"path" desc:"The note that was changed"`
	}
	filter struct {
		Contains string `json:"contains,omitempty" desc:"Part of the path, in any case"`
	}
)

func newServer(folder *toolkit.Folder) *toolkit.Server {
	s := toolkit.NewServer(toolkit.Options{
		Service: "notes", Title: "Notes", Version: "1.0.0",
		Instructions: "Text notes in one folder. List them before you guess a path.",
	})
	toolkit.AddList(s, toolkit.Tool{
		Name: "notes_list_files", Title: "List notes",
		Description: "Lists the paths of notes in alphabetical order, optionally those that contain some text in their path.",
		Hints:       toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
		Examples:    []toolkit.Example{{Ask: "Which notes are about travel?", Arguments: `{"contains":"travel"}`}},
	}, func(_ context.Context, f filter, p toolkit.Page) (toolkit.Listing[string], error) {
		names, _, err := folder.Files(maxNotes)
		if err != nil {
			return toolkit.Listing[string]{}, err
		}
		var found []string
		for _, n := range names {
			if strings.Contains(strings.ToLower(n), strings.ToLower(f.Contains)) {
				found = append(found, n)
			}
		}
		return toolkit.ListOf(found, p), nil
	})
	toolkit.Add(s, toolkit.Tool{
		Name: "notes_read_file", Title: "Read a note",
		Description: "Returns the text of one note.",
		Hints:       toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
		Examples:    []toolkit.Example{{Ask: "Read my shopping list", Arguments: `{"path":"lists/shopping.md"}`}},
	}, func(_ context.Context, n name) (note, error) {
		text, err := read(folder, n.Path)
		return note{n.Path, text}, err
	})
	toolkit.Add(s, toolkit.Tool{
		Name: "notes_write_file", Title: "Write a note",
		Description: "Writes a note. An existing one is replaced only with replace set to true.",
		Hints:       toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.Yes, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
		Examples:    []toolkit.Example{{Ask: "Note down: water the plants", Arguments: `{"path":"todo.md","text":"- water the plants\n"}`}},
	}, func(_ context.Context, d draft) (done, error) {
		if len(d.Text) > maxNote {
			return done{}, toolkit.Invalid("text", "at most %d bytes are kept in one note; split it.", maxNote)
		}
		return done{d.Path}, folder.WriteFile(d.Path, []byte(d.Text), d.Replace)
	})
	toolkit.Add(s, toolkit.Tool{
		Name: "notes_delete_file", Title: "Delete a note",
		Description: "Deletes one note for good. There is no undo.",
		Hints:       toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.Yes, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
		Examples:    []toolkit.Example{{Ask: "Throw the old todo list away", Arguments: `{"path":"todo.md"}`}},
	}, func(_ context.Context, n name) (done, error) {
		return done(n), folder.Remove(n.Path)
	})
	toolkit.AddTemplate(s, toolkit.Resource{
		URI: "notes://{+path}", Name: "note", Title: "A note", Description: "The text of one note.", MaxBytes: maxNote,
	}, func(_ context.Context, n name) (toolkit.Contents, error) {
		text, err := read(folder, n.Path)
		if err != nil {
			return toolkit.Contents{}, toolkit.NotFound("There is no such note.")
		}
		return toolkit.Contents{Text: text}, nil
	})
	return s
}

func read(folder *toolkit.Folder, path string) (string, error) {
	data, err := folder.ReadFile(path, maxNote)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", toolkit.Refuse("%q is not a text file.", path)
	}
	return string(data), nil
}
