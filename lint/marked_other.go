//go:build !linux

package lint

// Without /proc nobody can tell where a process in a session of its own came from.

func leftBehind(string) []int { return nil }

func endAll([]int) {}
