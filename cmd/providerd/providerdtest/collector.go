package providerdtest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans as OTLP over HTTP at /v1/traces.
type Collector struct {
	URL    string
	mutex  sync.Mutex
	bodies [][]byte
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
	body, err := io.Reader(r.Body), error(nil)
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(r.Body)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "invalid export to "+r.URL.Path, http.StatusBadRequest)
		return
	}
	text, _ := io.ReadAll(body)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.bodies = append(c.bodies, text)
}

// Bodies returns the bodies of the requests received so far.
func (c *Collector) Bodies() [][]byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.bodies)
}

// Span is a decoded span. Resource has the attributes of what sent it.
type Span struct {
	Name, Trace, ID, Parent string
	Kind                    tracepb.Span_SpanKind
	Start, End              time.Time
	HasFailed               bool
	Attributes, Resource    map[string]string
}

// Spans returns the spans received so far.
func (c *Collector) Spans(t *testing.T) (spans []Span) {
	t.Helper()
	for _, body := range c.Bodies() {
		// An export request has the same encoding.
		var request tracepb.TracesData
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Fatal(err)
		}
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					spans = append(spans, Span{
						Name: span.GetName(), Trace: hex.EncodeToString(span.GetTraceId()),
						ID: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
						Kind:       span.GetKind(),
						Start:      time.Unix(0, int64(span.GetStartTimeUnixNano())),
						End:        time.Unix(0, int64(span.GetEndTimeUnixNano())),
						HasFailed:  span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
						Attributes: textsOf(span.GetAttributes()), Resource: textsOf(resource.GetResource().GetAttributes()),
					})
				}
			}
		}
	}
	return spans
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
