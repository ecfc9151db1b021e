//go:build race

package cputime

// Slower is how many times slower code may be as it was compiled: the race detector looks
// at each access to memory.
const Slower = 10
