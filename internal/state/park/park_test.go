package park

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var expired []string
		lot := Lot[int]{Total: 3, Each: 2, Expired: func(key string, _ int) {
			mu.Lock()
			defer mu.Unlock()
			expired = append(expired, key)
		}}
		for _, step := range []struct {
			owner, key string
			want       bool
			why        string
		}{
			{"a", "1", true, "the first"},
			{"a", "1", false, "the key is taken"},
			{"a", "2", true, "the second of a"},
			{"a", "3", false, "a has two"},
			{"b", "4", true, "the third"},
			{"c", "5", false, "the lot is full"},
		} {
			if got := lot.Park(step.owner, step.key, 7, time.Minute); got != step.want {
				t.Errorf("Park(%s, %s) = %v: %s", step.owner, step.key, got, step.why)
			}
		}
		if v, ok := lot.Take("1"); !ok || v != 7 {
			t.Errorf("Take = %d, %v", v, ok)
		}
		if _, ok := lot.Take("1"); ok {
			t.Error("a value was taken twice")
		}
		if !lot.Park("a", "6", 8, 2*time.Minute) {
			t.Error("no room after a value was taken")
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		mu.Lock()
		if len(expired) != 2 || lot.Len() != 1 {
			t.Errorf("expired %v, %d left", expired, lot.Len())
		}
		mu.Unlock()
		if all := lot.TakeAll(); len(all) != 1 || all[0] != 8 || lot.Len() != 0 {
			t.Errorf("TakeAll = %v", all)
		}
	})
}
