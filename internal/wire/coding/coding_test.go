package coding

import "testing"

func TestCompresses(t *testing.T) {
	for encoding, want := range map[string]bool{
		"": false, "identity": false, "Identity, none": false, "utf-8": false, "aws-chunked": false,
		"gzip": true, "GZIP": true, "none, br": true, "zstd": true,
	} {
		if got := Compresses(encoding); got != want {
			t.Errorf("%q: %v", encoding, got)
		}
	}
}
