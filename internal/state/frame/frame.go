// Package frame puts what a layer of toolsets keeps of a call that asks around the state of
// the layer below. Each such layer refuses a continuation without its frame: what comes
// past it has not been judged by it.
//
// A frame proves nothing by itself. The outermost layer seals the whole, or, where states
// do not leave the process, a field is a proof.
package frame

// A Frame is what a layer keeps: that a question of its own waits for an answer, or that
// the call has begun below.
type Frame struct {
	// Began says that the call has begun, and that Inner is the state of the layer below.
	// Otherwise there is none.
	Began bool
	// Fields are the layer's own, always as many, of at most 255 bytes each.
	Fields []string
	Inner  []byte
}

// The first byte of a frame.
const (
	waits = 'w'
	began = 'b'
)

// Bytes returns the frame as the state of a call. It panics where a field is too long:
// what a layer keeps here is its own.
func (f Frame) Bytes() []byte {
	b := []byte{waits}
	if f.Began {
		b[0] = began
	}
	for _, field := range f.Fields {
		if len(field) > 255 {
			panic("frame: a field is longer than 255 bytes")
		}
		b = append(b, byte(len(field)))
	}
	for _, field := range f.Fields {
		b = append(b, field...)
	}
	return append(b, f.Inner...)
}

// Read reads the frame of a layer that has so many fields. ok is false where state is none.
func Read(state []byte, fields int) (f Frame, ok bool) {
	if len(state) < 1+fields || state[0] != waits && state[0] != began {
		return Frame{}, false
	}
	f.Began = state[0] == began
	lengths, rest := state[1:1+fields], state[1+fields:]
	for _, n := range lengths {
		if len(rest) < int(n) {
			return Frame{}, false
		}
		f.Fields, rest = append(f.Fields, string(rest[:n])), rest[n:]
	}
	f.Inner = rest
	return f, f.Began || len(rest) == 0
}
