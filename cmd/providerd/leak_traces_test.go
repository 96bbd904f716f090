//go:build slow

package main

// tracing is an environment in which the server exports spans soon, with a key that the collector asks for.
func (s *search) tracing() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector.url, "OTEL_BSP_SCHEDULE_DELAY=10",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=" + s.fresh("key of the collector"),
	}
}

// spans scans what the collector got of a session, once the span of its last request is there: the only one for which
// the storage was unavailable.
func (s *search) spans() {
	waitUntil(s.t, "the last span has come", func() bool {
		for _, span := range s.collector.spans() {
			if span.attributes["http.response.status_code"] == "503" {
				return true
			}
		}
		return false
	})
	for _, text := range s.collector.texts() {
		s.scan("the traces", text)
	}
}
