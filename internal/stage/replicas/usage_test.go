//go:build unix

package replicas_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// counted is how many calls the rows of usage have, with what was being written when it was
// asked for: no transaction that writes some is open.
func (s *stage) counted(db *store.DB) (n int64) {
	s.t.Helper()
	if err := db.Write(context.Background(), func(tx *store.Tx) error {
		if _, err := tx.Exec("LOCK TABLE usage IN SHARE MODE"); err != nil {
			return err
		}
		return tx.Row("SELECT CAST(coalesce(sum(calls), 0) AS BIGINT) FROM usage", nil, &n)
	}); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// A replica that is killed while it serves: what was written stays, what was not is lost, and
// nothing is counted twice, neither by what the replica was just writing nor by the one that
// comes in its place.
func TestUsageSurvivesAKill(t *testing.T) {
	s := staged(t, plan{})
	db := s.ledger().DB
	body := call("count", "{}")
	var before int64 // that all processes have written, with nothing pending
	kills := 2
	if full() {
		kills = 20
	}
	for range kills {
		var begun, done atomic.Int64
		var mu sync.Mutex
		var ended []time.Time
		ctx, stop := context.WithCancel(t.Context())
		at := s.Replica(0).URL
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() {
				for ctx.Err() == nil {
					begun.Add(1)
					a, err := send(ctx, s.ann, "POST", at+"/v1/tools/call", body)
					if err != nil {
						return // it is gone
					}
					if a.status != http.StatusOK {
						t.Errorf("%d %s", a.status, a.body)
						return
					}
					done.Add(1)
					mu.Lock()
					ended = append(ended, time.Now())
					mu.Unlock()
				}
			})
		}
		// Twice something was written while more came: then it is killed, in the middle.
		var written int64
		eventually(t, "usage is written", func() bool { written = s.counted(db) - before; return written > 0 })
		eventually(t, "more usage is written", func() bool {
			n := s.counted(db) - before
			more := n > written
			written = n
			return more
		})
		killed := time.Now()
		s.Kill(0)
		stop()
		work.Wait()
		now := s.counted(db) - before
		if now < written || now > begun.Load() {
			t.Errorf("%d calls were written, %d were begun, and now there are %d", written, begun.Load(), now)
		}
		old := int64(0)
		for _, end := range ended {
			if killed.Sub(end) > 5*time.Second {
				old++
			}
		}
		t.Logf("%d calls were answered, %d of them more than 5 s before the kill; %d are lost", done.Load(), old, done.Load()-now)
		if now < old && !patience.Busy() {
			t.Errorf("%d calls were answered more than 5 s before, and %d are counted", old, now)
		}

		s.Again(0)
		const more = 10
		for range more {
			s.do(s.ann, "POST", s.Replica(0).URL+"/v1/tools/call", body)
			s.do(s.ann, "POST", s.Replica(1).URL+"/v1/tools/call", body)
		}
		eventually(t, "what came later is written", func() bool { return s.counted(db)-before >= now+2*more })
		if after := s.counted(db) - before; after != now+2*more {
			t.Errorf("%d calls, %d behind the kill, are counted as %d", now, 2*more, after)
		}
		before = s.counted(db)
	}
	rows, err := usage.Read(t.Context(), db, usage.Query{By: []string{usage.ByTool}})
	if err != nil || len(rows) != 1 || rows[0].Tool != "count" || rows[0].Errors != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
}
