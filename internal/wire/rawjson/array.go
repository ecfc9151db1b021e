package rawjson

import (
	"encoding/json"
	"slices"
)

// Elements takes an array apart.
func Elements(b []byte) ([]json.RawMessage, error) { return AppendElements(nil, b) }

// AppendElements takes an array apart and appends its elements to dst.
func AppendElements(dst []json.RawMessage, b []byte) ([]json.RawMessage, error) {
	err := eachPart(b, '[', ']', func(_, value []byte) error {
		dst = append(grown(dst, 4), value)
		return nil
	})
	return dst, err
}

// EachElement calls f with the elements of the array that b is, in their order, and keeps none.
// Where b turns out to be no array, f may have been called.
func EachElement(b []byte, f func(element json.RawMessage)) error {
	return eachPart(b, '[', ']', func(_, value []byte) error {
		f(value)
		return nil
	})
}

// grown returns a slice with room for one more, and for as many again where there was none:
// append alone makes five times as much of many.
func grown[S ~[]E, E any](s S, least int) S {
	if len(s) < cap(s) {
		return s
	}
	return slices.Grow(s, max(len(s), least))
}

// AppendArray appends an array of raw values to dst.
func AppendArray(dst []byte, elements []json.RawMessage) []byte {
	n := 2 + len(elements)
	for _, e := range elements {
		n += len(e)
	}
	dst = append(slices.Grow(dst, n), '[')
	for i, e := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, e...)
	}
	return append(dst, ']')
}

// ArrayParts returns the parts of an array of raw values, for [Object.Parts]. was is an array
// that some of them may have been taken from, by [Elements], or none: those that stand one behind the
// other there go out as they stand there, and are not copied.
func ArrayParts(was []byte, elements []json.RawMessage) [][]byte {
	if Kind(was) != '[' {
		return apart(elements)
	}
	parts := make([][]byte, 0, 4)
	own, from, to := []byte{'['}, 0, 0 // what stands nowhere, and behind it was[from:to]
	end := func() {
		if to > from {
			parts = append(parts, own, was[from:to:to])
			own, from, to = nil, 0, 0
		}
	}
	stands := func(at int, e []byte) bool {
		return len(e) > 0 && at+len(e) <= len(was) && &was[at] == &e[0]
	}
	next, behind := nextElement(was, 0), -1 // the element of was that comes next, and the one behind it
	for i, e := range elements {
		at := next
		if !stands(at, e) { // another may stand in its place, or before it
			if behind < 0 {
				behind = nextElement(was, at+valueEnd(was[at:]))
			}
			at = behind
		}
		if at == next && to > from && stands(at, e) {
			to = at + len(e)
			next, behind = nextElement(was, to), -1
			continue
		}
		end()
		stood := stands(at, e)
		if !stood {
			own = slices.Grow(own, len(e)+2)
		}
		if i > 0 {
			own = append(own, ',')
		}
		if !stood {
			own = append(own, e...)
			continue
		}
		from, to = at, at+len(e)
		next, behind = nextElement(was, to), -1
	}
	end()
	return append(parts, append(own, ']'))
}

// apart returns an array of raw values with each of them as a part.
func apart(elements []json.RawMessage) [][]byte {
	parts := append(make([][]byte, 0, 2*len(elements)+2), Opened)
	for i, e := range elements {
		if i > 0 {
			parts = append(parts, Comma)
		}
		parts = append(parts, e)
	}
	return append(parts, Closed)
}

// Parts of arrays, which nobody changes.
var Opened, Comma, Closed = slices.Clip([]byte("[")), slices.Clip([]byte(",")), slices.Clip([]byte("]"))

// nextElement returns where the element of an array begins that follows what ends at a
// place: 0 for the first one.
func nextElement(array []byte, at int) int {
	left := skipSpace(array[at:])
	if len(left) > 0 && (left[0] == ',' || at == 0 && left[0] == '[') {
		left = skipSpace(left[1:])
	}
	return len(array) - len(left)
}
