package serving_test

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// span is a decoded span. Resource has the attributes of what sent it.
type span struct {
	Name, Trace, ID, Parent string
	Kind                    tracepb.Span_SpanKind
	Start, End              time.Time
	HasFailed               bool
	Attributes, Resource    map[string]string
}

// spansOf returns the spans that a collector has received.
func spansOf(t *testing.T, collector *providerdtest.Collector) (spans []span) {
	t.Helper()
	for _, body := range collector.Bodies() {
		// An export request has the same encoding.
		var request tracepb.TracesData
		processtest.Must(t, proto.Unmarshal(body, &request))
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, received := range scope.GetSpans() {
					spans = append(spans, span{
						Name: received.GetName(), Trace: hex.EncodeToString(received.GetTraceId()),
						ID: hex.EncodeToString(received.GetSpanId()), Parent: hex.EncodeToString(received.GetParentSpanId()),
						Kind:       received.GetKind(),
						Start:      time.Unix(0, int64(received.GetStartTimeUnixNano())),
						End:        time.Unix(0, int64(received.GetEndTimeUnixNano())),
						HasFailed:  received.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
						Attributes: textsOf(received.GetAttributes()), Resource: textsOf(resource.GetResource().GetAttributes()),
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
