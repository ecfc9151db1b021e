package model

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
)

// A Client is one model API. Set either BaseURL or Post; everything else has a
// default. The fields must not change while the Client is in use; it is safe for
// concurrent use.
type Client struct {
	// BaseURL is where the API's paths begin, such as https://api.openai.com/v1: an
	// absolute http or https URL.
	BaseURL string
	// Key is sent as a bearer token; empty for none.
	Key string
	// Header is sent with each request.
	Header http.Header
	// HTTP makes the requests; nil for a client that follows no redirect and bounds
	// connecting, but no answer: models may think for long.
	HTTP *http.Client
	// Post sends a body to the API's path and returns the answer, of any status,
	// in place of BaseURL, Key, Header and HTTP. The body comes in parts, which
	// must not be changed, so that large ones are not copied. Where the body of the
	// answer has a method Whole() error, that is called once the message is there,
	// before it is used, whatever may come behind it; its error is the answer's.
	Post func(ctx context.Context, body [][]byte) (*http.Response, error)

	// API is the one that is spoken there. Post has to send to its path.
	API API
	// Unsealed has the names of models, as the API knows them, that have no thoughts which
	// could be sealed. It is the API's, for all its clients; nil forgets them.
	Unsealed *sync.Map

	// Dialect is what the API accepts, such as [dialect.ForHost] knows it of an address;
	// nil means the conservative one, which takes the least.
	Dialect *dialect.Dialect
	// Idle is how long the API may send nothing in the middle of an answer; 5
	// minutes if zero. The wait for the answer's header is HTTP's, or Post's, to
	// bound.
	Idle time.Duration
	// Repeat is asked before a request is sent again, and may say no, so that an API
	// that is in trouble is not sent ever more; nil means yes. A [Dialogue] sends again
	// where the API is busy or in trouble, twice at most, and never the first request of
	// a turn: nothing has run for it, so whoever asked can ask anew. [Client.Ask] never
	// does.
	Repeat func() bool
	// MaxMessage is what may be kept of one answer, and the size of one event of
	// its stream, in bytes; 16 MiB if zero.
	MaxMessage int64
	// Heard is told of each message of a [Dialogue], from its goroutine; nil tells nobody.
	Heard func(Heard)
	// Log receives what went wrong and was survived; nil discards it.
	Log *slog.Logger
}

// A Listener is told what a model says while it says it. Each of its functions may
// be nil. They are called from the goroutine that asks.
type Listener struct {
	// Begin is called once the API has accepted the request, with the header of its
	// answer.
	Begin func(http.Header)
	// Chunk is called for each piece of the message that is not a call alone. Its
	// error ends the answer. Where Chunk is nil, the answer is only put together.
	Chunk func(*Chunk) error
	// Event is called for each event of an API that speaks Responses, with its type, but
	// for one that says that the response failed. The event is valid until Event returns,
	// and must not be changed. A response that came as a whole is told by
	// the events with which its items begin and end. Its error ends the answer.
	Event func(kind string, event *Object) error
	// Flush is called when nothing more has arrived for now. Its error ends the
	// answer.
	Flush func() error
}

// Ask asks for one message. The body is a request to chat/completions in parts.
// The error is an [*Error], one of the listener's, or that of ctx. Where the API cannot be
// reached, the reason is the Err of the [Error], not a part of its text, which is for clients.
func (c *Client) Ask(ctx context.Context, body [][]byte, l Listener) (*Reply, error) {
	if c.API == ResponsesAPI {
		var err error
		if body, err = asResponses(body); err != nil {
			return nil, err
		}
	}
	a, err := c.open(ctx, body)
	if err != nil {
		return nil, err
	}
	return a.read(ctx, l)
}

// An answer is one that the API has begun, with status 200.
type answer struct {
	client *Client
	resp   *http.Response
	body   *watched
	cancel context.CancelCauseFunc

	broke string // the text that had come where reading it failed
}

// open sends a request and waits for the header of the answer.
func (c *Client) open(parent context.Context, body [][]byte) (*answer, error) {
	ctx, cancel := context.WithCancelCause(parent)
	post := c.Post
	if post == nil {
		post = c.post
	}
	resp, err := post(ctx, body)
	if err == nil && resp == nil {
		err = unusable("The Post of the model's client returned neither an answer nor an error.", nil)
	}
	if err != nil {
		cancel(nil)
		if parent.Err() != nil {
			return nil, context.Cause(parent)
		}
		return nil, Unreachable(err)
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	a := &answer{client: c, resp: resp, cancel: cancel, body: watch(resp.Body, c.idle(), cancel)}
	if resp.StatusCode == http.StatusOK {
		return a, nil
	}
	defer a.close()
	resp.Body = a.body
	failure := statusError(resp)
	if parent.Err() != nil {
		return nil, context.Cause(parent)
	}
	return nil, failure
}

// read reads the answer to its end and closes it.
func (a *answer) read(ctx context.Context, l Listener) (*Reply, error) {
	defer a.close()
	if l.Begin != nil {
		l.Begin(a.resp.Header)
	}
	r, err := a.readReply(ctx, l)
	if body, ok := a.resp.Body.(interface{ Whole() error }); ok && err == nil {
		err = body.Whole()
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return r, err
}

// close reads the answer to its very end, which should be there already, so that
// the connection can be used again, and closes it.
func (a *answer) close() {
	if !a.body.ended {
		a.body.finish(100 * time.Millisecond)
		_, _ = io.CopyN(io.Discard, a.body, 64<<10)
	}
	a.body.Close()
	a.cancel(nil)
}

// ErrNoClient is the error of a conversation that was made without a Client, an [*Error].
var ErrNoClient error = unusable("The conversation needs a model.", nil)

// unusable is the error of a Client that was made wrong.
func unusable(message string, err error) *Error {
	return &Error{Status: http.StatusInternalServerError, Type: TypeServer, Code: CodeInternal, Message: message, Err: err}
}

// post is Post over HTTP.
func (c *Client) post(ctx context.Context, parts [][]byte) (*http.Response, error) {
	if c.BaseURL == "" {
		return nil, unusable("The model's client needs a BaseURL or a Post.", nil)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.BaseURL, "/")+c.API.Path(), nil)
	if err != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "" {
		return nil, unusable("The BaseURL of the model's client is not an absolute http or https URL.", err)
	}
	for name, values := range c.Header {
		req.Header[name] = slices.Clone(values)
	}
	req.Header.Set("Content-Type", "application/json")
	if req.Header.Get("Accept-Encoding") == "" {
		req.Header.Set("Accept-Encoding", "identity") // where nothing is said, any will do
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for _, part := range parts {
		req.ContentLength += int64(len(part))
	}
	req.GetBody = func() (io.ReadCloser, error) {
		buffers := slices.Clone(net.Buffers(parts))
		return io.NopCloser(&buffers), nil
	}
	req.Body, _ = req.GetBody()
	client := c.HTTP
	if client == nil {
		client = fallback
	}
	// The answer keeps its request, and a stream lasts: it need not keep the body,
	// which nobody sends again once there is an answer.
	defer func() { parts = nil }()
	return client.Do(req)
}

// fallback follows no redirect, since it would carry the key along.
var fallback = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     fallbackTransport(),
}

func fallbackTransport() *http.Transport {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true, // a compressed stream comes in larger pieces
	}
	plainhttp.SendOnce(t)
	return t
}

func (c *Client) dialect() *dialect.Dialect {
	if c != nil && c.Dialect != nil {
		return c.Dialect
	}
	return conservative()
}

var conservative = sync.OnceValue(func() *dialect.Dialect {
	d, err := dialect.For(dialect.Conservative)
	if err != nil {
		panic(err) // it is part of this program
	}
	return d
})

func (c *Client) idle() time.Duration {
	if c.Idle <= 0 {
		return 5 * time.Minute
	}
	return c.Idle
}

// Limit returns what may be kept of one answer, in bytes.
func (c *Client) Limit() int64 {
	if c.MaxMessage <= 0 {
		return 16 << 20
	}
	return c.MaxMessage
}

func (c *Client) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
