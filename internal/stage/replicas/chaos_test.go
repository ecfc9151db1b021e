//go:build unix

package replicas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
)

// effects counts what calls of a server did, by what they say, where no gateway sees it.
type effects struct {
	server http.Handler
	mu     sync.Mutex
	done   map[string]int
}

func (e *effects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it did not arrive
	}
	var m struct {
		Method string
		Params struct{ Arguments struct{ Text string } }
	}
	if json.Unmarshal(body, &m) == nil && m.Method == "tools/call" {
		e.mu.Lock()
		e.done[m.Params.Arguments.Text]++
		e.mu.Unlock()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	e.server.ServeHTTP(w, r)
}

// chaos is what clients saw while replicas and the database were in trouble.
type chaos struct {
	*stage
	stop     context.Context
	mu       sync.Mutex
	answered map[string]bool // writes that were said to be done
	unknown  map[string]bool // writes of which nobody knows
	tries    atomic.Int64
}

// TestChaos: while replicas are killed and stopped, and the database crashes and hangs,
// clients write through tools, each write with a key under which they send it again until it
// is answered. No write has two effects, none that was answered has none, no answer is
// another's, each effect has its intent, and no approval lets two calls run.
func TestChaos(t *testing.T) { inChaos(t, false) }

// TestChaosWithoutNews: and so where a pooler stands before the database, and the replicas
// hear of nothing but what they look for.
func TestChaosWithoutNews(t *testing.T) { inChaos(t, true) }

func inChaos(t *testing.T, polling bool) {
	lasts, clients, pause, hang := 15*time.Second, 8, 2*time.Second, 2*time.Second
	if full() {
		lasts, clients, pause, hang = 5*time.Minute, 24, 32*time.Second, 10*time.Second
	}
	c := &chaos{answered: map[string]bool{}, unknown: map[string]bool{}}
	effects := &effects{done: map[string]int{}}
	c.stage = staged(t, plan{
		polling: polling,
		tools:   []fakemcp.Tool{{Name: "write", Delay: 20 * time.Millisecond}},
		config:  "audit: {arguments: full}\nhttp: {drain_timeout: 5s}",
		before:  func(h http.Handler) http.Handler { effects.server = h; return effects },
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.stop = ctx
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { c.write(i) })
	}
	all.Go(c.ask)
	all.Go(c.approve)
	c.trouble(lasts, pause, hang)
	cancel()
	all.Wait()
	c.judge(effects)
}

// kinds are how many kinds of trouble there are.
const kinds = 6

// trouble makes trouble until the time is over, and each kind once at the least.
func (c *chaos) trouble(lasts, pause, hang time.Duration) {
	next := time.NewTicker(1500 * time.Millisecond)
	defer next.Stop()
	began := time.Now()
	for n := 0; n < kinds || time.Since(began) < lasts; n++ {
		<-next.C
		switch i := n % c.Count(); {
		case n%kinds == 2:
			c.Signal(i, syscall.SIGSTOP)
			c.Balancer.Out(c.Replica(i).URL) // as its checks would
			c.sleep(pause)
			c.Signal(i, syscall.SIGCONT)
			c.Balancer.In(c.Replica(i).URL)
		case n%kinds == 4:
			crash(c.t, c.Store)
		case n%kinds == 5:
			signalAll(c.t, c.Store, syscall.SIGSTOP)
			c.sleep(hang)
			signalAll(c.t, c.Store, syscall.SIGCONT)
		default:
			c.Kill(i)
			c.Again(i)
		}
	}
}

// sleep is how long a trouble lasts.
func (c *chaos) sleep(d time.Duration) { <-time.After(d) }

// backends are the database's processes for the replicas.
func backends(t testing.TB, url string) (pids []int) {
	t.Helper()
	var all string
	eventually(t, "the database answers", func() (ok bool) {
		var err error
		all, err = pgtest.Try(url, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		return err == nil
	})
	for text := range strings.FieldsSeq(all) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// stopped are those that were stopped, and have to be woken.
var stopped sync.Map

// signalAll stops the database's processes, or wakes those that were stopped.
func signalAll(t testing.TB, url string, s syscall.Signal) {
	t.Helper()
	if s == syscall.SIGCONT {
		stopped.Range(func(pid, _ any) bool { _ = syscall.Kill(pid.(int), s); return true })
		stopped.Clear()
		return
	}
	for _, pid := range backends(t, url) {
		if syscall.Kill(pid, s) == nil {
			stopped.Store(pid, true)
		}
	}
}

// crash ends one of the database's processes, whereupon it ends all and recovers.
func crash(t testing.TB, url string) {
	t.Helper()
	if all := backends(t, url); len(all) > 0 {
		_ = syscall.Kill(all[rand.IntN(len(all))], syscall.SIGKILL)
	}
}

// write writes, one after another, each until it knows what came of it.
func (c *chaos) write(client int) {
	for n := 0; c.stop.Err() == nil; n++ {
		text := fmt.Sprintf("write %d of client %d", n, client)
		for tries := 0; ; tries++ {
			if tries == 200 {
				c.t.Errorf("%s: never an answer", text)
				return
			}
			c.tries.Add(1)
			ctx, cancel := context.WithTimeout(c.t.Context(), 40*time.Second)
			a, err := send(ctx, c.ann, "POST", c.URL+"/v1/tools/call", call("write", fmt.Sprintf(`{"text":%q}`, text)), "Idempotency-Key", text)
			cancel()
			if c.settled(text, a, err) {
				break
			}
			c.sleep(200 * time.Millisecond)
		}
	}
}

// settled notes what came of a write; false where it is to be sent again.
func (c *chaos) settled(text string, a answer, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil || a.status == http.StatusBadGateway || a.status >= 500:
		return false
	case a.status == http.StatusConflict && strings.Contains(a.body, "idempotency_answer_lost"):
		c.unknown[text] = true
	case a.status == http.StatusConflict || a.status == http.StatusTooManyRequests:
		return false
	case a.status == http.StatusOK && strings.Contains(a.body, "unknown_outcome"):
		c.unknown[text] = true
	case a.status == http.StatusOK && strings.Contains(a.body, `\"status\":\"error\"`):
		return false // it did not run, and says so
	case a.status == http.StatusOK:
		c.answered[text] = true
		if !strings.Contains(a.body, text+`\`) {
			c.t.Errorf("the answer to %s: %s", text, a.body)
		}
	default:
		c.t.Errorf("%s: %d %s", text, a.status, a.body)
	}
	return true
}

// ask makes calls that wait for somebody, and approve answers.
func (c *chaos) ask() {
	for n := 0; c.stop.Err() == nil; n++ {
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		_, _ = send(ctx, c.ann, "POST", c.URL+"/v1/tools/call", call("guarded", fmt.Sprintf(`{"text":"guarded %d"}`, n)))
		cancel()
	}
}

func (c *chaos) approve() {
	for c.stop.Err() == nil {
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		a, err := send(ctx, c.bea, "GET", c.URL+"/approvals", "")
		if err == nil && a.status == http.StatusOK {
			all, _ := at(c.t, a.body, "approvals").([]any)
			for _, each := range all {
				_, _ = send(ctx, c.bea, "POST", c.URL+"/approvals/"+each.(map[string]any)["id"].(string), `{"decision":"approve"}`)
			}
		}
		cancel()
		c.sleep(100 * time.Millisecond)
	}
}

// judge compares what was said with what was done and written down.
func (c *chaos) judge(e *effects) {
	t := c.t
	// What was done is looked at before what was written down: a replica may be about to do what
	// its client has given up, and writes that down first.
	e.mu.Lock()
	done := maps.Clone(e.done)
	e.mu.Unlock()
	check, records := c.audited(c.ledger())
	intents, spent := map[string]int{}, map[string]int{}
	for _, r := range records {
		switch {
		case r.Kind == audit.Intent:
			var said struct{ Text string }
			_ = json.Unmarshal(r.Arguments, &said)
			intents[said.Text]++
			if r.Approval != "" {
				spent[r.Approval]++
			}
		case r.Kind == audit.Approval && r.State == string(approval.Approved):
			spent[r.Approval]-- // answered, or given back
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for text := range done {
		if intents[text] == 0 {
			t.Errorf("%s was done, and nothing says that it was about to be", text)
		}
	}
	for text, n := range e.done {
		if n > 1 && strings.HasPrefix(text, "write") {
			t.Errorf("%s was done %d times", text, n)
		}
	}
	for text := range c.answered {
		if e.done[text] != 1 {
			t.Errorf("%s was said to be done, and was %d times", text, e.done[text])
		}
	}
	for id, n := range spent {
		if n > 0 {
			t.Errorf("approval %s let %d more calls run than it was given for", id, n)
		}
	}
	if len(c.answered) == 0 {
		t.Error("nothing was answered at all")
	}
	t.Logf("%d writes were answered and of %d nobody knows, in %d tries; %d approvals; %d records in %d logs",
		len(c.answered), len(c.unknown), c.tries.Load(), len(spent), check.Records, len(check.Logs))
}

// TestDrain: a replica that is to stop says so, lets what runs end, hands back what it runs
// for nobody who waits, and ends well.
func TestDrain(t *testing.T) {
	s := staged(t, plan{tools: []fakemcp.Tool{{Name: "slow", Do: fakemcp.Counter, Delay: time.Second}}, notice: 3 * time.Second})
	var ids []string
	for range 4 {
		a := s.do(s.ann, "POST", s.Replica(0).URL+"/v1/responses", `{"model":"rehearsal","background":true,"input":"CALL slow {}\nTHEN\nCALL slow {}\nSAY done"}`)
		ids = append(ids, at(t, a.body, "id").(string))
	}
	var meanwhile sync.WaitGroup
	meanwhile.Go(func() {
		a, err := send(t.Context(), s.ann, "POST", s.Replica(0).URL+"/v1/chat/completions", chat(user("CALL slow {}\nSAY done"), ""))
		if err != nil || a.status != http.StatusOK || !strings.Contains(a.body, "done") {
			t.Errorf("what ran: %d %s, %v", a.status, a.body, err)
		}
	})
	eventually(t, "the chat runs", func() bool { return s.tools.Log.Count("tools/call") > 0 })
	s.Signal(0, syscall.SIGTERM)
	draining := false
	eventually(t, "it says so", func() bool {
		a, err := send(t.Context(), s.ann, "GET", s.Replica(0).URL+"/readyz", "")
		draining = draining || err == nil && a.status == http.StatusServiceUnavailable && strings.HasPrefix(a.body, "draining")
		return draining || err != nil
	})
	if !draining {
		t.Error("/readyz never said so")
	}
	meanwhile.Wait()
	<-s.Replica(0).Ended()
	if !s.Replica(0).Clean() {
		t.Errorf("it ends with an error:\n%s", s.Replica(0).Log())
	}
	for _, id := range ids {
		events := s.do(s.ann, "GET", s.Replica(1).URL+"/v1/responses/"+id+"?stream=true", "").body
		if strings.Count(events, "event: response.completed") != 1 {
			t.Errorf("what it ran for nobody: %s", events)
		}
	}
	if n := s.tools.Log.Executions("slow"); n > 9 {
		t.Errorf("9 calls ran %d times", n)
	}
}
