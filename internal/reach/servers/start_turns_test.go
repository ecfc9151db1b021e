package servers

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A lateServer refuses connections until it comes.
type lateServer struct {
	comes time.Time
	fails error
	then  http.Handler
	tries int
}

func (l *lateServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if time.Now().Before(l.comes) {
		l.tries++
		return nil, l.fails
	}
	body, w := io.Pipe()
	answer := &answering{header: http.Header{}, status: make(chan int, 1), body: w}
	go func() {
		l.then.ServeHTTP(answer, r)
		answer.WriteHeader(http.StatusOK)
		w.Close()
	}()
	select {
	case status := <-answer.status:
		return &http.Response{StatusCode: status, Header: answer.header.Clone(), Body: body, Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// An answering is an answer on its way, without a network that a test would wait for.
type answering struct {
	header http.Header
	status chan int
	once   sync.Once
	body   io.Writer
}

func (a *answering) Header() http.Header    { return a.header }
func (a *answering) WriteHeader(status int) { a.once.Do(func() { a.status <- status }) }
func (a *answering) Flush()                 { a.WriteHeader(http.StatusOK) }

func (a *answering) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// Issue 17, D5: a server over HTTP that comes late is used within 2 s of its coming; one
// that failed otherwise, within the longest pause.
func TestLateServerIsUsedSoon(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	tests := map[string]struct {
		fails error
		after time.Duration
		soon  bool
	}{
		"nobody listens":           {refused, 3 * time.Minute, true},
		"nobody listens for hours": {refused, 3 * time.Hour, true},
		"a name that comes":        {&net.DNSError{Err: "no such host", Name: "it", IsNotFound: true}, 4 * time.Minute, true},
		"a name that does not":     {&net.DNSError{Err: "no such host", Name: "it", IsNotFound: true}, 3 * time.Hour, false},
		"something else":           {errors.New("broken"), 3 * time.Minute, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late := &lateServer{comes: time.Now().Add(tt.after), fails: tt.fails, then: fakemcp.New(fakemcp.Config{Tools: echo})}
				var log records
				o := builtin(func(context.Context) mcp.Transport {
					return mcp.HTTP{URL: "http://it.test/mcp", Client: &http.Client{Transport: late}}
				})
				o.Logger = log.logger()
				s := open(t, map[string]Config{"it": {URL: "http://it.test/mcp"}}, o)
				within := 2 * time.Second
				if !tt.soon {
					within = maxPause + maxPause/4 + time.Second
				}
				time.Sleep(tt.after + within)
				synctest.Wait()
				if at := state(s); at.State != dragoman.Connected {
					t.Errorf("not connected %s after it came: %+v", within, at)
				}
				if lines := log.with("server failed"); len(lines) > 5 {
					t.Errorf("%d lines in the log for one server that is not there (%d tries)", len(lines), late.tries)
				}
			})
		})
	}
}

// A server that comes and goes has both in the log, each time.
func TestServerThatComesAndGoesInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := piped(fakemcp.New(fakemcp.Config{Tools: echo}))
		var log records
		o := builtin(func(ctx context.Context) mcp.Transport {
			pipe := connect(ctx).(*mcp.Pipe)
			time.AfterFunc(2*time.Second, func() { _ = pipe.Writer.Close() })
			return pipe
		})
		o.Logger = log.logger()
		open(t, map[string]Config{}, o)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		came, went := len(log.with("server connected")), len(log.with("server failed"))
		if came < 10 || went < came-1 {
			t.Errorf("it came %d times and went %d times", came, went)
		}
	})
}

// Issue 17, D5: where many local servers start together, they start a few at a time, and
// those that hang hold up nobody for longer than their turns.
func TestStartsAreStaggered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := make(turns, 2)
		begin := time.Now()
		var ends []func()
		for i := range 6 {
			done, err := turns.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, done)
			if at, want := time.Since(begin), time.Duration(i/2)*turnTime; at != want {
				t.Errorf("start %d came after %s, want %s", i, at, want)
			}
		}
		for _, done := range ends {
			done()
			done()
		}
		if len(turns) != 0 {
			t.Errorf("%d turns are still taken", len(turns))
		}
		// One that is there at once makes room at once.
		before := time.Now()
		for range 10 {
			done, err := turns.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			done()
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("ten quick starts took %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		turns <- struct{}{}
		turns <- struct{}{}
		if _, err := turns.take(ctx); err != context.Canceled {
			t.Errorf("take = %v after its end", err)
		}
	})
}

// Issue 17, D5: what a server printed where its messages go is a reason why it does not
// come, while it is waited for and when it is given up.
func TestServerThatPrintsIsExplained(t *testing.T) {
	config := Config{Command: "sh", Args: []string{"-c", "echo 'Server listens on port 3000'; exec sleep 60"}, StartupTimeout: 3 * time.Second}
	s := openOne(t, config, Options{})
	eventually(t, "the line was seen", func() bool { return strings.Contains(s.Said("it"), "Server listens on port 3000") })
	settle(t, s)
	st := state(s)
	if st.Problem == nil || !strings.Contains(st.Problem.Message, "where its messages go it wrote what is none: Server listens on port 3000") || !strings.Contains(st.Problem.Message, "startup_timeout") {
		t.Errorf("%+v", st.Problem)
	}
	if s.Said("nobody") != "" {
		t.Error("a server that there is not said something")
	}
}
