package main

import (
	"path/filepath"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/commandline"
)

// label makes a label for a server from its command: the name of the package or
// program that it starts.
func label(command []string) string {
	s := commandline.Read(command[0], command[1:])
	name := s.Program
	if names := s.Names(); len(names) > 0 {
		name = names[len(names)-1]
	}
	// Of a path, the last part that says something.
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	for i := len(parts) - 1; i >= 0; i-- {
		part, _, _ := strings.Cut(parts[i], "@")
		part = strings.TrimSuffix(part, filepath.Ext(part))
		var b strings.Builder
		for _, r := range part {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' && b.Len() > 0 {
				b.WriteRune(r)
			}
		}
		if label := b.String(); !wrappers[label] && servers.CheckLabel(label) == nil {
			return label
		}
	}
	return "server"
}

// wrappers are names of folders and files that say nothing about what is in them.
var wrappers = map[string]bool{
	"index": true, "main": true, "server": true, "cli": true, "dist": true, "build": true,
	"src": true, "bin": true, "lib": true, "out": true, "cmd": true,
}
