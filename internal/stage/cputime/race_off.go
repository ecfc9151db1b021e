//go:build !race

package cputime

// Slower is how many times slower code may be as it was compiled: not at all.
const Slower = 1
