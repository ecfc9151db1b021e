package toolkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio speaks newline-delimited JSON-RPC, in both eras, on in and out
// until in ends, ctx is cancelled or the server is closed. The end of in is no
// error, nor is Close; a cancelled ctx answers with its cause. Calls under way
// when in ends are still answered, if that takes no longer than five seconds.
// Whoever speaks there is the [Owner], unless ctx says otherwise, see [As].
//
// Neither stream is closed. A read of in that is under way at the end stays
// blocked until in delivers, as a read of a terminal does, and a write to out
// that is under way is waited for.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.serveUntil(ctx, ctx, 0, in, out)
}

// serveUntil is ServeStdio that takes nothing more when until ends, and then answers what
// was asked before within grace.
func (s *Server) serveUntil(ctx, until context.Context, grace time.Duration, in io.Reader, out io.Writer) error {
	if s.ctx.Err() != nil {
		return errClosed
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return s.serve(ctx, until, grace, io.NopCloser(in), unclosed{out})
}

func (s *Server) serve(ctx, until context.Context, grace time.Duration, in io.ReadCloser, out io.WriteCloser) error {
	server, err := s.SDK()
	if err != nil {
		return err
	}
	stream := newLines(in, out)
	err = server.Run(asOwner(ctx), draining{&sdk.IOTransport{Reader: stream, Writer: stream.writer()}, until, grace})
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed):
		return nil
	case cause != nil:
		return cause
	case err == nil, errors.Is(err, io.EOF):
		return nil
	default:
		return fmt.Errorf("toolkit: serve: %w", err)
	}
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// enter counts a pipe in, so that Close can wait for it.
func (s *Server) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.pipes.Add(1)
	return nil
}

// Pipe connects inside this process: what is written to w are lines for the
// server, what is read from r are lines from it, exactly as with a child
// process's standard input and output.
//
// Closing w ends the session as the end of in does in [Server.ServeStdio], and r
// then ends with [io.EOF]. Closing r, the end of ctx and [Server.Close] end it at
// once and drop what was not read yet. Pipes have no buffer: a caller that stops
// reading stops the server. Both ends answer with an error when the server is
// closed or not valid.
func (s *Server) Pipe(ctx context.Context) (r io.ReadCloser, w io.WriteCloser) {
	in, w := io.Pipe()
	r, out := io.Pipe()
	err := s.Validate()
	if err == nil {
		err = s.enter()
	}
	if err != nil {
		in.CloseWithError(err)
		out.CloseWithError(err)
		return r, w
	}
	ctx, cancel := s.bound(ctx)
	go func() {
		defer s.pipes.Done()
		defer cancel()
		// A write that nobody reads would hold up the end of the session.
		defer context.AfterFunc(ctx, func() { in.Close(); out.Close() })()
		err := s.serve(ctx, ctx, 0, in, out)
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
