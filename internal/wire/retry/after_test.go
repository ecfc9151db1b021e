package retry

import (
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// What three readers of Retry-After said before there was one, each of something.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			text string
			unit time.Duration
			want time.Duration // -1: an error
		}{
			{"7", time.Second, 7 * time.Second},
			{"0", time.Second, 0},
			{"-7", time.Second, 0},
			{"1.5", time.Second, 1500 * time.Millisecond}, // servers and services were not heard
			{"2500", time.Millisecond, 2500 * time.Millisecond},
			{"999999999999", time.Second, math.MaxInt64}, // nor was this, at a model's API
			{time.Now().Add(5 * time.Second).UTC().Format(http.TimeFormat), time.Second, 5 * time.Second},
			{time.Now().Add(-5 * time.Second).UTC().Format(http.TimeFormat), time.Second, 0},
			{"Saturday, 01-Jan-00 00:00:09 GMT", time.Second, 9 * time.Second},
			{"", time.Second, -1},
			{"soon", time.Second, -1},
			{"1m2", time.Second, -1}, // was a minute and two seconds at a model's API
			{"NaN", time.Second, -1},
			{"inf", time.Second, -1},
			{"1e999", time.Second, -1},
		} {
			got, err := After(tt.text, tt.unit)
			if err != nil {
				got = -1
			}
			if got != tt.want {
				t.Errorf("%q: %v, %v; want %v", tt.text, got, err, tt.want)
			}
		}
	})
}
