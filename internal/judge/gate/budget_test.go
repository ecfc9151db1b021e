package gate

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A call that waits for its turn does not run yet: where the budget ends meanwhile, it does
// not begin, and counts for no day.
func TestBudgetEndsWhileACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), store.Config{Path: store.Memory})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		book := usage.New(db, nil)
		defer book.Close()
		turns := limit.Limit{Name: "turns", Concurrent: 1, Calls: 2}
		limits, err := limit.New(t.Context(), limit.Options{Limits: []limit.Limit{turns}})
		if err != nil {
			t.Fatal(err)
		}
		p := &place{T: t, inner: toolsettest.NewInner()}
		p.Gate = New(Options{
			Limit: limits, Usage: book, Price: func(*dragoman.Tool) int64 { return 10_000 },
			Budget: budget.New(budget.Options{Book: book, Budgets: []budget.Budget{{Cost: "0.01"}}}),
		})
		p.tools = p.Around(Client{Caller: ann}, p.inner)

		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan struct{})
		go func() {
			_, _ = p.tools.Call(ctx, p.call(toolsettest.Wait, `{}`))
			close(first)
		}()
		synctest.Wait()
		second := make(chan dragoman.Result)
		go func() { second <- p.run(p.call(toolsettest.Echo, `{}`)) }()
		synctest.Wait()
		cancel()
		<-first
		if res := <-second; code(res) != dragoman.CodeBudget || res.Ran != dragoman.RanNot || p.inner.Ran(toolsettest.Echo) != 0 {
			t.Errorf("%s, ran %d times", code(res), p.inner.Ran(toolsettest.Echo))
		}
		p.o.Budget.Use(nil)
		if res := p.run(p.call(toolsettest.Echo, `{}`)); code(res) != "ran" {
			t.Errorf("one of two calls of the day is left: %s", code(res))
		}
	})
}
