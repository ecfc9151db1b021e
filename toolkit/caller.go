package toolkit

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
)

// A Caller is who asks. There are three kinds:
//
//   - the owner, who started the server and speaks to it over standard input and
//     output or in the same process, and may do everything;
//   - an authenticated user, who proved over HTTP who they are, and may do what
//     Rights say;
//   - anybody else, the zero Caller, who may do whatever needs no right.
type Caller struct {
	// User is the stable id of an authenticated user; empty for the owner and
	// for anybody else.
	User string
	// Rights are what the user was granted: the rights of an API key, which may
	// be patterns such as "tickets:*", or the scopes of an OAuth token, which are
	// taken letter by letter. Ask with [Caller.May].
	Rights []string
	// Key is the id of the API key that was shown, which is no secret; empty for
	// everybody else.
	Key string
	// Token is what [OAuth.Verify] said of the token; nil for everybody else.
	Token *auth.TokenInfo

	owner bool
}

// Owner is the caller on standard input and output.
func Owner() Caller { return Caller{owner: true} }

// IsOwner reports whether the caller is who started the server.
func (c Caller) IsOwner() bool { return c.owner }

// Authenticated reports whether the caller proved over HTTP who they are.
func (c Caller) Authenticated() bool { return c.User != "" }

// May reports whether the caller has a right, such as "tickets:write". The owner
// has all of them, and nobody in particular has none.
func (c Caller) May(needed string) bool {
	switch {
	case c.owner:
		return true
	case c.User == "":
		return false
	case c.Token != nil:
		return permission.Scoped(c.Rights, needed)
	}
	return permission.Granted(c.Rights, needed)
}

// String names the caller for people.
func (c Caller) String() string {
	switch {
	case c.owner:
		return "the owner"
	case c.User == "":
		return "somebody unknown"
	}
	return c.User
}

// kind is how the audit trail calls the three kinds of callers.
func (c Caller) kind() string {
	switch {
	case c.owner:
		return "owner"
	case c.User == "":
		return "anonymous"
	}
	return "user"
}

// identity tells callers apart, such as in limits. No two kinds have one.
func (c Caller) identity() string {
	if c.User == "" || c.owner {
		return c.kind()
	}
	return "user:" + c.User
}

// lacks is the first of the rights that the caller has not; empty if there is
// none.
func (c Caller) lacks(needed []string) string {
	for _, n := range needed {
		if !c.May(n) {
			return n
		}
	}
	return ""
}

type callerKey struct{}

// As makes a caller of the one who uses [Server.Client], [Server.Pipe] or
// [Server.ServeStdio] with this context; without it, that is the [Owner]. It is
// for tests of what a user may do, and for programs that serve several users over
// pipes. Over HTTP it has no effect: there [HTTP] says who asks.
func As(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// asOwner names the owner, where nobody else is named.
func asOwner(ctx context.Context) context.Context {
	if _, ok := ctx.Value(callerKey{}).(Caller); ok {
		return ctx
	}
	return As(ctx, Owner())
}

// tokenCaller is where a Caller travels in a TokenInfo, the only thing that the
// SDK carries along with each single request over HTTP.
const tokenCaller = "github.com/dragoman-mcp/dragoman/toolkit.Caller"

// callerOf finds out who asks. Over HTTP that is said by each request, and a
// request that says nothing is nobody's.
func callerOf(ctx context.Context, extra *sdk.RequestExtra) Caller {
	if extra != nil && (extra.Header != nil || extra.TokenInfo != nil) {
		if extra.TokenInfo != nil {
			c, _ := extra.TokenInfo.Extra[tokenCaller].(Caller)
			return c
		}
		return Caller{}
	}
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// checkRequires says what is wrong with the rights that something requires.
func checkRequires(needed []string) error {
	for _, n := range needed {
		if err := permission.Check(n); err != nil {
			return fmt.Errorf("cannot require this: %w", err)
		}
	}
	return nil
}
