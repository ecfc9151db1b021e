package credential

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// A single store has one entry, and the clock of its process.
type single struct {
	Store
	mu    sync.Mutex
	entry Entry
}

func (s *single) Update(_ Account, change func(*Entry, time.Time) error) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry
	err := change(&e, time.Now())
	if err == nil {
		s.entry = e
	}
	return e, err
}

// Whoever waits leaves every claim that is over to its maker for a while, and not only the
// first of them that it sees.
func TestEveryClaimHasItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := Entry{Refresh: secret.New("r"), Renewing: time.Now().Add(-claimLife)}
		s := &single{entry: old}
		k := &kept{store: s, client: &http.Client{}} // which reaches nothing: there is no URL
		var waited time.Duration
		var wg sync.WaitGroup
		start := time.Now()
		wg.Go(func() {
			_, _ = k.claimed(t.Context(), old)
			waited = time.Since(start)
		})
		time.Sleep(claimGrace / 2)
		_, _ = s.Update(Account{}, func(e *Entry, now time.Time) error { // another process was first
			e.Renewing = now
			return nil
		})
		wg.Wait()
		if least := claimGrace/2 + claimLife + claimGrace; waited < least {
			t.Errorf("the second claim was taken over %s early", least-waited)
		}
	})
}
