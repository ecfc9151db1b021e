package safehttp

import (
	"context"
	"testing"
)

// Other failures are no certificate's; e2e TestFaultCertificates has those that are.
func TestCertificateOfOthers(t *testing.T) {
	for _, err := range []error{nil, context.Canceled} {
		if said := Cause(err); said != "" {
			t.Errorf("%v: %s", err, said)
		}
	}
}
