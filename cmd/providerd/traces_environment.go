package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// What OTEL_TRACES_EXPORTER names.
const (
	exporterOTLP = "otlp"
	exporterNone = "none"
)

const queueSizeVariable = "OTEL_BSP_MAX_QUEUE_SIZE"

// collectorURL returns where the environment wants traces to be sent to, by the variables of the OpenTelemetry
// standard; nil where nowhere. Its error says why none can be sent, and what to do. It names no URL, which may hold a
// password.
func collectorURL() (*url.URL, error) {
	exporter, err := tracesExporter()
	if err != nil || exporter == exporterNone {
		return nil, err
	}
	endpoint, err := endpointOfTraces()
	if err != nil {
		return nil, err
	}
	if endpoint == nil && exporter == exporterOTLP {
		return nil, errors.New("OTEL_TRACES_EXPORTER is otlp, but no collector is named; set OTEL_EXPORTER_OTLP_ENDPOINT " +
			"to its URL, such as http://127.0.0.1:4318")
	}
	if endpoint == nil {
		return nil, nil
	}
	if err := checkProtocol(); err != nil {
		return nil, err
	}
	if err := checkBatches(); err != nil {
		return nil, err
	}
	return endpoint, nil
}

// endpointOfTraces is the URL that takes traces; nil where no variable names a collector.
func endpointOfTraces() (*url.URL, error) {
	const ofTraces, ofAll = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"
	if variable(ofTraces) != "" {
		return parseEndpoint(ofTraces)
	}
	if variable(ofAll) == "" {
		return nil, nil
	}
	base, err := parseEndpoint(ofAll)
	if err != nil {
		return nil, err
	}
	return base.JoinPath("v1/traces"), nil
}

// tracesExporter is how traces are to be exported; "" where nothing is said of it.
func tracesExporter() (string, error) {
	switch disabled := strings.ToLower(variable("OTEL_SDK_DISABLED")); disabled {
	case "", "false":
	case "true":
		return exporterNone, nil
	default:
		return "", fmt.Errorf("OTEL_SDK_DISABLED is %q; set it to true or false, or unset it", disabled)
	}
	switch exporter := strings.ToLower(variable("OTEL_TRACES_EXPORTER")); exporter {
	case "", exporterOTLP, exporterNone:
		return exporter, nil
	default:
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER is %q; set it to otlp or none, or unset it", exporter)
	}
}

// parseEndpoint reads the URL of a collector from a variable. It refuses what the exporter would leave out without a
// word.
func parseEndpoint(name string) (*url.URL, error) {
	endpoint, err := url.Parse(variable(name))
	if err != nil || endpoint.Hostname() == "" || endpoint.Scheme != schemeHTTP && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("%s is not the URL of a collector; set it to one, such as http://127.0.0.1:4318", name)
	}
	if endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" {
		return nil, fmt.Errorf("%s has a user, a query or a fragment, which would not be sent; leave it out, and put what "+
			"the collector asks for into OTEL_EXPORTER_OTLP_HEADERS", name)
	}
	return endpoint, nil
}

// checkProtocol refuses a protocol that the exporter does not speak. It would speak another one without a word.
func checkProtocol() error {
	name := "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	if variable(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch protocol := variable(name); protocol {
	case "", "http/protobuf", "http/json":
		return nil
	default:
		return fmt.Errorf("%s is %q, but traces are sent over HTTP alone; set it to http/protobuf or http/json, and the "+
			"endpoint to where the collector takes that, most often port 4318", name, protocol)
	}
}

// checkBatches refuses sizes and times that the SDK would not survive, go on without a pause with, or be able to read.
func checkBatches() error {
	const maxSpans, maxMilliseconds = 1 << 16, 3_600_000
	for name, most := range map[string]int{
		queueSizeVariable: maxSpans, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": maxSpans,
		"OTEL_BSP_SCHEDULE_DELAY": maxMilliseconds, "OTEL_BSP_EXPORT_TIMEOUT": maxMilliseconds,
	} {
		text := os.Getenv(name)
		if number, err := strconv.Atoi(text); text != "" && (err != nil || number < 1 || number > most) {
			return fmt.Errorf("%s is %q; set it to a whole number from 1 to %d, or unset it", name, text, most)
		}
	}
	return nil
}

// spanQueueSize is how many spans wait for the collector at most, where the variables were checked.
func spanQueueSize() int {
	if size, err := strconv.Atoi(os.Getenv(queueSizeVariable)); err == nil {
		return size
	}
	return sdktrace.DefaultMaxQueueSize
}

// variable is one of the environment, as the exporter reads it.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }
