package otlp

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

var (
	began = time.Unix(1790000000, 123)
	about = resource.NewSchemaless(attribute.String("service.name", "dragoman"))
	scope = instrumentation.Scope{Name: "s", Version: "1"}

	aboutIt = &resourcepb.Resource{Attributes: []*commonpb.KeyValue{said("service.name", &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "dragoman"}})}}
	scopeIt = &commonpb.InstrumentationScope{Name: "s", Version: "1"}
)

func said(key string, value *commonpb.AnyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: value}
}

// The bytes of spans are what the types that are generated from the definitions read,
// every kind of value among them.
func TestTracesAreWhatOthersRead(t *testing.T) {
	state, _ := trace.ParseTraceState("a=b")
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{9}, Remote: true})
	stub := tracetest.SpanStub{
		Name:        "chat m",
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: 1, TraceState: state}),
		Parent:      parent, SpanKind: trace.SpanKindClient, StartTime: began, EndTime: began.Add(time.Second),
		Attributes: []attribute.KeyValue{
			attribute.String("empty", ""), attribute.Int64("below", -5), attribute.Float64("half", 0.5), attribute.Bool("no", false),
			attribute.StringSlice("two", []string{"a", ""}),
		},
		Events:   []sdktrace.Event{{Name: "e", Time: began, Attributes: []attribute.KeyValue{attribute.Bool("yes", true)}}},
		Status:   sdktrace.Status{Code: codes.Error, Description: "why"},
		Resource: about, InstrumentationScope: scope,
	}
	var got tracepb.TracesData
	if err := proto.Unmarshal(Traces([]sdktrace.ReadOnlySpan{stub.Snapshot()}), &got); err != nil {
		t.Fatal(err)
	}
	at := uint64(began.UnixNano())
	id := func(first byte, n int) []byte { b := make([]byte, n); b[0] = first; return b }
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	want := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{Resource: aboutIt, ScopeSpans: []*tracepb.ScopeSpans{{Scope: scopeIt, Spans: []*tracepb.Span{{
		TraceId: id(1, 16), SpanId: id(2, 8), TraceState: "a=b", ParentSpanId: id(9, 8), Name: "chat m", Kind: tracepb.Span_SPAN_KIND_CLIENT,
		StartTimeUnixNano: at, EndTimeUnixNano: at + 1e9, Flags: 0x301,
		Attributes: []*commonpb.KeyValue{
			said("empty", text("")), said("below", &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: -5}}),
			said("half", &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.5}}),
			said("no", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{}}),
			said("two", &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{text("a"), text("")}}}}),
		},
		Events: []*tracepb.Span_Event{{TimeUnixNano: at, Name: "e", Attributes: []*commonpb.KeyValue{said("yes", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}})}}},
		Status: &tracepb.Status{Message: "why", Code: tracepb.Status_STATUS_CODE_ERROR},
	}}}}}}}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// What is no UTF-8 costs nobody the other spans of a message.
func TestBrokenTextIsReadable(t *testing.T) {
	const broken = "caf\xc3"
	stub := tracetest.SpanStub{
		Name: broken, Resource: about, InstrumentationScope: scope,
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}),
		Attributes:  []attribute.KeyValue{attribute.String("one", broken), attribute.StringSlice("two", []string{broken})},
		Status:      sdktrace.Status{Code: codes.Error, Description: broken},
	}
	var got tracepb.TracesData
	if err := proto.Unmarshal(Traces([]sdktrace.ReadOnlySpan{stub.Snapshot()}), &got); err != nil {
		t.Fatal(err)
	}
	if name := got.ResourceSpans[0].ScopeSpans[0].Spans[0].Name; name != "caf\ufffd" {
		t.Errorf("the name is %q", name)
	}
}

// The same for metrics.
func TestMetricsAreWhatOthersRead(t *testing.T) {
	few := attribute.NewSet(attribute.String("k", "v"))
	data := &metricdata.ResourceMetrics{Resource: about, ScopeMetrics: []metricdata.ScopeMetrics{{Scope: scope, Metrics: []metricdata.Metrics{
		{Name: "g", Unit: "By", Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Attributes: few, Time: began, Value: -3}}}},
		{Name: "c", Description: "d", Data: metricdata.Sum[int64]{IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{{StartTime: began, Time: began, Value: 0}}}},
		{Name: "h", Data: metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{{
			StartTime: began, Time: began, Count: 3, Sum: 1.5, Bounds: []float64{1, 2}, BucketCounts: []uint64{1, 0, 2}, Min: metricdata.NewExtrema(0.25),
		}}}},
	}}}}
	var got metricspb.MetricsData
	if err := proto.Unmarshal(Metrics(data), &got); err != nil {
		t.Fatal(err)
	}
	at := uint64(began.UnixNano())
	want := &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: aboutIt, ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: scopeIt, Metrics: []*metricspb.Metric{
		{Name: "g", Unit: "By", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: []*metricspb.NumberDataPoint{{
			TimeUnixNano: at, Value: &metricspb.NumberDataPoint_AsInt{AsInt: -3},
			Attributes: []*commonpb.KeyValue{said("k", &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "v"}})},
		}}}}},
		{Name: "c", Description: "d", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{IsMonotonic: true, AggregationTemporality: 2, DataPoints: []*metricspb.NumberDataPoint{{
			StartTimeUnixNano: at, TimeUnixNano: at, Value: &metricspb.NumberDataPoint_AsInt{},
		}}}}},
		{Name: "h", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{AggregationTemporality: 2, DataPoints: []*metricspb.HistogramDataPoint{{
			StartTimeUnixNano: at, TimeUnixNano: at, Count: 3, Sum: proto.Float64(1.5), BucketCounts: []uint64{1, 0, 2}, ExplicitBounds: []float64{1, 2}, Min: proto.Float64(0.25),
		}}}}},
	}}}}}}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// A collector that is busy is asked again, one that refuses is not, and a redirect does
// not carry the key along.
func TestSend(t *testing.T) {
	var came atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := came.Add(1)
		in, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		if body, _ := io.ReadAll(in); string(body) != "message" || r.Header.Get("Key") != "k" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%q with %v", body, r.Header)
		}
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/refuses":
			w.WriteHeader(http.StatusBadRequest)
		case "/busy":
			if n == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	}))
	defer server.Close()
	for path, want := range map[string]struct {
		status int
		came   int64
	}{"/fine": {0, 1}, "/moved": {307, 1}, "/refuses": {400, 1}} {
		came.Store(0)
		c := (&Client{URL: server.URL + path, Header: http.Header{"Key": {"k"}}, Gzip: true}).Open()
		err := c.Send(t.Context(), []byte("message"))
		refused, _ := errors.AsType[*StatusError](err)
		if (refused == nil) != (want.status == 0) || refused != nil && refused.Status != want.status || came.Load() != want.came {
			t.Errorf("%s: %v after %d tries", path, err, came.Load())
		}
		c.Close()
	}
}

type busy struct{ tries *int }

func (b busy) RoundTrip(*http.Request) (*http.Response, error) {
	if *b.tries++; *b.tries < 3 {
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
	}
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

func TestBusyCollectorIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		c := &Client{URL: "http://collector.invalid", http: &http.Client{Transport: busy{&tries}}}
		if err := c.Send(context.Background(), nil); err != nil || tries != 3 {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
}
