package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/go-json-experiment/json/jsontext"
)

// How much of a call's arguments rules look at; what has more is denied, so that
// nobody can hide behind it and looking costs little.
const (
	maxValues = 10_000
	// Arrays and objects in arrays: as members of sets they are compared pairwise
	// where somebody chose them to have the same hash.
	maxNested = 1000
)

// jsonNull is what rules see where the arguments have null, which Cedar has not.
var jsonNull = types.NewEntityUID(typeJSON, "null")

const jsonNullText = typeJSON + `::"null"`

var errTooMany = errors.New("the arguments are too large for rules that look at them")

var errTwins = errors.New("two arguments have names that differ in case alone, which some servers take for one")

// prototype is a member by which an object gets the members of another one in JavaScript:
// a server that copies its arguments with Object.assign finds there what rules do not see.
const prototype = "__proto__"

var errPrototype = errors.New("an argument is called " + prototype + ", whose members some servers take for arguments")

// twins reports two members at the top whose names differ in case alone. Rules look at the
// one, and a server that reads names in any case, as Go's encoding/json does, may take the
// other. Deeper down that holds for names that rules look for ([wantedNames.rename]).
func twins(r types.Record) bool {
	seen := make(map[string]bool, r.Len())
	for name := range r.All() {
		seen[folded(string(name))] = true
	}
	return len(seen) < r.Len()
}

// hasPrototype reports an object that is a [prototype], at any depth.
func hasPrototype(v types.Value) bool {
	switch v := v.(type) {
	case types.Record:
		for name, inner := range v.All() {
			if _, object := inner.(types.Record); object && name == prototype || hasPrototype(inner) {
				return true
			}
		}
	case types.Set:
		for inner := range v.All() {
			if hasPrototype(inner) {
				return true
			}
		}
	}
	return false
}

// record converts a JSON object to what rules see of it, from its exact bytes:
//
//	string, true, false   the same
//	number                Long, where it is an integer of 64 bits, however it is
//	                      spelled (1, 1.0, 1e3); else a string, as it is spelled
//	null                  JSON::"null"
//	array                 a Set: Cedar has nothing that keeps order and repetitions
//	object                a record
//
// inexact reports a number that became a string, or an array that repeats itself.
// What is not one strict JSON object (RFC 7493) is an error.
func record(arguments json.RawMessage) (r types.Record, inexact bool, err error) {
	if len(arguments) == 0 {
		return types.Record{}, false, nil
	}
	c := converter{in: jsontext.NewDecoder(bytes.NewBuffer(arguments))}
	if c.in.PeekKind() != '{' {
		return types.Record{}, false, errors.New("the arguments are no JSON object")
	}
	v, err := c.value()
	if err != nil {
		return types.Record{}, false, fmt.Errorf("reading the arguments: %w", err)
	}
	if _, err := c.in.ReadToken(); !errors.Is(err, io.EOF) {
		return types.Record{}, false, errors.New("reading the arguments: there is more than one value")
	}
	return v.(types.Record), c.inexact, nil
}

type converter struct {
	in      *jsontext.Decoder
	values  int
	nested  int // in arrays
	inexact bool
}

func (c *converter) value() (types.Value, error) {
	if c.values++; c.values > maxValues {
		return nil, errTooMany
	}
	token, err := c.in.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return jsonNull, nil
	case 't', 'f':
		return types.Boolean(token.Bool()), nil
	case '"':
		return types.String(token.String()), nil
	case '0':
		text := token.String()
		if n, ok := integer(text); ok {
			return types.Long(n), nil
		}
		c.inexact = true
		return types.String(text), nil
	case '{':
		return c.object()
	default: // '[': the decoder lets nothing else through
		return c.array()
	}
}

func (c *converter) object() (types.Value, error) {
	members := types.RecordMap{}
	for c.in.PeekKind() != '}' {
		name, err := c.in.ReadToken()
		if err != nil {
			return nil, err
		}
		key := types.String(name.String())
		if members[key], err = c.value(); err != nil {
			return nil, err
		}
	}
	_, err := c.in.ReadToken()
	return types.NewRecord(members), err
}

func (c *converter) array() (types.Value, error) {
	var elements []types.Value
	for c.in.PeekKind() != ']' {
		v, err := c.value()
		if err != nil {
			return nil, err
		}
		switch v.(type) {
		case types.Record, types.Set:
			if c.nested++; c.nested > maxNested {
				return nil, errTooMany
			}
		}
		elements = append(elements, v)
	}
	if _, err := c.in.ReadToken(); err != nil {
		return nil, err
	}
	set := types.NewSet(elements...)
	c.inexact = c.inexact || set.Len() != len(elements)
	return set, nil
}

// integer returns the value of a JSON number that is an integer of 64 bits,
// however it is spelled.
func integer(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	mantissa, power := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		var err error
		if power, err = strconv.Atoi(text[i+1:]); err != nil || power > 1<<30 || power < -1<<30 {
			power = 1 << 30 // beyond all integers of 64 bits, unless all digits are zero
			if strings.HasPrefix(text[i+1:], "-") {
				power = -power
			}
		}
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, true
	}
	significant := strings.TrimRight(digits, "0")
	power += len(digits) - len(significant) - len(fraction)
	if power < 0 || power > 19 || len(significant)+power > 19 {
		return 0, false
	}
	if negative {
		significant = "-" + significant
	}
	n, err := strconv.ParseInt(significant+strings.Repeat("0", power), 10, 64)
	return n, err == nil
}
