package credential

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/oauth2"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// ErrNone means that nothing is kept for an account.
var ErrNone = errors.New("nobody has logged in")

// A Store keeps entries by account, encrypted, for all processes that have it. It is safe
// for concurrent use.
type Store interface {
	// Get returns the entry of an account, [ErrNone], or what is wrong with the store.
	// While somebody watches, it neither waits for a disk nor for a database.
	Get(Account) (Entry, error)
	// Accounts returns the accounts for which something is kept, in order.
	Accounts() ([]Account, error)
	// Put keeps an entry in place of an older one.
	Put(Account, Entry) error
	// Update changes an entry that is there; nobody else changes it meanwhile, in whichever
	// process. It is [ErrNone] where there is none, and otherwise what change returns. now is
	// the time that all who share the store have; change may be called again, anew.
	Update(a Account, change func(e *Entry, now time.Time) error) (Entry, error)
	// Delete forgets an account. It is no error where there is nothing to forget.
	Delete(Account) error
	// Watch sees what other processes write, until ctx ends.
	Watch(ctx context.Context)
}

// An Entry is what is kept of a login.
type Entry struct {
	// Resource is the server that the tokens are for, as its metadata name it.
	Resource string `json:"resource"`
	// AuthURL and TokenURL are the addresses of the authorization server, and
	// ClientID and ClientSecret who we are there. The secret and the refresh token go
	// to TokenURL alone.
	AuthURL      string      `json:"auth_url"`
	TokenURL     string      `json:"token_url"`
	ClientID     string      `json:"client_id"`
	ClientSecret secret.Text `json:"-"` // see Open
	// AuthStyle is how the secret is sent; see oauth2.AuthStyle.
	AuthStyle int      `json:"auth_style,omitempty"`
	Scopes    []string `json:"scopes,omitempty"`
	// Access and Refresh are the tokens. Expires is the end of Access; zero is not
	// known.
	Access  secret.Text `json:"-"`
	Refresh secret.Text `json:"-"`
	Expires time.Time   `json:"expires,omitzero"`
	// Renew is when Access is to be renewed; zero is a while before Expires.
	Renew time.Time `json:"renew,omitzero"`
	// Renewing is when somebody set out to renew the tokens: Refresh may be good once.
	Renewing time.Time `json:"renewing,omitzero"`
}

// got sets the access token and when it ends. One that lives for a short time is renewed
// halfway, and not with each request; of one that has ended as it comes it is not known.
func (e *Entry) got(token *oauth2.Token) {
	e.Access, e.Expires, e.Renew = secret.New(token.AccessToken), token.Expiry, time.Time{}
	switch life := time.Until(token.Expiry); {
	case life <= 0:
		e.Expires = time.Time{}
	case life < 2*early:
		e.Renew = token.Expiry.Add(-life / 2)
	}
}

// dueIn is how long the access token need not be renewed.
func (e *Entry) dueIn() time.Duration {
	if e.Renew.IsZero() {
		return time.Until(e.Expires) - early
	}
	return time.Until(e.Renew)
}

// An openEntry is an Entry as it is sealed, secrets open.
type openEntry struct {
	Entry
	ClientSecret string `json:"client_secret,omitempty"`
	Access       string `json:"access"`
	Refresh      string `json:"refresh,omitempty"`
}

// An Account is whose login it is, and at which server.
type Account struct {
	// Server is the address of the server.
	Server string
	// Caller is the ID of the caller who logged in; empty for the gateway itself.
	Caller string
}

// Open returns an entry as [ParseEntry] reads it, with its secrets open: it is for what is
// encrypted at once.
func (e *Entry) Open() []byte {
	text, err := json.Marshal(openEntry{*e, e.ClientSecret.Reveal(), e.Access.Reveal(), e.Refresh.Reveal()})
	if err != nil {
		panic("credential: " + err.Error()) // these are texts, numbers and times
	}
	return text
}

// ParseEntry reads what [Entry.Open] wrote.
func ParseEntry(text []byte) (Entry, error) {
	var opened openEntry
	if err := json.Unmarshal(text, &opened); err != nil {
		return Entry{}, err
	}
	e := opened.Entry
	e.ClientSecret, e.Access, e.Refresh = secret.New(opened.ClientSecret), secret.New(opened.Access), secret.New(opened.Refresh)
	return e, nil
}

// key is what an entry stands under, and is sealed to. An address has no line break.
func (a Account) key() string {
	if a.Caller == "" {
		return a.Server
	}
	return a.Server + "\n" + a.Caller
}
