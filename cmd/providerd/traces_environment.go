package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// exporterVariables is what the names of the exporter's variables begin with.
const exporterVariables = "OTEL_EXPORTER_OTLP_"

// What OTEL_TRACES_EXPORTER names.
const (
	exporterOTLP = "otlp"
	exporterNone = "none"
)

// traceCollector is what takes traces, and the client that reaches it.
type traceCollector struct {
	endpoint *url.URL
	client   *http.Client
}

// collectorOfEnvironment returns what the environment wants traces to be sent to, by the variables of the OpenTelemetry
// standard; nil where nowhere. Its error says which variable cannot be followed, and what to do. It holds neither a URL
// nor any other value that may be a secret.
func collectorOfEnvironment() (*traceCollector, error) {
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
	if err := checkVariables(); err != nil {
		return nil, err
	}
	client, err := newCollectorClient(endpoint.Scheme)
	if err != nil {
		return nil, err
	}
	return &traceCollector{endpoint: endpoint, client: client}, nil
}

// endpointOfTraces is the URL that takes traces; nil where no variable names a collector.
func endpointOfTraces() (*url.URL, error) {
	name := ofTraces("ENDPOINT")
	if variable(name) == "" {
		return nil, nil
	}
	endpoint, err := parseEndpoint(name)
	if err != nil || name != exporterVariables+"ENDPOINT" {
		return endpoint, err
	}
	return endpoint.JoinPath("v1/traces"), nil
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
	hasQuery := endpoint.RawQuery != "" || endpoint.ForceQuery
	if endpoint.User != nil || hasQuery || endpoint.Fragment != "" {
		return nil, fmt.Errorf("%s has a user, a query or a fragment, which would not be sent; leave it out, and put what "+
			"the collector asks for into OTEL_EXPORTER_OTLP_HEADERS", name)
	}
	if strings.Contains(strings.ToLower(endpoint.RawPath), "%2f") {
		return nil, fmt.Errorf("%s has %%2F in its path, which would be sent as a slash; set it to a URL without", name)
	}
	return endpoint, nil
}

// ofTraces is the name of the variable that counts: the one for traces alone, or else the one for all that is exported.
func ofTraces(suffix string) string {
	if name := exporterVariables + "TRACES_" + suffix; variable(name) != "" {
		return name
	}
	return exporterVariables + suffix
}

// variable is one of the environment, as the exporter reads it.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }
