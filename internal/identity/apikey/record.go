package apikey

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
)

// A Record is what is stored of a key: not the key itself, which only its owner
// has.
type Record struct {
	// ID is the part of the key that names it, and is no secret.
	ID string `json:"id"`
	// Hash is what the key is recognised by; see [Hash].
	Hash string `json:"hash"`
	// User is whose key it is; several keys may have one user.
	User string `json:"user"`
	// Rights are the grants of whoever shows the key; see package right.
	Rights []string `json:"rights,omitempty"`
	// Name is for people, such as "laptop".
	Name string `json:"name,omitempty"`
	// Created is for people; Expires is when the key ends to be good. Zero: never.
	Created time.Time `json:"created,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// NewRecord makes a key and its record. The text is the key, to be shown once and
// not to be stored. A life of zero is for ever.
func NewRecord(user string, rights []string, life time.Duration) (text string, r Record, err error) {
	text, id := New()
	now := time.Now().UTC().Truncate(time.Second)
	r = Record{ID: id, Hash: Hash(text), User: user, Rights: rights, Created: now}
	if life > 0 {
		r.Expires = now.Add(life)
	}
	if err := r.Check(); err != nil {
		return "", Record{}, err
	}
	return text, r, nil
}

// Expired reports whether the key is not good any more.
func (r Record) Expired() bool { return !r.Expires.IsZero() && !time.Now().Before(r.Expires) }

// Check says what is wrong with a record.
func (r Record) Check() error {
	switch {
	case r.ID == "":
		return errors.New("a key without id")
	case !Hashed(r.Hash):
		return fmt.Errorf("key %s: the hash is not sha256: and 64 digits", r.ID)
	case r.User == "" || len(r.User) > 200 || strings.ContainsFunc(r.User, unicode.IsControl):
		return fmt.Errorf("key %s: the user must have 1 to 200 characters, and no control characters", r.ID)
	}
	for _, grant := range r.Rights {
		if err := permission.CheckGrant(grant); err != nil {
			return fmt.Errorf("key %s: %w", r.ID, err)
		}
	}
	return nil
}
