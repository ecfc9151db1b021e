//go:build !unix

package guard

import "os"

// Around says that there is no guard: on this system local servers end with their
// input.
func Around(string, []string, *Sandbox) (program string, arguments []string, alive *os.File, ok bool) {
	return "", nil, nil, false
}
