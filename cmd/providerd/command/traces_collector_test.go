package command

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

// collector takes spans as OTLP over HTTP at /v1/traces.
type collector struct {
	url   string
	mutex sync.Mutex
	// received are the requests, and bodies their texts.
	received []*collectorpb.ExportTraceServiceRequest
	bodies   [][]byte
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	listener := httptest.NewServer(c)
	t.Cleanup(listener.Close)
	c.url = listener.URL
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		http.Error(w, "no request for "+r.URL.Path, http.StatusBadRequest)
		return
	}
	c.mutex.Lock()
	c.received, c.bodies = append(c.received, request), append(c.bodies, text)
	c.mutex.Unlock()
}

// requests counts what came.
func (c *collector) requests() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.bodies)
}

// texts are the bodies of what came.
func (c *collector) texts() [][]byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.bodies
}

// collectedSpan is a span as users read it.
type collectedSpan struct {
	name, trace, id, parent, state string
	kind                           tracepb.Span_SpanKind
	begun, ended                   time.Time
	hasFailed                      bool
	events                         int
	attributes                     map[string]string
}

func (c *collector) spans() []collectedSpan {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var spans []collectedSpan
	for _, request := range c.received {
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, one := range scope.GetSpans() {
					spans = append(spans, collectedSpan{
						name: one.GetName(), trace: hex.EncodeToString(one.GetTraceId()),
						id: hex.EncodeToString(one.GetSpanId()), parent: hex.EncodeToString(one.GetParentSpanId()),
						state: one.GetTraceState(), kind: one.GetKind(), events: len(one.GetEvents()),
						begun:      time.Unix(0, int64(one.GetStartTimeUnixNano())),
						ended:      time.Unix(0, int64(one.GetEndTimeUnixNano())),
						hasFailed:  one.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
						attributes: textsOf(one.GetAttributes()),
					})
				}
			}
		}
	}
	return spans
}

// resource has the attributes of the program that sent the spans.
func (c *collector) resource() map[string]string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return textsOf(c.received[0].GetResourceSpans()[0].GetResource().GetAttributes())
}

func textsOf(attributes []*commonpb.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, one := range attributes {
		switch value := one.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			texts[one.GetKey()] = value.StringValue
		case *commonpb.AnyValue_IntValue:
			texts[one.GetKey()] = fmt.Sprint(value.IntValue)
		default:
			texts[one.GetKey()] = one.GetValue().String()
		}
	}
	return texts
}

// startTraced starts a server that exports its spans to a collector.
func startTraced(t *testing.T, folder, collectorURL string, environment ...string) *process {
	t.Helper()
	environment = append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collectorURL}, environment...)
	return serveWith(t, folder, environment, "--log-format", "json")
}
