package servers

import (
	"strings"
	"testing"
)

// A sandbox that cannot be enforced as it is wanted says so, and how to go on.
func TestEnforceable(t *testing.T) {
	for _, tt := range []struct {
		name    string
		box     Sandbox
		abi     int
		seccomp bool
		want    string // a part of the error; empty for none
	}{
		{"all there is", Sandbox{Enforce: Strict}, 7, true, ""},
		{"the least", Sandbox{Enforce: Strict}, 3, true, ""},
		{"no Landlock", Sandbox{Enforce: Strict}, 0, true, "no Landlock"},
		{"an old one", Sandbox{Enforce: Strict}, 2, true, "version 2 of Landlock"},
		{"no seccomp", Sandbox{Enforce: Strict}, 7, false, "no seccomp"},
		{"no seccomp, nor need", Sandbox{Enforce: Strict, Network: true}, 7, false, ""},
		{"nothing", Sandbox{Enforce: BestEffort}, 0, false, ""},
	} {
		err := tt.box.enforceable(tt.abi, tt.seccomp)
		if tt.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "enforce: best-effort") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
