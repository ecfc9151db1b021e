package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/door/ops"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/observe/telemetry"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// RequestHeader is the header of an answer with the id of its request, which stands in the
// log, in the audit log and in the trace.
const RequestHeader = "X-Dragoman-Request"

// openTelemetry makes what watches.
func (g *Gateway) openTelemetry() (err error) {
	g.learn(g.file)
	g.telemetry, err = telemetry.New(g.file.Telemetry, telemetry.Options{
		Lookup: g.o.Lookup, Version: g.o.Version, Log: g.log, Hide: g.hide,
		Model: func(name string) string { label, _ := g.priced(name); return label },
	})
	return err
}

// learn has the secrets of configurations hidden from now on, and those of what servers are
// started with.
func (g *Gateway) learn(files ...*config.File) {
	var all []secret.Text
	for _, file := range files {
		all = append(all, file.Secrets()...)
		for _, m := range file.Models {
			all = append(all, secret.InAddress(m.BaseURL)...)
		}
		for _, c := range file.MCPServers {
			all = append(all, c.Secrets(os.LookupEnv)...)
		}
	}
	if key, _ := g.o.Lookup("DRAGOMAN_API_KEY"); key != "" {
		all = append(all, secret.New(key))
	}
	mask := secret.NewMask(all...)
	g.secrets.Store(&mask)
}

// hide hides the secrets of the configuration.
func (g *Gateway) hide(text string) string { return g.secrets.Load().Hide(text) }

// priced returns what the configuration calls a model, and its price.
func (g *Gateway) priced(name string) (string, usage.Price) {
	if now := g.now.Load(); now != nil {
		return now.upstreams.Label(name)
	}
	return observe.Other, usage.Price{}
}

// toolPrice returns what a call of a tool costs.
func (g *Gateway) toolPrice(t *dragoman.Tool) int64 {
	if now := g.now.Load(); now != nil {
		return now.file.MCPServers[t.Server].Prices.Of(t.Original)
	}
	return 0
}

// readings are what gauges show.
func (g *Gateway) readings(report func(name string, value int64, attributes ...observe.Attribute)) {
	for _, s := range g.Servers() {
		up := int64(0)
		if s.State == dragoman.Connected {
			up = 1
		}
		label := observe.Text(observe.Server, s.Label)
		report(observe.ServerUp, up, label)
		report(observe.Tools, int64(s.Tools), label, observe.Text(observe.ToolsState, "offered"))
		report(observe.Tools, int64(s.Quarantined), label, observe.Text(observe.ToolsState, "quarantined"))
	}
	for label, n := range g.servers.Queued() {
		report(observe.QueueLength, n, observe.Text(observe.Queue, label))
	}
	if g.ledger != nil {
		report(observe.QueueLength, int64(g.ledger.DB.Queued()), observe.Text(observe.Queue, "store:"))
	}
	g.budgets.Readings(func(name, state string, n int64) {
		report(observe.Budgets, n, observe.Text(observe.Budget, name), observe.Text(observe.BudgetState, state))
	})
	report(observe.OpenStreams, g.open.Load())
	report(observe.Replicas, int64(g.node.Count()))
	g.storeReadings(report)
}

// readStoreWithin bounds how long metrics wait for the store: what it does not say in time is
// left out.
const readStoreWithin = time.Second

// storeReadings are what the store says of all processes on it.
func (g *Gateway) storeReadings(report func(name string, value int64, attributes ...observe.Attribute)) {
	if g.ledger == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readStoreWithin)
	defer cancel()
	if runs := g.background.stored(); runs != nil {
		counts, err := runs.Counts(ctx)
		if err != nil {
			return
		}
		for state, n := range counts {
			report(observe.Runs, n, observe.Text(observe.RunState, state))
		}
	}
	if n, err := g.mail.Waiting(ctx); err == nil {
		report(observe.QueueLength, n, observe.Text(observe.Queue, "mail:"))
	}
}

// A watcher watches what one caller does: for the metrics and traces of all, and for the
// caller's usage.
type watcher struct {
	*telemetry.Telemetry // nil for neither
	g                    *Gateway
	who                  caller.Caller
}

// observer watches what a caller does; nil where nobody wants to know.
func (g *Gateway) observer(who caller.Caller) observe.Observer {
	if g.telemetry == nil && g.usage == nil {
		return nil
	}
	return &watcher{g.telemetry, g, who}
}

// Observed returns a context in which it is watched what a caller does.
func (g *Gateway) Observed(ctx context.Context, who caller.Caller) context.Context {
	return observe.With(ctx, g.observer(who))
}

// Begin implements [observe.Observer].
func (w *watcher) Begin(ctx context.Context, kind observe.Kind, within *observe.Span) (context.Context, observe.Recorder) {
	if w.Telemetry == nil {
		return ctx, nil
	}
	return w.Telemetry.Begin(ctx, kind, within)
}

// Length implements [observe.Observer].
func (w *watcher) Length(ctx context.Context, name string, value float64, said []observe.Attribute) {
	if w.Telemetry != nil {
		w.Telemetry.Length(ctx, name, value, said)
	}
}

// Count implements [observe.Observer].
func (w *watcher) Count(ctx context.Context, name string, n int64, said []observe.Attribute) {
	if w.Telemetry != nil {
		w.Telemetry.Count(ctx, name, n, said)
	}
	text := func(key string) string {
		for _, a := range said {
			if a.Key == key {
				return a.Text()
			}
		}
		return ""
	}
	switch name {
	case observe.Repairs:
		label, _ := w.g.priced(text(observe.RequestModel))
		w.g.usage.Add(usage.Key{Caller: w.who.ID, Model: label}, usage.Sum{Repairs: n})
	case observe.Truncated:
		w.g.usage.Add(usage.Key{Caller: w.who.ID, Server: text(observe.Server), Tool: text(observe.ToolOriginal)}, usage.Sum{Cuts: n})
	}
}

// identified gives a request its id, and returns a context with it, and what is to be called
// when the request is over.
func (g *Gateway) identified(w http.ResponseWriter, r *http.Request, route *door.Route) (*watchedWriter, context.Context, func(who caller.Caller)) {
	id := model.NewRequestID()
	w.Header().Set(RequestHeader, id)
	began := time.Now()
	g.open.Add(1)
	out := &watchedWriter{ResponseWriter: w}
	ctx := observe.WithRequest(r.Context(), id)
	return out, ctx, func(who caller.Caller) {
		g.open.Add(-1)
		took := time.Since(began)
		if g.log.Enabled(ctx, slog.LevelDebug) {
			g.log.Debug("request", append([]any{"request", id, "method", r.Method, "path", r.URL.Path, "status", out.answered(), "took", took.Round(time.Microsecond)}, who.Logged()...)...)
		}
		if g.telemetry == nil {
			return
		}
		said := []observe.Attribute{observe.Text(observe.HTTPMethod, knownMethod(r.Method)), observe.Text(observe.HTTPRoute, routeName(route.Pattern)), observe.Int(observe.HTTPStatus, int64(out.answered()))}
		if out.answered() >= 500 {
			said = append(said, observe.Text(observe.ErrorType, strconv.Itoa(out.answered())))
		}
		g.telemetry.Length(ctx, observe.HTTPDuration, took.Seconds(), said)
	}
}

// watched returns the context of a request in which its caller is watched, as part of the
// trace that its header names.
func (g *Gateway) watched(ctx context.Context, r *http.Request, who caller.Caller) context.Context {
	ctx = g.Observed(ctx, who)
	if !g.telemetry.Tracing() {
		return ctx
	}
	return observe.From(ctx, observe.Remote{Traceparent: r.Header.Get(observe.Traceparent), Tracestate: strings.Join(r.Header.Values(observe.Tracestate), ",")})
}

// routeName is the path of a pattern.
func routeName(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		return path
	}
	return pattern
}

// knownMethod returns a method as HTTP has it, or one word for all others (semantic
// conventions, http.request.method).
func knownMethod(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "QUERY"}, method) {
		return method
	}
	return "_OTHER"
}

// A watchedWriter remembers the status of an answer.
type watchedWriter struct {
	http.ResponseWriter
	status int
}

func (w *watchedWriter) answered() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// WriteHeader implements [http.ResponseWriter].
func (w *watchedWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *watchedWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets [http.ResponseController] find what the server has.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// metricsRoute is /metrics, for those with the right.
func (g *Gateway) metricsRoute() door.Route {
	return door.Route{Pattern: "GET /metrics", Shed: door.ShedNever, Serve: func(w http.ResponseWriter, r *http.Request, who caller.Caller) {
		switch {
		case !g.telemetry.Measuring() || g.file.Telemetry.Metrics.Listen != "":
			g.refuse(w, r, door.OpenAI, door.NotFound("There are no metrics here: telemetry.metrics turns them off, or has them at an address of their own."))
		case !who.May(permission.Metrics):
			g.refuse(w, r, door.OpenAI, &model.Error{
				Status: http.StatusForbidden, Type: model.TypePermission, Code: "permission_denied",
				Message: "Reading the metrics takes a key with the right " + permission.Metrics + ".",
			})
		default:
			g.telemetry.ServeHTTP(w, r)
		}
	}}
}

// reloaded counts that the configuration was read again.
func (g *Gateway) reloaded(err error) {
	if g.telemetry == nil {
		return
	}
	outcome := "ok"
	if err != nil {
		outcome = "refused"
	}
	g.telemetry.Count(context.Background(), observe.Reloads, 1, []observe.Attribute{observe.Text(observe.Outcome, outcome)})
}

// timed measures a transaction of the store.
func (g *Gateway) timed(kind string, took time.Duration) {
	g.telemetry.Length(context.Background(), observe.StoreDuration, took.Seconds(), []observe.Attribute{observe.Text(observe.StoreKind, kind)})
}

// closeTelemetry sends what is left.
func (g *Gateway) closeTelemetry() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := g.telemetry.Close(ctx); err != nil {
		g.log.Warn("the last of traces and metrics could not be sent", "error", err)
	}
}

// readUsage reads usage for the door of those who operate; nil where none is kept.
func (g *Gateway) readUsage(ctx context.Context, q usage.Query) ([]usage.Row, error) {
	if g.usage == nil {
		return nil, ops.ErrNoUsage
	}
	g.usage.Flush()
	return usage.Read(ctx, g.ledger.DB, q)
}
