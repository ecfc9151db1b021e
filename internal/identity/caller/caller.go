// Package caller says who is asking. A [Authenticator] recognises callers, once, where
// requests come in: by API keys of the configuration, by keys in a file, by the
// access tokens of authorization servers. Everything that is kept or counted for
// somebody, and everything that is allowed, is for a [Caller].
//
// Whatever goes wrong while it is found out who asks is a [Refusal]: 401 and 403
// where the caller can mend it, 503 where we have to.
package caller

import (
	"log/slog"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
)

// A Caller is who makes a request. The zero Caller is nobody: nothing is done for
// it.
type Caller struct {
	// ID is stable and unique among callers; it is no secret:
	//
	//	local              see [Local]
	//	key-0ac1e49b       a key of the configuration, by the digest of its digest
	//	key-q5rzx2m4tc7ka  a key of a file, by its id
	//	https://login.example#ada  the subject of a token, with its issuer
	ID string
	// Name is for people: the name of a key, the user or client of a token.
	Name string
	// Grants are what the caller may do, as far as that is the caller's own: rights
	// and patterns of rights. See package right.
	Grants []string
	// Scopes are those of an access token, rights letter by letter; nil for everybody
	// else.
	Scopes []string
	// Issuer is the authorization server of an access token, and Client the id of the
	// client that it was issued to, where the token says; empty for everybody else.
	Issuer, Client string
	// Reach are the grants that other scopes of the same issuer would add. The
	// caller may see what they are for, to ask for them, and use nothing of it.
	Reach []string
	// Expires is when what the caller showed ends to be good; zero for never.
	Expires time.Time
}

// Local is the caller where nobody has to say who they are: a person at the
// terminal, or any program on this machine while the gateway asks nobody. It may
// do everything.
var Local = Caller{ID: "local", Name: "local", Grants: []string{"*"}}

// everyday are the grants of keys that do not say otherwise: to use the gateway,
// and not to decide for others what may be used.
var everyday = []string{"tool:*", "model:*", "route:*"}

// RuleName is the name by which rules may mean a caller, beside the ID: that of a
// key. It is empty for those whom an authorization server names, since people can
// often choose what they are called there.
func (c Caller) RuleName() string {
	if c.Issuer != "" {
		return ""
	}
	return c.Name
}

// Valid reports whether this is anybody.
func (c Caller) Valid() bool { return c.ID != "" }

// IsLocal reports whether the caller is [Local].
func (c Caller) IsLocal() bool { return c.ID == Local.ID }

// Logged is who this is, as lines of a log say it: the ID, and the name where that says
// more.
func (c Caller) Logged() []any {
	if !c.named() {
		return []any{"caller", c.ID}
	}
	return []any{"caller", c.ID, "caller_name", c.Name}
}

// named reports whether the name says more than the ID.
func (c Caller) named() bool { return c.Name != "" && c.Name != c.ID }

// Log returns a logger whose lines name the caller, behind what else they carry.
func (c Caller) Log(log *slog.Logger, carried ...slog.Attr) *slog.Logger {
	all := append(make([]slog.Attr, 0, len(carried)+2), carried...)
	all = append(all, slog.String("caller", c.ID))
	if c.named() {
		all = append(all, slog.String("caller_name", c.Name))
	}
	return slog.New(log.Handler().WithAttrs(all))
}

// May reports whether the caller was granted a right, such as "tool:github__search".
// The rules of the configuration have their say beside it.
func (c Caller) May(needed string) bool {
	return c.Valid() && (permission.Granted(c.Grants, needed) || permission.Scoped(c.Scopes, needed))
}
