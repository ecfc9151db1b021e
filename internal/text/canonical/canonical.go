// Package canonical gives a JSON value one spelling, so that equal arguments of a
// call have one digest: approvals are bound to it, the audit log names it.
//
// The form is that of RFC 8785 (members sorted by UTF-16 code units, the shortest
// escapes, no space) but for numbers, which keep the spelling that they have.
// RFC 8785 makes doubles of them, and 9007199254740993 would be approved as
// 9007199254740992. So two values never have one form, and one value may have two:
// 1 and 1.0 differ. Where the form decides whether a person is asked, the worst
// that comes of it is a question more.
//
// Names that stand twice in an object, invalid UTF-8, lone surrogates and anything
// behind the value are errors: readers disagree about what such a text says.
package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns the canonical form of a value. No bytes at all are taken for {}: a
// call without arguments says the same as one with none.
func JSON(value json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(value)) == 0 {
		return json.RawMessage("{}"), nil
	}
	v := jsontext.Value(value).Clone()
	err := v.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false),
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return json.RawMessage(v), nil
}

// Digest returns the SHA-256 of the canonical form.
func Digest(value json.RawMessage) (Hash, error) {
	form, err := JSON(value)
	if err != nil {
		return Hash{}, err
	}
	return sha256.Sum256(form), nil
}

// A Hash is a SHA-256, in hexadecimal where it is written.
type Hash [32]byte

// String returns 64 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements [encoding.TextMarshaler].
func (h Hash) MarshalText() ([]byte, error) {
	return hex.AppendEncode(make([]byte, 0, 2*len(h)), h[:]), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return errors.New("a hash has 64 hexadecimal digits")
	}
	_, err := hex.Decode(h[:], text)
	return err
}
