package providerdtest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans as OTLP over HTTP at /v1/traces.
type Collector struct {
	URL   string
	mutex sync.Mutex
	// received are the requests, and bodies their encodings.
	received []*collectorpb.ExportTraceServiceRequest
	bodies   [][]byte
}

// StartCollector starts a collector that runs until the test ends.
func StartCollector(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{}
	listener := httptest.NewServer(c)
	t.Cleanup(listener.Close)
	c.URL = listener.URL
	return c
}

func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	request := &collectorpb.ExportTraceServiceRequest{}
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(text, request) != nil {
		http.Error(w, "invalid export to "+r.URL.Path, http.StatusBadRequest)
		return
	}
	c.mutex.Lock()
	c.received, c.bodies = append(c.received, request), append(c.bodies, text)
	c.mutex.Unlock()
}

// RequestCount returns the number of requests received so far.
func (c *Collector) RequestCount() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.bodies)
}

// Bodies returns the bodies of the requests received so far.
func (c *Collector) Bodies() [][]byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.bodies
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var spans []Span
	for _, request := range c.received {
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					spans = append(spans, Span{
						Name: span.GetName(), Trace: hex.EncodeToString(span.GetTraceId()),
						ID: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
						state: span.GetTraceState(), Kind: span.GetKind(), events: len(span.GetEvents()),
						Start:      time.Unix(0, int64(span.GetStartTimeUnixNano())),
						End:        time.Unix(0, int64(span.GetEndTimeUnixNano())),
						HasFailed:  span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
						Attributes: textsOf(span.GetAttributes()),
					})
				}
			}
		}
	}
	return spans
}

// ResourceAttributes returns the attributes of the resource that sent the spans.
func (c *Collector) ResourceAttributes() map[string]string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return textsOf(c.received[0].GetResourceSpans()[0].GetResource().GetAttributes())
}

// Span is a decoded span.
type Span struct {
	Name, Trace, ID, Parent, state string
	Kind                           tracepb.Span_SpanKind
	Start, End                     time.Time
	HasFailed                      bool
	events                         int
	Attributes                     map[string]string
}

func textsOf(attributes []*commonpb.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, attribute := range attributes {
		switch value := attribute.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			texts[attribute.GetKey()] = value.StringValue
		case *commonpb.AnyValue_IntValue:
			texts[attribute.GetKey()] = fmt.Sprint(value.IntValue)
		default:
			texts[attribute.GetKey()] = attribute.GetValue().String()
		}
	}
	return texts
}

// StartCollectorFunc returns the URL of a collector that responds with handler. It reads each request first: closing a
// connection with unread data would reset it, and lose the response.
func StartCollectorFunc(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		handler(w, r)
	}))
	t.Cleanup(listener.Close)
	return listener.URL
}
