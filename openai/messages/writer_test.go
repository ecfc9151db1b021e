package messages

import "testing"

// Ids of others have no part that says which message a call is from.
func TestTagOf(t *testing.T) {
	for id, want := range map[string]string{
		"toolu_dgABCDEFGHIJKLMNOPQRSTUV":     "ABCDEFGHIJ",
		"mcptoolu_dgABCDEFGHIJKLMNOPQRSTUV":  "ABCDEFGHIJ",
		"srvtoolu_dgABCDEFGHIJKLMNOPQRSTUV":  "ABCDEFGHIJ",
		"toolu_dgABCDEFGHIJ":                 "", // too short
		"toolu_dgABCDEFGHIJKLMNOPQRSTUVWXYZ": "",
		"ABCDEFGHIJKLMNOPQRSTUV":             "", // another provider's of that length
		"":                                   "",
	} {
		if got := tagOf(id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
