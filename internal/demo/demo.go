package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options configure a [Demo]. The zero value works.
type Options struct {
	// Logger receives trouble inside the server, never arguments or results.
	// Nil logs nothing.
	Logger *slog.Logger

	// Hosts are names, without port, under which [Demo.Handler] may be reached
	// besides loopback. Nil: loopback only.
	Hosts []string

	// Version is announced to clients as the server's version. Empty: "dev".
	Version string
}

// A Demo is the demo MCP server and the state behind it: the records that were
// created and the scratch folder. It is safe for concurrent use.
type Demo struct {
	log    *slog.Logger
	server *sdk.Server
	hosts  []string

	records records
	scratch scratch

	ctx  context.Context // ends with Close, and with it every connection
	stop context.CancelFunc

	mu     sync.Mutex // guards closed, and pipes against Close
	closed bool
	pipes  sync.WaitGroup
}

// errClosed is what every way in answers after [Demo.Close].
var errClosed = errors.New("demo: closed")

const instructions = "Demo server on bundled data; nothing here reaches the network. " +
	"Places may be named in English or Chinese (城市名可用中文或英文), answers follow the language of the name."

// New makes a demo server. It does no I/O and starts nothing, so it costs
// next to nothing until something connects.
func New(opts Options) *Demo {
	d := &Demo{log: opts.Logger, hosts: opts.Hosts}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	version := opts.Version
	if version == "" {
		version = "dev"
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.server = sdk.NewServer(
		&sdk.Implementation{Name: "dragoman-demo", Title: "Dragoman demo", Version: version},
		&sdk.ServerOptions{
			Instructions: instructions,
			Logger:       opts.Logger,
			// The SDK announces logging unless told otherwise; we never log to clients.
			Capabilities:      &sdk.ServerCapabilities{},
			CompletionHandler: complete,
		},
	)
	add(d, weatherTool, getWeather)
	add(d, restaurantTool, findRestaurant)
	add(d, employeeTool, queryEmployeeTree)
	add(d, sumTool, calculateSum)
	add(d, csvTool, d.analyzeCSV)
	add(d, recordTool, d.records.create)
	add(d, deleteTool, d.deleteFile)
	d.addResources()
	d.addPrompt()
	return d
}

// Server returns the official SDK's server, for callers who bring their own
// transport. All connections made through d share it.
func (d *Demo) Server() *sdk.Server { return d.server }

// Close ends every connection, waits for those made by [Demo.Pipe] to wind up,
// and removes the scratch folder if there is one. Later connections are refused.
// It may be called more than once.
func (d *Demo) Close() error {
	d.mu.Lock()
	already := d.closed
	d.closed = true
	d.mu.Unlock()
	if already {
		return nil
	}
	d.stop()
	for s := range d.server.Sessions() {
		// Sessions without an id live on a stream and end with d.ctx. Closing them
		// here would wait for a peer that may have stopped reading.
		if s.ID() != "" {
			s.Close()
		}
	}
	d.pipes.Wait()
	return d.scratch.close()
}

// bound is ctx, ended by Close too.
func (d *Demo) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.ctx, func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// enter counts a pipe in, so that Close can wait for it.
func (d *Demo) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	d.pipes.Add(1)
	return nil
}

// ServeStdio speaks newline-delimited JSON-RPC, in both eras, on in and out
// until in ends, ctx is cancelled or d is closed. The end of in is no error,
// nor is Close; a cancelled ctx answers with its cause. Calls under way when in
// ends are still answered, if that takes no longer than five seconds.
//
// Neither stream is closed. A read of in that is under way at the end stays
// blocked until in delivers, as a read of a terminal does, and a write to out
// that is under way is waited for.
func (d *Demo) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if d.ctx.Err() != nil {
		return errClosed
	}
	ctx, cancel := d.bound(ctx)
	defer cancel()
	return d.serve(ctx, io.NopCloser(in), unclosed{out})
}

func (d *Demo) serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	err := d.server.Run(ctx, draining{&sdk.IOTransport{Reader: in, Writer: out}})
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed), err == nil, errors.Is(err, io.EOF):
		return nil
	case cause != nil:
		return cause
	default:
		return fmt.Errorf("demo: serve: %w", err)
	}
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// Pipe connects inside this process: what is written to w are lines for the
// server, what is read from r are lines from it, exactly as with a child
// process's standard input and output.
//
// Closing w ends the session as the end of in does in [Demo.ServeStdio], and r
// then ends with [io.EOF]. Closing r, the end of ctx and [Demo.Close] end it at
// once and drop what was not read yet. Pipes have no buffer: a caller that stops
// reading stops the server.
func (d *Demo) Pipe(ctx context.Context) (r io.ReadCloser, w io.WriteCloser) {
	in, w := io.Pipe()
	r, out := io.Pipe()
	if err := d.enter(); err != nil {
		in.CloseWithError(err)
		out.CloseWithError(err)
		return r, w
	}
	ctx, cancel := d.bound(ctx)
	go func() {
		defer d.pipes.Done()
		defer cancel()
		// A write that nobody reads would hold up the end of the session.
		defer context.AfterFunc(ctx, func() { in.Close(); out.Close() })()
		err := d.serve(ctx, in, out)
		if ctx.Err() != nil {
			err = nil
		}
		in.Close()
		out.CloseWithError(err) // nil reads as io.EOF
	}()
	return hangUp{r, in}, w
}

// hangUp is the reading end of a Pipe. Closing it closes the other direction
// as well: an idle server would otherwise not notice that nobody listens.
type hangUp struct {
	io.ReadCloser
	in *io.PipeReader
}

func (h hangUp) Close() error {
	h.in.Close()
	return h.ReadCloser.Close()
}
