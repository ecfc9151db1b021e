package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestEveryWayIn runs the same conversation over each transport in each era.
func TestEveryWayIn(t *testing.T) {
	ways := map[string]func(*testing.T, *Demo) sdk.Transport{
		"pipe": func(t *testing.T, d *Demo) sdk.Transport {
			r, w := d.Pipe(t.Context())
			return &sdk.IOTransport{Reader: r, Writer: w}
		},
		"memory": func(t *testing.T, d *Demo) sdk.Transport {
			ours, theirs := sdk.NewInMemoryTransports()
			s, err := d.Server().Connect(t.Context(), ours, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return theirs
		},
		"http": func(t *testing.T, d *Demo) sdk.Transport {
			srv := httptest.NewServer(d.Handler())
			t.Cleanup(srv.Close)
			return &sdk.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: srv.Client()}
		},
	}
	for way, open := range ways {
		for _, version := range []string{legacy, modern} {
			t.Run(way+" "+version, func(t *testing.T) {
				d := newDemo(t)
				var seen []float64
				done := make(chan struct{})
				s := connect(t, open(t, d), version, &sdk.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
						seen = append(seen, req.Params.Progress)
						if req.Params.Progress == req.Params.Total {
							close(done)
						}
					},
				})
				converse(t, s)

				params := &sdk.CallToolParams{Name: "analyze_csv", Arguments: map[string]any{"filepath": "sales.csv"}}
				params.SetProgressToken("p1")
				if _, err := s.CallTool(t.Context(), params); err != nil {
					t.Fatal(err)
				}
				<-done
				if diff := cmp.Diff([]float64{5, 10, 15, 20, 25, 30, 35, 40, 45, 48}, seen); diff != "" {
					t.Errorf("progress (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// converse uses everything but the tools, and two of those.
func converse(t *testing.T, s *sdk.ClientSession) {
	t.Helper()
	if text, _, _ := call(t, s, "get_weather", `{"city":"北京"}`); !strings.Contains(text, "多云") {
		t.Errorf("weather: %s", text)
	}
	if text, _, failed := call(t, s, "create_record", `{"table":"t","data":{"z":1,"a":12345678901234567890}}`); failed {
		t.Error(text)
	}
	for uri, want := range map[string]string{
		"demo://records/t/t-1":   `{"z":1,"a":12345678901234567890}`,
		"demo://files/sales.csv": "month,region,product,units,price,revenue\n",
	} {
		res, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if c := res.Contents[0]; !strings.HasPrefix(c.Text, want) || c.URI != uri {
			t.Errorf("%s: %s has %.80s", uri, c.URI, c.Text)
		}
	}
	for _, uri := range []string{"demo://records/t/t-9", "demo://files/none.csv", "demo://files/../http.go"} {
		if res, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: got %v, want an error", uri, res.Contents[0])
		}
	}
	list, err := s.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 3 {
		t.Errorf("resources: %v, %v", list, err)
	}

	for city, want := range map[string]string{"Rome": "Plan a day out in Rome", "罗马": "安排在罗马的一天"} {
		p, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "plan_day", Arguments: map[string]string{"city": city}})
		if err != nil {
			t.Error(err)
			continue
		}
		if text := p.Messages[0].Content.(*sdk.TextContent).Text; !strings.Contains(text, want) || !strings.Contains(text, "get_weather") {
			t.Errorf("prompt for %s: %s", city, text)
		}
	}
	if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "plan_day"}); err == nil {
		t.Error("prompt without a city: no error")
	}

	for start, want := range map[string][]string{"be": {"Beijing", "Berlin"}, "北": {"北京"}, "q": {}} {
		res, err := s.Complete(t.Context(), &sdk.CompleteParams{
			Ref:      &sdk.CompleteReference{Type: "ref/prompt", Name: "plan_day"},
			Argument: sdk.CompleteParamsArgument{Name: "city", Value: start},
		})
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want, res.Completion.Values); diff != "" {
			t.Errorf("completion of %q (-want +got):\n%s", start, diff)
		}
	}
}

const initialize = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestHosts(t *testing.T) {
	d := New(Options{Hosts: []string{"demo.internal"}})
	defer d.Close()
	for host, want := range map[string]int{"localhost:8080": 200, "demo.internal": 200, "evil.example": 403} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://"+host+"/mcp", strings.NewReader(initialize))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		d.Handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", host, w.Code, want)
		}
	}
}

func TestHandlerClosed(t *testing.T) {
	d := New(Options{})
	h := d.Handler()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/", strings.NewReader(initialize)))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d after Close", w.Code)
	}
}
