package serving_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
	traceparent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

func serveTraced(t *testing.T, dir, collectorURL string, environment ...string) *providerdtest.Server {
	t.Helper()
	environment = append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collectorURL}, environment...)
	return providerdtest.Serve(t, dir, append(environment, "--log-format", "json")...)
}

// spansOf returns the spans that a collector has received, and the attributes of what sent them.
func spansOf(t *testing.T, collector *providerdtest.Collector) (spans []*tracepb.Span, resource map[string]string) {
	t.Helper()
	for _, body := range collector.Bodies() {
		// An export request has the same encoding.
		var request tracepb.TracesData
		processtest.Must(t, proto.Unmarshal(body, &request))
		for _, sender := range request.GetResourceSpans() {
			resource = textsOf(sender.GetResource().GetAttributes())
			for _, scope := range sender.GetScopeSpans() {
				spans = append(spans, scope.GetSpans()...)
			}
		}
	}
	return spans, resource
}

func textsOf(attributes []*commonpb.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, attribute := range attributes {
		value := attribute.GetValue()
		text := value.GetStringValue()
		switch value := value.GetValue().(type) {
		case *commonpb.AnyValue_IntValue:
			text = strconv.FormatInt(value.IntValue, 10)
		case *commonpb.AnyValue_BoolValue:
			text = strconv.FormatBool(value.BoolValue)
		}
		texts[attribute.GetKey()] = text
	}
	return texts
}

func hasFailed(span *tracepb.Span) bool {
	return span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR
}

type tracedCall struct {
	name, method, path, token, key, body string
	traceparent                          []string
	status                               int
	// trace is the trace ID that the log must have: clientTrace, "new" for another one, or "" for none.
	trace string
	// parts are the names of the child spans, each followed by a space, or "untraced" if the request has no span.
	parts string
	// attributes are additional attributes of the request's span.
	attributes map[string]string
}

func (c tracedCall) send(t *testing.T, server *providerdtest.Server) {
	t.Helper()
	status := server.Send(t, contracttest.Client(t), c.method, c.path, c.token, c.body, http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {c.name}, "Idempotency-Key": {c.key},
		"Traceparent": c.traceparent, "Tracestate": {"vendor=canary"}, "User-Agent": {"canary"}, "Baggage": {"canary=canary"},
	})
	processtest.Equal(t, status, c.status, "status of %s", c.name)
}

func (c tracedCall) check(t *testing.T, spans []*tracepb.Span, line map[string]any) {
	logged, _ := line["trace_id"].(string)
	isNew := logged != "" && logged != clientTrace
	isWanted := logged == c.trace || c.trace == "new" && isNew
	processtest.Expect(t, isWanted, "%s: the log has the trace %q, want %q", c.name, logged, c.trace)
	at := slices.IndexFunc(spans, func(sent *tracepb.Span) bool {
		return textsOf(sent.GetAttributes())["providerd.request_id"] == c.name
	})
	if at < 0 || c.parts == "untraced" {
		processtest.Expect(t, at < 0 && c.parts == "untraced", "%s: the request has a span: %v", c.name, at >= 0)
		return
	}
	root, parent := spans[at], map[bool]string{true: clientSpan}[c.trace == clientTrace]
	route, _, _ := strings.Cut(c.path, "?")
	want := map[string]string{
		"http.request.method": c.method, "http.route": route, "url.path": route, "providerd.request_id": c.name,
		"http.response.status_code": strconv.Itoa(c.status), "url.scheme": "http",
	}
	maps.Copy(want, c.attributes)
	if root.GetName() != "POST "+route || root.GetKind() != tracepb.Span_SPAN_KIND_SERVER ||
		hex.EncodeToString(root.GetParentSpanId()) != parent || hex.EncodeToString(root.GetTraceId()) != logged ||
		hasFailed(root) != (c.status >= http.StatusInternalServerError) || !maps.Equal(textsOf(root.GetAttributes()), want) {
		t.Errorf("%s: the span is %v, want one with %v", c.name, root, want)
	}
	var names string
	for _, part := range spans {
		if !bytes.Equal(part.GetParentSpanId(), root.GetSpanId()) {
			continue
		}
		names += part.GetName() + " "
		isCommit, want := part.GetName() == "commit", map[string]string{}
		if isCommit {
			want["providerd.batch_size"] = "1"
		}
		start, end := part.GetStartTimeUnixNano(), part.GetEndTimeUnixNano()
		if !bytes.Equal(part.GetTraceId(), root.GetTraceId()) || start < root.GetStartTimeUnixNano() || end < start ||
			end > root.GetEndTimeUnixNano() || hasFailed(part) != (isCommit && hasFailed(root)) ||
			!maps.Equal(textsOf(part.GetAttributes()), want) {
			t.Errorf("%s: the span %v has the part %v, want %v", c.name, root, part, want)
		}
	}
	processtest.Equal(t, names, c.parts, "child spans of %s", c.name)
}

func logLines(t *testing.T, log string) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(log) {
		var fields map[string]any
		err := json.Unmarshal([]byte(line), &fields)
		processtest.Expect(t, err == nil, "%v: %q", err, line)
		lines = append(lines, fields)
	}
	return lines
}

// TestTracesOfRequests checks each span of requests, and that spans contain nothing that clients sent.
func TestTracesOfRequests(t *testing.T) {
	t.Parallel()
	collector, dir := providerdtest.StartCollector(t), t.TempDir()
	server := serveTraced(t, dir, collector.URL, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	token := providerdtest.CreateToken(t, dir, "narrow")
	problem := func(slug string) map[string]string { return map[string]string{"providerd.problem": slug} }
	given := []string{traceparent}
	calls := []tracedCall{
		{"made", http.MethodPost, providerdtest.OAuth2Path, token, "key", providerdtest.OAuth2Body, given, 201, clientTrace, "validate queue commit ", nil},
		{"replayed", http.MethodPost, providerdtest.OAuth2Path, token, "key", providerdtest.OAuth2Body, given, 201, clientTrace, "validate ", map[string]string{"providerd.replayed": "true"}},
		{"reused", http.MethodPost, providerdtest.OAuth2Path, token, "key", `{"name":"canary","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`, nil, 422, "new", "validate ", problem("idempotency-key-reused")},
		{"validated", http.MethodPost, providerdtest.OAuth2Path + "?validate_only=true", token, "", providerdtest.OAuth2Body, nil, 200, "new", "validate ", map[string]string{"providerd.validate_only": "true"}},
		{"refused", http.MethodPost, providerdtest.OAuth2Path, token, "", `{"canary":"canary"}`, given, 400, clientTrace, "validate ", problem("validation-failed")},
		{"unread", http.MethodPost, providerdtest.OAuth2Path + "?canary=canary", token, "", "{}", given, 400, clientTrace, "", problem("invalid-parameter")},
		{"forbidden", http.MethodPost, providerdtest.DirectoryPath, token, "", "{}", nil, 403, "new", "", problem("forbidden")},
		{"unknown", http.MethodPost, providerdtest.OAuth2Path, "canary", "", "{}", given, 401, clientTrace, "", problem("unauthorized")},
		{"unsampled", http.MethodPost, providerdtest.OAuth2Path, token, "", providerdtest.OAuth2Body, []string{traceparent[:53] + "00"}, 201, clientTrace, "untraced", nil},
		{"malformed", http.MethodPost, providerdtest.OAuth2Path, token, "", providerdtest.OAuth2Body, []string{"canary"}, 201, "new", "validate queue commit ", nil},
		{"twice", http.MethodPost, providerdtest.OAuth2Path, token, "", providerdtest.OAuth2Body, []string{traceparent, traceparent}, 201, "new", "validate queue commit ", nil},
		{"of-zeros", http.MethodPost, providerdtest.OAuth2Path, token, "", providerdtest.OAuth2Body, []string{strings.Repeat("0", 2) + "-" + strings.Repeat("0", 32) + traceparent[35:]}, 201, "new", "validate queue commit ", nil},
		{"elsewhere", http.MethodPost, providerdtest.OAuth2Path + "canary", token, "", providerdtest.OAuth2Body, given, 404, "", "untraced", nil},
		{"otherwise", http.MethodPut, providerdtest.OAuth2Path, token, "", providerdtest.OAuth2Body, given, 405, "", "untraced", nil},
		{"health", http.MethodGet, "/healthz", "", "", "", given, 200, "", "untraced", nil},
		{"page", http.MethodGet, "/docs/", "", "", "", given, 200, "", "untraced", nil},
	}
	for _, call := range calls {
		call.send(t, server)
	}
	keyset := filepath.Join(dir, "data", "keyset.json")
	processtest.Must(t, os.Rename(keyset, keyset+".away"))
	// Then the server finds out.
	server.ExpectReadiness(t, "unavailable")
	calls = append(calls, tracedCall{
		"unsealed", http.MethodPost, providerdtest.OAuth2Path, token, "", providerdtest.OAuth2Body, nil, 503, "new", "validate ",
		map[string]string{"providerd.problem": "storage-unavailable", "error.type": "503"},
	})
	calls[len(calls)-1].send(t, server)
	server.Stop(t)
	spans, resource := spansOf(t, collector)
	lines := map[any]map[string]any{}
	for _, line := range logLines(t, server.Stderr.String()) {
		lines[line["request_id"]] = line
	}
	for _, call := range calls {
		call.check(t, spans, lines[call.name])
	}
	for _, text := range collector.Bodies() {
		processtest.Expect(t, !strings.Contains(string(text), "canary"), "a span contains client data: %q", text)
	}
	processtest.Expect(t, resource["service.name"] == "providerd" && resource["service.version"] != "" &&
		resource["service.instance.id"] != "" && resource["deployment.environment.name"] == "test",
		"the resource is %v", resource)
}

func TestTracesOfSharedTransactions(t *testing.T) {
	t.Parallel()
	collector, dir := providerdtest.StartCollector(t), t.TempDir()
	server := serveTraced(t, dir, collector.URL, "OTEL_SERVICE_NAME=mine")
	const callers, each = 16, 8
	var group sync.WaitGroup
	client := contracttest.Client(t)
	for range callers {
		group.Go(func() {
			for range each {
				status, text, err := server.Post(client, providerdtest.OAuth2Path, providerdtest.OAuth2Body)
				processtest.Expect(t, err == nil && status == 201, "status is %d, %v: %s", status, err, text)
			}
		})
	}
	group.Wait()
	server.Stop(t)
	// A create that must be looked up ends after the others of its transaction, but begins with them.
	spans, resource := spansOf(t, collector)
	sizes, count, largest := map[uint64]int{}, map[string]int{}, 0
	for _, span := range spans {
		count[span.GetName()]++
		if span.GetName() == "commit" {
			sizes[span.GetStartTimeUnixNano()]++
		}
	}
	const all = callers * each
	processtest.Equal(t, count,
		map[string]int{"POST " + providerdtest.OAuth2Path: all, "validate": all, "queue": all, "commit": all}, "spans")
	for _, span := range spans {
		size := sizes[span.GetStartTimeUnixNano()]
		if span.GetName() != "commit" {
			continue
		}
		if largest = max(largest, size); textsOf(span.GetAttributes())["providerd.batch_size"] != strconv.Itoa(size) {
			t.Errorf("%d creates share the transaction of %v", size, span)
		}
	}
	processtest.Expect(t, largest >= 2, "no creates shared a transaction")
	processtest.Equal(t, resource["service.name"], "mine", "service name")
}
