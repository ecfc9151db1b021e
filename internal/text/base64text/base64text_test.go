package base64text

import "testing"

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"iVBORw0KGgo=": "iVBORw0KGgo=", "iVBORw0KGgo": "iVBORw0KGgo=", " iVBO\r\nRw0K\tGgo= \n": "iVBORw0KGgo=",
		"-_-_": "+/+/", "QQ==": "QQ==", "QQ": "QQ==", "": "",
		"Q": "none", "%%%": "none", "QUJD.": "none",
	} {
		got, ok := Canonical([]byte(text))
		if !ok {
			got = []byte("none")
		}
		if string(got) != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
