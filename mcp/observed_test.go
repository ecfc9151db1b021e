package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A tracer says that everything belongs to one span.
type tracer struct{ traceparent string }

func (t tracer) Begin(ctx context.Context, _ observe.Kind, _ *observe.Span) (context.Context, observe.Recorder) {
	return ctx, t
}
func (tracer) Count(context.Context, string, int64, []observe.Attribute)    {}
func (tracer) Length(context.Context, string, float64, []observe.Attribute) {}
func (tracer) Event(string, []observe.Attribute)                            {}
func (tracer) Details() bool                                                { return true }
func (tracer) Content([]byte) string                                        { return "" }
func (t tracer) Parent(context.Context) (string, string)                    { return t.traceparent, "" }
func (tracer) End(*observe.Span)                                            {}

// What a caller says of a trace in _meta is replaced by our own span, not added to, and
// the header says the same; where nobody traces, it goes on as it is.
func TestTraceparentIsReplaced(t *testing.T) {
	const theirs, ours = "00-11111111111111111111111111111111-1111111111111111-01", "00-22222222222222222222222222222222-2222222222222222-01"
	var mu sync.Mutex
	var body, header string
	fake := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
		if bytes.Contains(sent, []byte(`"tools/call"`)) {
			mu.Lock()
			body, header = string(sent), r.Header.Get("Traceparent")
			mu.Unlock()
		}
		fake.ServeHTTP(w, r)
	}))
	defer server.Close()
	client, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: server.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list, err := client.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, said, header string
		watches            observe.Observer
	}{{"traced", ours, ours, tracer{ours}}, {"measured alone", theirs, "", tracer{}}, {"unwatched", theirs, "", nil}} {
		t.Run(test.name, func(t *testing.T) {
			call := dragoman.Call{
				Tool: &list.Tools.All()[0], Arguments: json.RawMessage(`{}`),
				Meta: json.RawMessage(`{"traceparent":"` + theirs + `","tracestate":"a=b","other":1}`),
			}
			res, err := client.Call(observe.With(t.Context(), test.watches), call)
			if err != nil || res.Problem != nil {
				t.Fatal(err, res.Problem)
			}
			mu.Lock()
			defer mu.Unlock()
			if strings.Count(body, "traceparent") != 1 || !strings.Contains(body, test.said) || !strings.Contains(body, `"other":1`) || header != test.header {
				t.Errorf("the header is %q, and the body %s", header, body)
			}
			if strings.Contains(body, "tracestate") != (test.said == theirs) {
				t.Errorf("the state of another trace: %s", body)
			}
		})
	}
}
