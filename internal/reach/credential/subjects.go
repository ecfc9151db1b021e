package credential

import (
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Subjects has the access token that each caller showed the gateway last, for as long
// as it is good, in memory alone. A token comes in and never out again, but to the
// token endpoint that an [exchange] asks: nothing outside this package can read it.
type Subjects struct {
	kept bounded.Map[*subject]
}

type subject struct {
	issuer  string
	token   secret.Text
	expires time.Time // zero: not known
}

// The most that is kept of all callers, in bytes, and how long of one who does not
// come.
const (
	subjectsBytes = 16 << 20
	subjectsAge   = time.Hour
)

// NewSubjects returns Subjects of nobody.
func NewSubjects() *Subjects {
	return &Subjects{kept: bounded.Map[*subject]{Bytes: subjectsBytes, Age: subjectsAge}}
}

// Keep keeps the token of a caller in place of an older one. Expires may be zero.
func (s *Subjects) Keep(caller, issuer, token string, expires time.Time) {
	if now, ok := s.kept.Get(caller, ""); ok && now.token.Reveal() == token {
		return
	}
	s.kept.Put(caller, "", &subject{issuer, secret.New(token), expires}, int64(len(caller)+len(token)))
}

// newest returns the token of a caller; nil where there is none that is good.
func (s *Subjects) newest(caller string) *subject {
	if s == nil {
		return nil
	}
	// That it is looked at is no use: it stays for as long as the caller comes.
	for _, now := range s.kept.Values(caller) {
		if now.expires.IsZero() || time.Until(now.expires) > 0 {
			return now
		}
	}
	return nil
}
