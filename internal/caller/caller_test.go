package caller

import (
	"errors"
	"net/http"
	"testing"
)

func TestKeys(t *testing.T) {
	keys := NewKeys("s3cret", "", "other")
	for _, tc := range []struct {
		name, value string
		want        error
	}{
		{"Authorization", "Bearer s3cret", nil},
		{"Authorization", "bearer  s3cret ", nil},
		{"Api-Key", "s3cret", nil},
		{"Authorization", "Bearer s3cre", ErrWrongKey},
		{"Authorization", "Basic s3cret", ErrNoKey},
		{"X-Other", "s3cret", ErrNoKey},
	} {
		r := &http.Request{Header: http.Header{tc.name: {tc.value}}}
		c, err := keys.Recognise(r)
		if !errors.Is(err, tc.want) || err == nil && c.ID != "key-0ac1e49b" {
			t.Errorf("%s: %q: got %v, %v; want error %v", tc.name, tc.value, c, err, tc.want)
		}
	}
	if c, err := NewKeys("").Recognise(&http.Request{}); err != nil || c != Local {
		t.Errorf("without keys: %v, %v", c, err)
	}
}

func TestCheckKey(t *testing.T) {
	for key, fine := range map[string]bool{
		"": false, "a": false, "0123456789abcde": false, "aaaaaaaaaaaaaaaaaaaaaaaa": false, "abcabcabcabcabcabc": false,
		"0123456789abcdef": true, "correct horse battery": true,
	} {
		if err := CheckKey(key); (err == nil) != fine {
			t.Errorf("CheckKey(%q) = %v", key, err)
		}
	}
}
