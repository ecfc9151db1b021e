package demo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/toolkit"
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
	opts    Options
	records records
	scratch scratch

	mu     sync.Mutex
	server *toolkit.Server // made when something connects
	closed bool
}

// errClosed is what every way in answers after [Demo.Close].
var errClosed = errors.New("demo: closed")

const instructions = "Demo server on bundled data; nothing here reaches the network. " +
	"Places may be named in English or Chinese (城市名可用中文或英文), answers follow the language of the name."

// New makes a demo server. It does no I/O and starts nothing, so it costs
// next to nothing until something connects.
func New(opts Options) *Demo { return &Demo{opts: opts} }

// open returns the server, which it makes first if need be.
func (d *Demo) open() (*toolkit.Server, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	if d.server != nil {
		return d.server, nil
	}
	s := toolkit.NewServer(toolkit.Options{
		Name: "dragoman-demo", Title: "Dragoman demo", Version: d.opts.Version, Instructions: instructions,
		Logger: d.opts.Logger, HTTP: toolkit.HTTP{Hosts: d.opts.Hosts},
	})
	toolkit.Add(s, weatherTool, getWeather)
	toolkit.Add(s, restaurantTool, findRestaurant)
	toolkit.Add(s, employeeTool, queryEmployeeTree)
	toolkit.Add(s, sumTool, calculateSum)
	toolkit.Add(s, csvTool, d.analyzeCSV)
	toolkit.Add(s, recordTool, d.records.create)
	toolkit.Add(s, deleteTool, d.deleteFile)
	d.addResources(s)
	addPrompt(s)
	if err := s.Validate(); err != nil {
		return nil, err
	}
	d.server = s
	return s, nil
}

// Server returns the official SDK's server, for callers who bring their own
// transport; nil after [Demo.Close]. All connections made through d share it.
func (d *Demo) Server() *sdk.Server {
	s, err := d.open()
	if err != nil {
		return nil
	}
	server, err := s.SDK()
	if err != nil {
		return nil
	}
	return server
}

// Close ends every connection, waits for those made by [Demo.Pipe] to wind up,
// and removes the scratch folder if there is one. Later connections are refused.
// It may be called more than once.
func (d *Demo) Close() error {
	d.mu.Lock()
	already, server := d.closed, d.server
	d.closed = true
	d.mu.Unlock()
	if already {
		return nil
	}
	var err error
	if server != nil {
		err = server.Close()
	}
	return errors.Join(err, d.scratch.close())
}

// ServeStdio serves on in and out as [toolkit.Server.ServeStdio] does.
func (d *Demo) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	s, err := d.open()
	if err != nil {
		return err
	}
	return s.ServeStdio(ctx, in, out)
}

// Pipe connects inside this process, as [toolkit.Server.Pipe] does.
func (d *Demo) Pipe(ctx context.Context) (r io.ReadCloser, w io.WriteCloser) {
	s, err := d.open()
	if err == nil {
		return s.Pipe(ctx)
	}
	in, w := io.Pipe()
	r, out := io.Pipe()
	in.CloseWithError(err)
	out.CloseWithError(err)
	return r, w
}

// Handler serves MCP over Streamable HTTP at whatever path it is mounted, in
// both eras on the one URL, guarded as [toolkit.Server.Handler] is. After
// [Demo.Close] the answer is 503.
func (d *Demo) Handler() http.Handler {
	s, err := d.open()
	if err == nil {
		var h http.Handler
		if h, err = s.Handler(); err == nil {
			return h
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the demo server is closed", http.StatusServiceUnavailable)
	})
}
