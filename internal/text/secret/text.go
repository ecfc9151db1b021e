// Package secret holds what nobody may see: keys, passwords, tokens, and the values
// of headers and variables, which may be such.
//
// A [Text] is one of them. It shows as *** wherever it is printed, logged or
// encoded, and only [Text.Reveal] opens it, so that whoever reads the code finds all
// places that do. A [Mask] hides the secrets that we gave somebody in what they say:
// an API that repeats the key that it refuses, a program that prints its environment.
package secret

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"unique"
)

// Hidden stands for a secret wherever one would be shown.
const Hidden = "***"

// A Text is a secret. The zero value is none, which shows as nothing. Texts of the
// same secret are equal; [Text.Equal] compares in a time that says nothing about
// them.
//
// Text is a handle and not a string, since package fmt asks no methods of what lies in
// the unexported fields of others, and prints it: of a handle that is an address.
type Text struct{ handle unique.Handle[string] }

// New returns text as a secret.
func New(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{unique.Make(text)}
}

// Map returns the values of plain as secrets, nil for nil.
func Map(plain map[string]string) map[string]Text {
	if plain == nil {
		return nil
	}
	texts := make(map[string]Text, len(plain))
	for name, value := range plain {
		texts[name] = New(value)
	}
	return texts
}

// Reveal returns the secret itself. It is for whoever sends it where it belongs, or
// checks what it is made of.
func (t Text) Reveal() string {
	if t.IsZero() {
		return ""
	}
	return t.handle.Value()
}

// IsZero reports whether there is no secret.
func (t Text) IsZero() bool { return t == Text{} }

// Equal reports whether two secrets are the same. The time that it takes depends on
// their lengths alone.
func (t Text) Equal(other Text) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(other.Reveal())) == 1
}

// String returns [Hidden], or nothing where there is no secret.
func (t Text) String() string {
	if t.IsZero() {
		return ""
	}
	return Hidden
}

// GoString is String, for %#v.
func (t Text) GoString() string { return t.String() }

// Format writes String, whatever the verb.
func (t Text) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, t.String()) }

// LogValue is String, for package slog.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText returns String, for encodings that ask for text, YAML among them.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalJSON returns String as JSON.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }
