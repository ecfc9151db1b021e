package toolkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
)

// An APIKey is what is stored of an API key: not the key itself, which only its
// owner has. The gateway's keys have the same form.
type APIKey struct {
	// ID is the part of the key that names it, and is no secret.
	ID string `json:"id"`
	// Hash is what the key is recognised by, "sha256:" and 64 hexadecimal digits.
	Hash string `json:"hash"`
	// User is whose key it is; several keys may have one user.
	User string `json:"user"`
	// Rights of whoever shows the key: kind:what, such as "tickets:write", or
	// patterns of them, such as "tickets:*", or "*" for all.
	Rights []string `json:"rights,omitempty"`
	// Name is for people, such as "laptop".
	Name string `json:"name,omitempty"`
	// Created is for people; Expires is when the key ends to be good. Zero: never.
	Created time.Time `json:"created,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// NewAPIKey makes a key for a user. The text is the key, to be handed over and
// not to be stored; the APIKey is to be stored. The error says what is wrong with
// the user or the rights.
func NewAPIKey(user string, rights ...string) (text string, k APIKey, err error) {
	text, r, err := apikey.NewRecord(user, rights, 0)
	return text, APIKey(r), err
}

// check says what is wrong with a stored key.
func (k APIKey) check() error { return apikey.Record(k).Check() }

// APIKeys finds what is stored of a key, in a file ([OpenKeys]), a database, a
// fixed list ([KeyList]).
type APIKeys interface {
	// APIKey returns the key with that id. [ErrNoKey] means that there is none;
	// any other error refuses the caller as well, and is logged. It is called for
	// each request.
	APIKey(ctx context.Context, id string) (APIKey, error)
}

// ErrNoKey is what [APIKeys] returns for a key that it does not have.
var ErrNoKey = errors.New("no such API key")

// KeyList is a fixed list of keys.
type KeyList []APIKey

// APIKey returns the key with that id, or [ErrNoKey].
func (l KeyList) APIKey(_ context.Context, id string) (APIKey, error) {
	for _, k := range l {
		if k.ID == id {
			return k, nil
		}
	}
	return APIKey{}, ErrNoKey
}

// byKey finds out whose key a token is. The caller is told what they can mend
// themselves, and nothing else.
func (h HTTP) byKey(ctx context.Context, token string, log *slog.Logger) (*auth.TokenInfo, error) {
	id, err := apikey.ID(token)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
	}
	k, err := h.APIKeys.APIKey(ctx, id)
	switch {
	case errors.Is(err, ErrNoKey):
		return nil, auth.ErrInvalidToken
	case err != nil:
		log.ErrorContext(ctx, "an API key could not be looked up", "key", id, "error", err)
		return nil, errors.New("the API key could not be looked up")
	case k.ID != id || !apikey.Matches(token, k.Hash):
		return nil, auth.ErrInvalidToken
	case apikey.Record(k).Expired():
		return nil, fmt.Errorf("%w: the API key has expired", auth.ErrInvalidToken)
	}
	if err := k.check(); err != nil {
		log.ErrorContext(ctx, "an API key is not stored well", "error", err)
		return nil, errors.New("the API key could not be looked up")
	}
	c := Caller{User: k.User, Rights: k.Rights, Key: k.ID}
	info := carried(c, nil)
	if h.OAuth != nil { // what every request needs, keys need as well
		for _, scope := range h.OAuth.Scopes {
			if permission.Granted(k.Rights, scope) {
				info.Scopes = append(info.Scopes, scope)
			}
		}
	}
	return info, nil
}
