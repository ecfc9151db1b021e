package toolkit

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// silent never answers; its input ends after one call.
type silent struct {
	sdk.Connection
	calls []*jsonrpc.Request
}

func (s *silent) Connect(context.Context) (sdk.Connection, error) { return s, nil }
func (s *silent) Close() error                                    { return nil }
func (s *silent) Read(context.Context) (jsonrpc.Message, error) {
	if len(s.calls) == 0 {
		return nil, io.EOF
	}
	next := s.calls[0]
	s.calls = s.calls[1:]
	return next, nil
}

func TestDrainIsBounded(t *testing.T) {
	one, err := jsonrpc.MakeID("one")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		call *jsonrpc.Request
		end  func(sdk.Connection, context.CancelFunc)
		want time.Duration
	}{
		{"never answered", &jsonrpc.Request{ID: one, Method: "tools/call"}, nil, drainTime},
		{"a notification", &jsonrpc.Request{Method: "notifications/initialized"}, nil, 0},
		{"a subscription", &jsonrpc.Request{ID: one, Method: "subscriptions/listen"}, nil, 0},
		{"closed", &jsonrpc.Request{ID: one, Method: "tools/call"}, func(c sdk.Connection, _ context.CancelFunc) { c.Close() }, time.Second},
		{"cancelled", &jsonrpc.Request{ID: one, Method: "tools/call"}, func(_ sdk.Connection, cancel context.CancelFunc) { cancel() }, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c, err := draining{Transport: &silent{calls: []*jsonrpc.Request{tt.call}}, until: t.Context()}.Connect(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if tt.end != nil {
					time.AfterFunc(time.Second, func() { tt.end(c, cancel) })
				}
				start := time.Now()
				if m, err := c.Read(ctx); m != tt.call || err != nil {
					t.Fatalf("first read: %v, %v", m, err)
				}
				if _, err := c.Read(ctx); !errors.Is(err, io.EOF) {
					t.Errorf("second read: %v, want %v", err, io.EOF)
				}
				if took := time.Since(start); took != tt.want {
					t.Errorf("the end of input was reported after %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// An open connection has one call, and then nothing.
type open struct{ silent }

func (o *open) Connect(context.Context) (sdk.Connection, error) { return o, nil }
func (o *open) Read(ctx context.Context) (jsonrpc.Message, error) {
	if len(o.calls) > 0 {
		return o.silent.Read(ctx)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestDrainUntil ends the input before its end.
func TestDrainUntil(t *testing.T) {
	one, err := jsonrpc.MakeID("one")
	if err != nil {
		t.Fatal(err)
	}
	for _, grace := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			until, end := context.WithTimeout(t.Context(), time.Second)
			defer end()
			asked := &jsonrpc.Request{ID: one, Method: "tools/call"}
			c, err := draining{&open{silent{calls: []*jsonrpc.Request{asked, asked}}}, until, grace}.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m, err := c.Read(t.Context()); m != asked || err != nil {
				t.Fatalf("first read: %v, %v", m, err)
			}
			start := time.Now()
			<-until.Done()
			if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("a read after the end: %v, want %v", err, io.EOF)
			}
			if took := time.Since(start); took != grace+time.Second {
				t.Errorf("the end was reported after %v, want %v", took, grace+time.Second)
			}
		})
	}
}
