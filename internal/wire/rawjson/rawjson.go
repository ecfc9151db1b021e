// Package rawjson takes raw JSON apart by one level and puts it together again
// without touching the bytes it was not asked to touch: the order of members,
// the spelling of numbers and strings, and everything unknown survive.
//
// [Check] judges a document strictly, once, at the door. The other functions
// are for documents that passed it (or that encoding/json made): on anything
// else they return an error or a nonsensical part, but never panic and never
// read past the end.
package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the nesting that [Check] accepts: arrays and objects inside one
// another. Real requests stay below 40; decoders of other programs on the way
// give up at 1,000 and more.
const MaxDepth = 512

// MaxMembers and MaxValues are how many members of objects, and how many values in all,
// [Check] accepts in one document. As text a member needs five bytes; read, it needs a
// hundred, for its name is looked for among the others. Real requests have thousands.
const (
	MaxMembers = 1 << 17
	MaxValues  = 1 << 20
)

// ErrCrowded is what the error of [Check] is where nothing is wrong with a document but
// how many members or values it has, as far as it was looked at.
var ErrCrowded = errors.New("holds too much")

// Check reports whether b is exactly one JSON value (RFC 8259) as strictly as
// RFC 7493 (I-JSON) reads it: valid UTF-8 without lone surrogates, no duplicate
// member names, nothing after the value, no more than [MaxDepth] levels, and no more
// than [MaxMembers] and [MaxValues]. The error says what is wrong and at which byte.
// What is over a limit takes no memory.
func Check(b []byte) error {
	if plain(b) {
		return nil
	}
	return check(b)
}

// check is Check by a decoder.
func check(b []byte) error {
	members, err := survey(b)
	if err != nil {
		return err
	}
	c := checkers.Get().(*checker)
	defer func() {
		if members <= maxPooled {
			c.put()
		}
	}()
	c.in = *bytes.NewBuffer(b)
	c.d.Reset(&c.in)
	d := &c.d
	if err := d.SkipValue(); err != nil {
		return readable(err)
	}
	if rest := b[d.InputOffset():]; len(skipSpace(rest)) > 0 {
		return fmt.Errorf("unexpected data after the JSON value, at byte %d", len(b)-len(skipSpace(rest)))
	}
	return nil
}

// maxPooled is how many members a document may have whose checker is used again: what
// it needed to find duplicate names stays with it.
const maxPooled = 4096

// checkers keep what decoders need to find duplicate names.
var checkers = sync.Pool{New: func() any { return new(checker) }}

type checker struct {
	d  jsontext.Decoder
	in bytes.Buffer
}

// put gives c back without anything of the document.
func (c *checker) put() {
	c.in = bytes.Buffer{}
	c.d.Reset(&c.in)
	checkers.Put(c)
}

// readable drops the library's name from its syntax errors.
func readable(err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) {
		where := fmt.Sprintf("at byte %d", e.ByteOffset)
		if e.JSONPointer != "" {
			where = fmt.Sprintf("at %s, byte %d", e.JSONPointer, e.ByteOffset)
		}
		return fmt.Errorf("%w %s", e.Err, where)
	}
	return errors.New("the JSON ends before it is complete")
}

// survey counts what b holds, and says which limit it is over. It takes no memory.
func survey(b []byte) (members int, err error) {
	depth, commas := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringEnd(b[i:])
			if n == 0 {
				return members, nil // it does not end, which is for others to say
			}
			i += n - 1
		case ':':
			if members++; members > MaxMembers {
				return 0, fmt.Errorf("it %w: more than %d members at byte %d", ErrCrowded, MaxMembers, i)
			}
		case ',':
			if commas++; commas >= MaxValues {
				return 0, fmt.Errorf("it %w: more than %d values at byte %d", ErrCrowded, MaxValues, i)
			}
		case '{', '[':
			if depth++; depth > MaxDepth {
				return 0, fmt.Errorf("nested deeper than %d levels at byte %d", MaxDepth, i)
			}
		case '}', ']':
			depth--
		}
	}
	return members, nil
}

// Kind returns what b begins with: '{', '[', '"', '0' for a number, 't', 'f' or
// 'n'; 0 for nothing or nonsense.
func Kind(b []byte) byte {
	b = skipSpace(b)
	if len(b) == 0 {
		return 0
	}
	switch c := b[0]; {
	case c == '{', c == '[', c == '"', c == 't', c == 'f', c == 'n':
		return c
	case c == '-', c >= '0' && c <= '9':
		return '0'
	}
	return 0
}

// IsNull reports whether b is absent or null.
func IsNull(b []byte) bool {
	return len(b) == 0 || string(b) == "null" || string(bytes.TrimSpace(b)) == "null"
}

// Int returns a JSON integer, or 0 and false for anything else.
func Int(b []byte) (int, bool) {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return 0, false // without the error that Atoi would make
	}
	n, err := strconv.Atoi(string(b))
	return n, err == nil
}

var (
	errSyntax = errors.New("malformed JSON")
	// errAbsent is the one that is no peer's fault: a member that is not there is
	// read all the time.
	errAbsent = fmt.Errorf("%w: there is nothing", errSyntax)
)

// eachPart calls part for each element of the array, or member of the object,
// that b is. name is nil in arrays.
func eachPart(b []byte, open, close byte, part func(name, value []byte) error) error {
	b = skipSpace(b)
	if len(b) == 0 {
		return errAbsent
	}
	if b[0] != open {
		return fmt.Errorf("%w: want %q", errSyntax, open)
	}
	b = skipSpace(b[1:])
	if len(b) > 0 && b[0] == close {
		return trailing(b[1:])
	}
	for {
		var name []byte
		if open == '{' {
			n := stringEnd(b)
			if n == 0 {
				return fmt.Errorf("%w: want a member name", errSyntax)
			}
			name, b = b[:n:n], skipSpace(b[n:])
			if len(b) == 0 || b[0] != ':' {
				return fmt.Errorf("%w: want ':'", errSyntax)
			}
			b = skipSpace(b[1:])
		}
		n := valueEnd(b)
		if n == 0 {
			return fmt.Errorf("%w: want a value", errSyntax)
		}
		if err := part(name, b[:n:n]); err != nil {
			return err
		}
		b = skipSpace(b[n:])
		if len(b) == 0 {
			return fmt.Errorf("%w: unexpected end", errSyntax)
		}
		if b[0] == close {
			return trailing(b[1:])
		}
		if b[0] != ',' {
			return fmt.Errorf("%w: want ',' or %q", errSyntax, close)
		}
		b = skipSpace(b[1:])
	}
}

func trailing(b []byte) error {
	if len(skipSpace(b)) > 0 {
		return fmt.Errorf("%w: unexpected data after the value", errSyntax)
	}
	return nil
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// shortString is how far a string is looked through by itself before the library does, whose
// way pays for long ones.
const shortString = 24

// stringEnd returns the length of the string literal that b begins with; 0 when
// there is none.
func stringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	i := 1
	for ; i <= shortString && i+8 <= len(b); i += 8 { // as nearly all are
		marks := special(binary.LittleEndian.Uint64(b[i:]))
		if marks == 0 {
			continue
		}
		if end := i + bits.TrailingZeros64(marks)/8; b[end] == '"' {
			return end + 1
		}
		break
	}
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		// The quote ends the string unless the backslashes before it are odd.
		// They are looked at once for each quote, so a string of nothing but
		// escapes is read twice at most.
		end := i + n
		slashes := 0
		for end-1-slashes >= i && b[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
	return 0
}

// Leading returns the JSON value that b begins with, checked, whatever follows it; nil where
// it begins with none.
func Leading(b []byte) json.RawMessage {
	b = skipSpace(b)
	n := valueEnd(b)
	if n == 0 || !Valid(b[:n]) {
		return nil
	}
	return b[:n:n]
}

// valueEnd returns the length of the value that b begins with; 0 when there is
// none.
func valueEnd(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
		depth := 0
		for i := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				n := stringEnd(b[i:])
				if n == 0 {
					return 0
				}
				i += n - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return 0
	}
	n := bytes.IndexAny(b, ",]} \n\t\r")
	if n < 0 {
		return len(b)
	}
	return n
}
