package canonical

import (
	"encoding/json"
	"testing"
)

func TestReadable(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"b é 語 🙂"}`:            `{"a":"b é 語 🙂"}`,
		"{\n  \"a\": 1\n}":           "{\n  \"a\": 1\n}",
		"\"a\u202eb\u200bc\u00a0\"":  `"a\u202eb\u200bc\u00a0"`,
		"\"\u009b31m\u2028\ufeff\"":  `"\u009b31m\u2028\ufeff"`,
		"\"\U000e0041\u3164\ufe0f\"": `"\udb40\udc41\u3164\ufe0f"`,
	} {
		got := Readable(json.RawMessage(in))
		if got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
		before, err := Digest(json.RawMessage(in))
		after, err2 := Digest(json.RawMessage(got))
		if err != nil || err2 != nil || before != after {
			t.Errorf("%q is another value than %q: %v, %v", got, in, err, err2)
		}
	}
}

// TestPrintable: a terminal obeys nothing of a document, which stays the same value.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"{\"a\":\t\"b\u00a0👩‍🚀\"}\n":        "{\"a\":\t\"b\u00a0👩‍🚀\"}\n",
		"\"\u009b2J\u009d0;x\u009c\u007f\"": `"\u009b2J\u009d0;x\u009c\u007f"`,
		"\"\u202e\U000e0041\"":              `"\u202e\udb40\udc41"`,
		"{\"a\":1,\r \"b\":2}\r\n":          "{\"a\":1,\n \"b\":2}\n\n",
	} {
		got := Printable([]byte(in))
		if got != want {
			t.Errorf("%q is printed as %q, want %q", in, got, want)
		}
		before, err := Digest(json.RawMessage(in))
		after, err2 := Digest(json.RawMessage(got))
		if err != nil || err2 != nil || before != after {
			t.Errorf("%q is another value than %q: %v, %v", got, in, err, err2)
		}
	}
}
