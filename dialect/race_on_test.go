//go:build race

package dialect

// thinned is of how many tools of the corpus one is converted: the race detector
// makes conversion ten times slower. Without it, and in "make judge", all are.
const thinned = 8
