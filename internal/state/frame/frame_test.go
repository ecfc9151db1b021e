package frame

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestFrames: what a layer frames it reads again, and frames stand in each other.
func TestFrames(t *testing.T) {
	inner := Frame{Began: true, Fields: []string{"", "leg"}, Inner: []byte("state")}
	outer := Frame{Began: true, Fields: []string{strings.Repeat("x", 255)}, Inner: inner.Bytes()}
	got, ok := Read(outer.Bytes(), 1)
	if !ok || !got.Began || got.Fields[0] != outer.Fields[0] {
		t.Fatalf("%+v, %v", got, ok)
	}
	got, ok = Read(got.Inner, 2)
	if !ok || !got.Began || !slices.Equal(got.Fields, inner.Fields) || string(got.Inner) != "state" {
		t.Errorf("%+v, %v", got, ok)
	}
	waiting := Frame{Fields: []string{"approval", ""}}
	if got, ok = Read(waiting.Bytes(), 2); !ok || got.Began || got.Fields[0] != "approval" || len(got.Inner) != 0 {
		t.Errorf("%+v, %v", got, ok)
	}
}

// TestNoFrame: what no layer framed so is none.
func TestNoFrame(t *testing.T) {
	for _, state := range []string{
		"", "b", "b\x00", "x\x00\x00", "b\x01\x00", "b\x00\x02a", "w\x00\x00inner", "w\x01\x00abc",
	} {
		if f, ok := Read([]byte(state), 2); ok {
			t.Errorf("%q is %+v", state, f)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a field of 256 bytes is framed")
		}
	}()
	Frame{Fields: []string{strings.Repeat("x", 256)}}.Bytes()
}

// FuzzRead: what can be read is written again as it was.
func FuzzRead(f *testing.F) {
	f.Add([]byte("b\x01\x01abinner"), 2)
	f.Add([]byte("w\x03\x00abc"), 2)
	f.Fuzz(func(t *testing.T, state []byte, fields int) {
		if fields < 0 || fields > 16 {
			return
		}
		if frame, ok := Read(state, fields); ok && !bytes.Equal(frame.Bytes(), state) {
			t.Errorf("%q became %q", state, frame.Bytes())
		}
	})
}
