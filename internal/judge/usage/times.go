package usage

import (
	"math"
	"time"
)

// Times say how long calls took: how many of them took no longer than a millisecond, two,
// four, and so on; the last, how many took longer than all of that. They add up, over hours,
// callers and processes, and what they say of a share of the calls is right to within the
// bounds of its count, a factor of two.
type Times [20]int64

// bound is the longest time that is counted at a place, but for the last.
func bound(at int) time.Duration { return time.Millisecond << at }

// took is the count of one call.
func took(d time.Duration) (t Times) {
	at := 0
	for at < len(t)-1 && d > bound(at) {
		at++
	}
	t[at] = 1
	return t
}

// Add adds counts.
func (t *Times) Add(more Times) {
	for i, n := range more {
		t[i] += n
	}
}

// Within returns how long a share of the calls, from 0 to 1, took at most, by the ratio
// between the bounds that it falls between; 0 where nothing is counted. Of calls that took
// longer than all bounds it knows no more than the last.
func (t *Times) Within(share float64) time.Duration {
	var all int64
	for _, n := range t {
		all += n
	}
	if all == 0 {
		return 0
	}
	wanted := share * float64(all)
	last := len(t) - 1
	var before float64
	for at, n := range t[:last] {
		here := float64(n)
		if n > 0 && before+here >= wanted {
			part := (wanted - before) / here
			return time.Duration(float64(bound(at)) * math.Exp2(part-1)).Round(time.Microsecond)
		}
		before += here
	}
	return bound(last - 1)
}

// Used is the sum of one call, or of one message of a model, that took so long.
func Used(d time.Duration) Sum {
	return Sum{Calls: 1, Micros: d.Microseconds(), Times: took(d)}
}
