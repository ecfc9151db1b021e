// Package apikey makes and recognises API keys, those of the gateway and those of
// servers written with the toolkit alike.
//
//	dgm_q5rzx2m4tc7ka_3v…(52)…yd…(7)
//	    └ id, 13     └ secret      └ checksum
//
// A key is the prefix "dgm_", which scanners for leaked secrets can look for; an
// id of 64 bits, which is no secret, names the key in logs and finds its record;
// a secret of 256 bits; and a checksum (CRC-32, IEEE) of everything before it,
// which tells a key that was cut off or mistyped from one that is not known,
// without a look-up. All of it is base32 in lower case (RFC 4648 without
// padding), so a double click takes a key whole: 77 characters.
//
// Only [Hash] of a key is stored. It is a plain SHA-256: a secret of 256 random
// bits cannot be guessed, so a slow hash would only slow down every request.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"
)

// CallerPrefix stands before the id of a key in that of its caller.
const CallerPrefix = "key-"

// Prefix is what every key begins with.
const Prefix = "dgm_"

const (
	idBytes, secretBytes = 8, 32
	idLength             = 13 // characters of base32
	secretLength         = 52
	sumLength            = 7

	// Length is the number of characters of a key.
	Length = len(Prefix) + idLength + 1 + secretLength + sumLength

	hashPrefix = "sha256:"
)

// ErrFormat means that a text is no key of ours, and ErrChecksum that it looks
// like one and was mistyped or cut off.
var (
	ErrFormat   = errors.New("not an API key: keys begin with " + Prefix)
	ErrChecksum = errors.New("the API key was mistyped or cut off: its checksum is wrong")
)

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// New makes a key. It is shown to its owner once and never stored; store [Hash]
// of it, under its id.
func New() (key, id string) {
	var random [idBytes + secretBytes]byte
	if _, err := rand.Read(random[:]); err != nil {
		panic(err) // never happens; crypto/rand ends the program instead
	}
	id = encoding.EncodeToString(random[:idBytes])
	body := Prefix + id + "_" + encoding.EncodeToString(random[idBytes:])
	return body + checksum(body), id
}

func checksum(body string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body)))
	return encoding.EncodeToString(sum)
}

// Is reports whether a text claims to be a key, by its prefix alone.
func Is(text string) bool { return strings.HasPrefix(text, Prefix) }

// ID returns the id in a key. The errors are [ErrFormat] and [ErrChecksum]; no
// error means only that the text is well formed, not that anybody knows the key.
func ID(key string) (string, error) {
	if !Is(key) {
		return "", ErrFormat
	}
	if len(key) != Length || key[len(Prefix)+idLength] != '_' {
		return "", ErrChecksum
	}
	body, sum := key[:Length-sumLength], key[Length-sumLength:]
	if subtle.ConstantTimeCompare([]byte(checksum(body)), []byte(sum)) == 0 {
		return "", ErrChecksum
	}
	id := key[len(Prefix) : len(Prefix)+idLength]
	if _, err := encoding.DecodeString(id); err != nil {
		return "", ErrChecksum
	}
	return id, nil
}

// CouldBeID reports whether a text has the form of the id of a key: of one that [NewRecord]
// made, or the 8 hexadecimal digits by which one of a configuration is called.
func CouldBeID(text string) bool {
	decode, length := encoding.DecodeString, idLength
	if len(text) == 8 {
		decode, length = hex.DecodeString, 8
	}
	_, err := decode(text)
	return err == nil && len(text) == length && text == strings.ToLower(text)
}

// Hash is the form in which a key is stored: "sha256:" and 64 hexadecimal digits.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// Matches reports whether a key has that hash, in a time that says nothing about
// where they differ. A hash that is not well formed matches nothing.
func Matches(key, hash string) bool {
	if !Hashed(hash) {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(Hash(key)), []byte(hash)) == 1
}

// Hashed reports whether a text is a hash as [Hash] writes it.
func Hashed(text string) bool {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	return ok && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}
