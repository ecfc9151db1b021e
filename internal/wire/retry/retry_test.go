package retry

import (
	"testing"
	"testing/synctest"
	"time"
)

// Where everything fails, a tenth is sent again, and a little beside.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Budget
		spend := func() (n int) {
			for b.Spend() {
				n++
			}
			return n
		}
		if n := spend(); n != reserve {
			t.Errorf("%d at the beginning", n)
		}
		again := 0
		const seconds, rate = 60, 500
		for range seconds * rate {
			<-time.After(time.Second / rate)
			b.Sent()
			if b.Spend() {
				again++
			}
		}
		if again < seconds*rate/10 || again > seconds*rate/10+seconds+1 {
			t.Errorf("%d of %d were sent again", again, seconds*rate)
		}
		<-time.After(time.Hour)
		if n := spend(); n != reserve {
			t.Errorf("%d after a rest", n)
		}
	})
}
