package fakemcp

import (
	"bytes"
	"fmt"
	"os"
)

// Alive reports whether the process runs. A zombie does not: who should reap it
// is not the question that tests ask.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name of the program, in parentheses, may hold anything.
	_, state, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return found && len(state) > 0 && state[0] != 'Z' && state[0] != 'X'
}
