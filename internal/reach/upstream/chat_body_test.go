package upstream

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

func TestPartsBody(t *testing.T) {
	for _, parts := range [][][]byte{nil, {{}}, {[]byte("a")}, {[]byte("one"), nil, []byte("two three"), {}, []byte("4")}} {
		want := bytes.Join(parts, nil)
		body := &partsBody{parts: parts}
		again, err := body.again()
		if err != nil {
			t.Fatal(err)
		}
		if err := iotest.TestReader(body, want); err != nil {
			t.Errorf("%q: %v", parts, err)
		}
		if body.parts != nil {
			t.Errorf("%q: what was read is kept", parts)
		}
		var copied bytes.Buffer
		whole := &partsBody{parts: parts}
		if n, err := io.Copy(&copied, whole); err != nil || n != int64(len(want)) || !bytes.Equal(copied.Bytes(), want) || whole.parts != nil {
			t.Errorf("%q copied is %q, %d bytes, %v", parts, copied.Bytes(), n, err)
		}
		if got, err := io.ReadAll(iotest.OneByteReader(again)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q again is %q, %v", parts, got, err)
		}
	}
}
