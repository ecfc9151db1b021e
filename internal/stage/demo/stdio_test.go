package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestServeStdio(t *testing.T) {
	d := newDemo(t)
	in := strings.NewReader(strings.Join([]string{
		initialize,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"get_weather","arguments":{"city":"北京"}}}`,
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"analyze_csv","arguments":{"filepath":"reports/expenses.csv"}}}`,
	}, "\n") + "\n")
	var out bytes.Buffer
	if err := d.ServeStdio(t.Context(), in, &out); err != nil {
		t.Errorf("ServeStdio at the end of input: %v", err)
	}
	// What was asked before the end is answered after it.
	for _, want := range []string{`"id":7`, `"id":8`, `"condition":"多云"`, `"id":9`, `"average":21.333333`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, out.String())
		}
	}
	if got := strings.Count(out.String(), "\n"); got != 3 {
		t.Errorf("%d lines, want 3:\n%s", got, out.String())
	}
}

func TestServeStdioEnds(t *testing.T) {
	gone := errors.New("the user left")
	for _, tt := range []struct {
		name string
		end  func(*Demo, context.CancelCauseFunc)
		want error
	}{
		{"cancelled", func(_ *Demo, cancel context.CancelCauseFunc) { cancel(gone) }, gone},
		{"closed", func(d *Demo, _ context.CancelCauseFunc) { d.Close() }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDemo(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			in, w := io.Pipe()
			defer w.Close()
			ended := make(chan error)
			go func() { ended <- d.ServeStdio(ctx, in, io.Discard) }()
			if _, err := io.WriteString(w, initialize+"\n"); err != nil {
				t.Fatal(err)
			}
			tt.end(d, cancel)
			if err := <-ended; !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestServeStdioGarbage(t *testing.T) {
	d := newDemo(t)
	var out bytes.Buffer
	err := d.ServeStdio(t.Context(), strings.NewReader("hello\n"+initialize+"\n"), &out)
	if err != nil || !strings.Contains(out.String(), `"code":-32700`) || !strings.Contains(out.String(), `"serverInfo"`) {
		t.Errorf("after a line that is not JSON: %v, %s", err, out.String())
	}
}

func TestAfterClose(t *testing.T) {
	d := New(Options{})
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.ServeStdio(t.Context(), strings.NewReader(""), io.Discard); !errors.Is(err, errClosed) {
		t.Errorf("ServeStdio: %v", err)
	}
	r, w := d.Pipe(t.Context())
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, errClosed) {
		t.Errorf("Pipe read: %v", err)
	}
	if _, err := io.WriteString(w, "x"); !errors.Is(err, errClosed) {
		t.Errorf("Pipe write: %v", err)
	}
}

// BenchmarkNew keeps the constructor cheap: commands build a Demo before they
// know whether anybody will use it.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if err := New(Options{}).Close(); err != nil {
			b.Fatal(err)
		}
	}
}
