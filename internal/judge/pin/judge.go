package pin

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
)

// A Judge says what of servers may be trusted.
type Judge interface {
	// Pins reports whether a server with that mode of its own is pinned.
	Pins(own Mode) bool
	// Judge returns what of a server is held, with why; nothing for what is trusted.
	Judge(ctx context.Context, s Subject, said []Said) map[Key]*Hold
	// Changed returns a channel that is closed when something else may be trusted than
	// before. Whoever judged a server before judges it again then.
	Changed() <-chan struct{}
}

// A Mode says what has to happen before a tool, or what else a server says, is trusted.
type Mode string

// The modes. The empty Mode means Auto.
const (
	// Auto is First where a store is open in any case, else Off.
	Auto Mode = "auto"
	// Off: everything is trusted as its server lists it.
	Off Mode = "off"
	// First: a server is trusted on first use, and what differs later waits.
	First Mode = "first"
	// Explicit: what somebody has approved, or a lock file has, is trusted.
	Explicit Mode = "explicit"
)

// Named reports whether the mode asks for pins by name, so that there has to be a place
// to keep them in.
func (m Mode) Named() bool { return m == First || m == Explicit }

// Or returns m, or the mode of all servers where m says nothing.
func (m Mode) Or(all Mode) Mode { return cmp.Or(m, all) }

// A Subject is what has to be known of a server that is judged.
type Subject struct {
	Label string
	// Identity tells the server from others that the label may come to mean. It is
	// kept as a digest alone.
	Identity string
	// Mode is its own; empty for that of all.
	Mode Mode
	// Own says that the lists are those of one caller's connection: others may have
	// other ones.
	Own bool
	// Partial are the kinds of which not all is known yet: what waits and is not
	// there may still be listed.
	Partial []Kind
}

// A Hold is what is said of a definition that is held.
type Hold struct {
	// Problem says why, to people and to a model that knew it before.
	Problem *dragoman.Problem
	// Approved is the definition that is approved in its place, and still counts; nil
	// for none. Of what one caller's connection lists it is not told, since it may be
	// another caller's.
	Approved json.RawMessage
}
