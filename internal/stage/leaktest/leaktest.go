// Package leaktest runs the tests of a package and fails them when they leave
// goroutines behind.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines that have been told to end may take. Package goleak
// gives them half a second, which a busy machine may spend elsewhere.
const patience = 30 * time.Second

// Run runs the tests and returns the code to exit with: that of the tests, and 1 where
// they passed and goroutines go on.
func Run(m *testing.M) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	for began := time.Now(); ; {
		err := goleak.Find()
		if err == nil {
			return 0
		}
		if time.Since(began) > patience {
			fmt.Fprintln(os.Stderr, "the tests passed, and left goroutines behind:", err)
			return 1
		}
	}
}
