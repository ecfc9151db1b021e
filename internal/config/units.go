package config

import (
	"math"
	"strconv"
	"strings"
	"time"
)

var sizeUnits = []struct {
	name   string
	factor int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1}, {"", 1},
}

// parseSize reads a size in bytes: a whole number, and a unit if it is not
// bytes.
func parseSize(text string) (int64, bool) {
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimRight(number, " "), 10, 64)
		if err != nil || n > math.MaxInt64/unit.factor || n < math.MinInt64/unit.factor {
			return 0, false
		}
		return n * unit.factor, true
	}
	return 0, false
}

// formatSize writes a size the way parseSize reads it, as short as it is exact.
func formatSize(n int64) string {
	for _, unit := range sizeUnits[:3] {
		if n != 0 && n%unit.factor == 0 {
			return strconv.FormatInt(n/unit.factor, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// formatDuration writes a duration without parts that are zero: 2m, not 2m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
