//go:build !race

package dialect

const thinned = 1
