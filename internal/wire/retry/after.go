package retry

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// After reads how long a peer asks to be left in peace: a number of units, which are
// seconds in Retry-After, or a time (RFC 9110, section 10.2.3). Fractions are taken,
// too, since some send them. What has passed asks for nothing, and what is longer than
// a [time.Duration] for the longest one. What is neither, or empty, is an error: it is
// for the caller to say what that means.
func After(text string, unit time.Duration) (time.Duration, error) {
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0), nil
	}
	n, err := strconv.ParseFloat(text, 64)
	switch d := n * float64(unit); {
	case err != nil || math.IsNaN(d) || math.IsInf(d, 0):
		return 0, fmt.Errorf("%q is neither a time to wait nor one to come back at", text)
	case d >= math.MaxInt64:
		return math.MaxInt64, nil
	default:
		return max(time.Duration(d), 0), nil
	}
}
