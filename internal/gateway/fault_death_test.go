package gateway

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Fault 1: a server over HTTP is killed while a call runs. The caller hears of it
// once, the call is never made again, and the next one works as soon as the server
// is back.
func TestFaultServerKilledMidStream(t *testing.T) {
	rounds := often(8, 500)
	for era, behind := range map[mcp.Era]fakemcp.Era{mcp.Modern: fakemcp.LegacyOnly, mcp.Legacy: fakemcp.ModernOnly} {
		t.Run(fmt.Sprintf("%s client, %s server", era, behind), func(t *testing.T) {
			t.Parallel()
			cfg := fakemcp.Config{Era: behind, SSE: true, Keep: 10, Tools: []fakemcp.Tool{
				{Name: "write", Delay: time.Hour, Do: fakemcp.Progress}, {Name: "echo"},
			}}
			m := newMortal(t, cfg)
			url := endpoint(t, map[string]servers.Config{"frail": {URL: m.URL}}, nil)
			c := dial(t, url, era)
			write, echo := tool(t, c, "write"), tool(t, c, "echo")
			var told, back times
			tries := 0
			for n := range rounds {
				type end struct {
					res dragoman.Result
					err error
					at  time.Time
				}
				ended := make(chan end, 1)
				running, early := context.WithCancel(within(t))
				go func() {
					res, err := call(within(t), c, write, n)
					ended <- end{res, err, time.Now()}
					early()
				}()
				if err := m.now().Wait(running, fakemcp.Ran+" write", 1); err != nil {
					select {
					case e := <-ended:
						t.Fatalf("round %d: the call ended before it ran: %v, %v, %v", n, e.res.Ran, e.res.Problem, e.err)
					default:
						t.Fatalf("round %d: %v", n, err)
					}
				}
				killed := time.Now()
				m.die("write", "echo")
				switch e := <-ended; {
				case e.err == nil && e.res.Problem == nil:
					t.Errorf("round %d: the killed call ended with %s", n, e.res.Content)
				case e.err == nil && e.res.Ran == dragoman.RanNot:
					t.Errorf("round %d: a call that ran is said not to have run: %v", n, e.res.Problem)
				default:
					told.add(e.at.Sub(killed))
				}
				m.live(cfg)
				revived := time.Now()
				eventually(t, "a call after the return", func() bool {
					res, err := call(within(t), c, echo, n)
					tries++
					return fine(res, err, n) == nil
				})
				back.add(time.Since(revived))
			}
			if got := m.executions("write"); got != rounds {
				t.Errorf("%d calls were executed %d times", rounds, got)
			}
			t.Logf("killed %d times: %d executions; the caller knew after %s; after the return a call worked after %s, with %d tries in %d rounds",
				rounds, m.executions("write"), &told, &back, tries, rounds)
		})
	}
}

// A dam is a TCP proxy that can stop letting anything through, without closing
// anything: a half-open connection.
type dam struct {
	net.Listener
	target string

	mu     sync.Mutex
	closed bool // nothing passes
	conns  []net.Conn
	wg     sync.WaitGroup
}

func newDam(t *testing.T, target string) *dam {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &dam{Listener: l, target: target}
	d.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.wg.Go(func() { d.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		d.mu.Lock()
		for _, c := range d.conns {
			_ = c.Close()
		}
		d.mu.Unlock()
		d.wg.Wait()
	})
	return d
}

func (d *dam) carry(c net.Conn) {
	out, err := net.Dial("tcp", d.target)
	if err != nil {
		_ = c.Close()
		return
	}
	d.mu.Lock()
	d.conns = append(d.conns, c, out)
	d.mu.Unlock()
	for _, way := range [][2]net.Conn{{c, out}, {out, c}} {
		d.wg.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			b := make([]byte, 4<<10)
			for {
				n, err := way[0].Read(b)
				if err != nil {
					return
				}
				if d.holds() {
					continue // it is lost on the way
				}
				if _, err := way[1].Write(b[:n]); err != nil {
					return
				}
			}
		})
	}
}

func (d *dam) holds() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

func (d *dam) hold(yes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = yes
}

// Fault 5: a connection that is open and carries nothing. Calls end at their
// deadline, nothing is left of them, and others work meanwhile.
func TestFaultHalfOpenConnection(t *testing.T) {
	behind := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	d := newDam(t, strings.TrimPrefix(web(t, behind), "http://"))
	other, _ := fakes(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	const deadline = 700 * time.Millisecond
	url := endpoint(t, map[string]servers.Config{"cut": {URL: "http://" + d.Addr().String() + "/mcp", Timeout: deadline}, "other": other}, nil)
	c := dial(t, url, mcp.Modern)
	cut, fineTool := tool(t, c, "cut__echo"), tool(t, c, "other__echo")
	eventually(t, "a call before", func() bool { // a slow machine may need more than one deadline
		res, err := call(within(t), c, cut, 1)
		return fine(res, err, 1) == nil
	})
	before := runtime.NumGoroutine()
	d.hold(true)
	var took times
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			began := time.Now()
			res, err := call(within(t), c, cut, n)
			took.add(time.Since(began))
			if err != nil || res.Problem == nil && !res.Failed {
				t.Errorf("a call into the void: %s, %v", res.Content, err)
			}
		})
	}
	for n := range 50 {
		if res, err := call(within(t), c, fineTool, n); fine(res, err, n) != nil {
			t.Errorf("the other server: %v", fine(res, err, n))
		}
	}
	wg.Wait()
	d.hold(false)
	eventually(t, "a call after the connection is back", func() bool {
		res, err := call(within(t), c, cut, 2)
		return fine(res, err, 2) == nil
	})
	t.Logf("16 calls with a deadline of %s: %s; goroutines %d before, %d after", deadline, &took, before, runtime.NumGoroutine())
}

// Fault 6: a server forgets a legacy session while other calls run in it. It is
// begun anew once, whoever notices; callers notice nothing.
func TestFaultSessionLost(t *testing.T) {
	const callers = 16
	entry, s := fakes(t, fakemcp.Config{
		Era:    fakemcp.LegacyOnly,
		Tools:  []fakemcp.Tool{{Name: "slow", Delay: 300 * time.Millisecond}, {Name: "echo"}},
		Faults: []fakemcp.Fault{{Kind: fakemcp.DropSession, Method: "tools/call", Tool: "echo", Times: 1}},
	})
	entry.MaxInFlight = 100
	c := dial(t, endpoint(t, map[string]servers.Config{"web": entry}, nil), mcp.Modern)
	slow, echo := tool(t, c, "slow"), tool(t, c, "echo")
	greeted := s.Count("initialize")
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			if res, err := call(within(t), c, slow, n); fine(res, err, n) != nil {
				t.Errorf("a call in flight: %v", fine(res, err, n))
			}
		})
	}
	if err := s.Wait(within(t), fakemcp.Ran+" slow", callers); err != nil {
		t.Fatal(err)
	}
	for n := range callers {
		wg.Go(func() {
			if res, err := call(within(t), c, echo, n); fine(res, err, n) != nil {
				t.Errorf("a call on the lost session: %v", fine(res, err, n))
			}
		})
	}
	wg.Wait()
	t.Logf("%d calls in flight and %d on the lost session: all answered; %d new sessions, %d and %d executions",
		callers, callers, s.Count("initialize")-greeted, s.Executions("slow"), s.Executions("echo"))
	if s.Count("initialize")-greeted != 1 || s.Executions("slow") != callers || s.Executions("echo") != callers {
		t.Error("each call runs once, in one new session")
	}
}

// Fault 7: one of twenty servers is dead. The others are listed and answer as
// before, and what is wrong with the dead one is said.
func TestFaultOneOfTwentyDead(t *testing.T) {
	all := map[string]servers.Config{}
	for i := range 19 {
		all[fmt.Sprintf("s%02d", i)], _ = fakes(t, fakemcp.Config{Count: 10})
	}
	m := newMortal(t, fakemcp.Config{Count: 10})
	all["dead"] = servers.Config{URL: m.URL, Timeout: time.Second}
	c := dial(t, endpoint(t, all, nil), mcp.Modern)
	list, err := c.List(t.Context())
	if err != nil || list.Tools.Len() < 200 {
		t.Fatalf("%d tools, %v", list.Tools.Len(), err)
	}
	round := func() string {
		var took times
		for i := range 190 {
			name := fmt.Sprintf("s%02d__tool_%05d", i%19, i/19)
			began := time.Now()
			res, err := call(within(t), c, list.Tools.Exact(name), i)
			took.add(time.Since(began))
			if err := fine(res, err, i); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		var refreshed times
		for range 20 {
			began := time.Now()
			if err := c.Refresh(within(t)); err != nil {
				t.Error(err)
			}
			refreshed.add(time.Since(began))
		}
		if now, err := c.List(within(t)); err != nil || now.Tools.Len() < 190 {
			t.Errorf("%d tools, %v", now.Tools.Len(), err)
		}
		return fmt.Sprintf("calls %s; lists %s", &took, &refreshed)
	}
	before := round()
	m.die()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	began := time.Now()
	res, err := call(ctx, c, list.Tools.Exact("dead__tool_00000"), 0)
	if err == nil && res.Problem == nil && !res.Failed {
		t.Errorf("a dead server answered %s", res.Content)
	}
	t.Logf("a call of the dead server ended after %s", time.Since(began).Round(time.Millisecond))
	after := round()
	t.Logf("twenty servers: %s", before)
	t.Logf("one of them dead: %s", after)
}
