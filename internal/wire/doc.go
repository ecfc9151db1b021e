// Package wire is the room for bytes on their way: JSON, event streams, addresses,
// deadlines, repetitions. What lives here knows no tool and no caller. It imports the
// room text and the standard library.
package wire
