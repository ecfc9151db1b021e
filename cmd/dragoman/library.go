package main

import (
	"bytes"
	"log"
	"log/slog"

	"github.com/dragoman-mcp/dragoman/internal/text/clip"
)

// maxLibraryLine is how much of a line of a library is logged, in bytes: peers can choose
// what stands in it.
const maxLibraryLine = 500

// A libraryLog has what libraries log by themselves, such as Go's HTTP client about peers
// that answer unasked, in the form of our own log.
type libraryLog struct{ log *slog.Logger }

// hearLibraries lets what libraries log go to our log, until the returned function is
// called.
func hearLibraries(to *slog.Logger) (stop func()) {
	writer, flags := log.Writer(), log.Flags()
	log.SetFlags(0)
	log.SetOutput(libraryLog{to})
	return func() {
		log.SetOutput(writer)
		log.SetFlags(flags)
	}
}

// Write logs a line.
func (l libraryLog) Write(line []byte) (int, error) {
	l.log.Warn("a library says", "line", clip.Text(string(bytes.TrimSpace(line)), maxLibraryLine))
	return len(line), nil
}
