package toolkit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		run     func(context.Context) (int, error)
		changes bool
		want    string
		took    time.Duration
	}{
		{"in time", func(context.Context) (int, error) { time.Sleep(time.Second); return 7, nil }, false, "", time.Second},
		{"looks at its context", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, false,
			"lookup did not finish within 3 seconds. Ask for less, or try again later.", 3 * time.Second},
		{"says so itself", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, Refuse("too slow") }, false, "too slow", 3 * time.Second},
		{"comes at the last moment", func(ctx context.Context) (int, error) { <-ctx.Done(); return 7, nil }, false, "", 3 * time.Second},
		{"looks at nothing", func(context.Context) (int, error) { time.Sleep(time.Minute); return 7, nil }, true,
			"lookup did not finish within 3 seconds. It may have been carried out all the same; look before you try again.", 3*time.Second + grace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewServer(Options{Name: "test-mcp-server"})
				start := time.Now()
				got, err := do(t.Context(), s, job{request: &Request{Kind: "tool"}, name: "lookup", timeout: 3 * time.Second, changes: tt.changes}, tt.run)
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				time.Sleep(time.Minute) // a bubble ends with all that is in it, also what was abandoned
				if tt.want == "" && (err != nil || got != 7) || tt.want != "" && (err == nil || err.Error() != tt.want) {
					t.Errorf("got %d, %v; want error %q", got, err, tt.want)
				}
			})
		})
	}
}

func TestCancellation(t *testing.T) {
	var trail sink
	s := newServer(t, Options{Audit: &trail})
	started, ended := make(chan struct{}), make(chan error, 1)
	Add(s, Tool{Name: "watch_door", Description: "Waits.", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	})
	session := dial(t, s, legacy, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "watch_door"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the function saw %v", err)
	}
	s.calls.wait(t.Context())
	if !strings.Contains(trail.String(), `"outcome":"canceled"`) {
		t.Errorf("audit: %s", trail.String())
	}
}

// TestExit has a function that ends its goroutine. Without a result the SDK would crash,
// or send a null.
func TestExit(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		var log sink
		s := newServer(t, Options{Logger: loggingTo(&log)})
		Add(s, Tool{Name: "get_exit", Description: "Exits.", Hints: reading}, func(context.Context, struct{}) (Text, error) {
			runtime.Goexit()
			return "", nil
		})
		if got := call(t, dial(t, s, version, nil), "get_exit", `{}`); !got.failed || !strings.HasPrefix(got.text, "Internal error in get_exit") {
			t.Errorf("%s: %+v", version, got)
		}
		if !strings.Contains(log.String(), "runtime.Goexit") {
			t.Errorf("%s: log: %s", version, log.String())
		}
	}
}

// TestErrorsThatPanic has errors whose own methods panic, as those of a nil pointer do
// that a function returns as an error: its caller is told, and the server lives on.
func TestErrorsThatPanic(t *testing.T) {
	var refusal *Refusal
	var path *fs.PathError
	for name, err := range map[string]error{
		"Refusal": refusal, "PathError": path, "wrapped": fmt.Errorf("saving: %w", path), "joined": errors.Join(Invalid("a", "wrong"), refusal),
	} {
		var log sink
		s := newServer(t, Options{Logger: loggingTo(&log)})
		Add(s, Tool{Name: "get_nil", Description: "Fails.", Hints: reading}, func(context.Context, struct{}) (Text, error) {
			return "", err
		})
		c := dial(t, s, modern, nil)
		for range 2 {
			if got := call(t, c, "get_nil", `{}`); !got.failed || !strings.HasPrefix(got.text, "Internal error in get_nil") {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if !strings.Contains(log.String(), "nil pointer") {
			t.Errorf("%s: log: %s", name, log.String())
		}
	}
}

func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{Name: "test-mcp-server", Rate: Rate{PerSecond: 100, Burst: 100}})
		tool := newBudget(Rate{PerSecond: 0.5, Burst: 2}, Rate{})
		try := func() error {
			_, err := do(t.Context(), s, job{request: &Request{Kind: "tool"}, name: "x", timeout: time.Minute, own: tool},
				func(context.Context) (int, error) { return 0, nil })
			return err
		}
		for range 2 {
			if err := try(); err != nil {
				t.Fatal(err)
			}
		}
		err := try()
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || refusal.Code != "retry_later" || refusal.RetryAfter != 2*time.Second {
			t.Fatalf("third call: %#v", err)
		}
		if want := "Too many calls. Try again in 2 seconds."; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		// Being refused costs nothing, so the wait that was named is enough.
		time.Sleep(refusal.RetryAfter)
		if err := try(); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
}

func TestProgress(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			s := newServer(t, Options{})
			Add(s, Tool{Name: "count_sheep", Description: "Counts.", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
				for _, done := range []float64{1, 2, 2, 1, 4} { // only what grows is sent
					Progress(ctx, done, 4, "sheep")
				}
				return "asleep", nil
			})
			type report struct {
				Done, Total float64
				Text        string
			}
			var seen []report
			last := make(chan struct{})
			session := dial(t, s, version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
					seen = append(seen, report{req.Params.Progress, req.Params.Total, req.Params.Message})
					if req.Params.Progress == req.Params.Total {
						close(last)
					}
				},
			})
			if got := call(t, session, "count_sheep", `{}`); got.text != "asleep" {
				t.Errorf("without a token: %+v", got)
			}
			params := &sdk.CallToolParams{Name: "count_sheep"}
			params.SetProgressToken("p")
			if _, err := session.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			<-last
			if diff := cmp.Diff([]report{{1, 4, "sheep"}, {2, 4, "sheep"}, {4, 4, "sheep"}}, seen); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	Progress(t.Context(), 1, 2, "outside a call it does nothing")
}

// TestProgressOfOthers has a prompt and a resource that tell how far they are.
func TestProgressOfOthers(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			s := newServer(t, Options{})
			AddPrompt(s, Prompt{Name: "plan_day", Description: "x"}, func(ctx context.Context, _ struct{}) (Messages, error) {
				Progress(ctx, 1, 2, "plan")
				return Messages{}, nil
			})
			AddResource(s, Resource{URI: "notes://all", Name: "notes", Description: "x"}, func(ctx context.Context) (Contents, error) {
				Progress(ctx, 1, 2, "notes")
				return Contents{Text: "x"}, nil
			})
			seen := make(chan string, 2)
			session := dial(t, s, version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
					seen <- fmt.Sprint(req.Params.ProgressToken, ": ", req.Params.Message)
				},
			})
			prompt := &sdk.GetPromptParams{Name: "plan_day"}
			prompt.SetProgressToken("p")
			if _, err := session.GetPrompt(t.Context(), prompt); err != nil {
				t.Fatal(err)
			}
			if got := <-seen; got != "p: plan" {
				t.Errorf("of the prompt: %s", got)
			}
			resource := &sdk.ReadResourceParams{URI: "notes://all"}
			resource.SetProgressToken("r")
			if _, err := session.ReadResource(t.Context(), resource); err != nil {
				t.Fatal(err)
			}
			if got := <-seen; got != "r: notes" {
				t.Errorf("of the resource: %s", got)
			}
		})
	}
}
