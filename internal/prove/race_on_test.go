//go:build race

package prove

// slower is how many times the race detector makes work longer.
const slower = 5
