package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/server/contracttest"
)

// faultyVariables are values that variables do not take, and what is said of them. Where a name has a star, there are
// two: one for traces, and one for all that is exported. The files cert.pem and key.pem are there.
func faultyVariables() map[string]string {
	const unreadable, number = "%s cannot be read at entry ", " to 3600000, or unset it"
	return map[string]string{
		"OTEL_EXPORTER_OTLP_*COMPRESSION=zip":                 "%s is \"zip\"; set it to gzip or none",
		"OTEL_EXPORTER_OTLP_*PROTOCOL=grpc":                   "%s is \"grpc\", but traces are sent over HTTP alone",
		"OTEL_EXPORTER_OTLP_*TIMEOUT=q":                       "%s is \"q\"; set it to a whole number from 0" + number,
		"OTEL_EXPORTER_OTLP_*TIMEOUT=-1":                      "%s is \"-1\"; set it to a whole number from 0" + number,
		"OTEL_EXPORTER_OTLP_*HEADERS=canary":                  unreadable + "1; set it to NAME=VALUE",
		"OTEL_EXPORTER_OTLP_*HEADERS=a=b,=canary":             unreadable + "2",
		"OTEL_EXPORTER_OTLP_*HEADERS=a=b,canary:=c":           unreadable + "2",
		"OTEL_EXPORTER_OTLP_*HEADERS=a=canary%zz":             unreadable + "1",
		"OTEL_EXPORTER_OTLP_*HEADERS=a=b,b=canary%0Acanary":   unreadable + "2",
		"OTEL_EXPORTER_OTLP_*CERTIFICATE=canary":              "%s names a file that cannot be read: no such file or directory",
		"OTEL_EXPORTER_OTLP_*CERTIFICATE=/dev/zero":           "%s names a file that cannot be read: it is not a regular file",
		"OTEL_EXPORTER_OTLP_*CERTIFICATE=key.pem":             "%s names a file without a certificate",
		"OTEL_EXPORTER_OTLP_*CLIENT_CERTIFICATE=cert.pem":     "only one of %s and OTEL_EXPORTER_OTLP_CLIENT_KEY is set",
		"OTEL_EXPORTER_OTLP_*CLIENT_KEY=key.pem":              "only one of OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and %s is set",
		"OTEL_TRACES_SAMPLER=foo":                             "%s is \"foo\"; set it to one of always_on, ",
		"OTEL_TRACES_SAMPLER_ARG=7":                           "%s is not a part of all traces; set it to a number from 0 to 1",
		"OTEL_TRACES_SAMPLER_ARG=NaN":                         "%s is not a part of all traces",
		"OTEL_TRACES_SAMPLER_ARG=canary":                      "%s is not a part of all traces",
		"OTEL_RESOURCE_ATTRIBUTES=canary":                     unreadable + "1; set it to NAME=VALUE",
		"OTEL_RESOURCE_ATTRIBUTES=a=b,=canary":                unreadable + "2",
		"OTEL_RESOURCE_ATTRIBUTES=a=b,a=canary%zz":            unreadable + "2",
		"OTEL_RESOURCE_ATTRIBUTES=a=canary%ff":                unreadable + "1",
		"OTEL_SERVICE_NAME=canary\xff":                        "%s is not UTF-8",
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:1/%2f": "%s has %%2F in its path",
	}
}

// TestTracesOfFaultyVariables asks the doctor of each, and starts a server with one of them, which says the same.
func TestTracesOfFaultyVariables(t *testing.T) {
	t.Parallel()
	for line, said := range faultyVariables() {
		for _, line := range slices.Compact([]string{
			strings.Replace(line, "*", "", 1), strings.Replace(line, "*", "TRACES_", 1),
		}) {
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				folder := t.TempDir()
				writeCertificate(t, folder, 1)
				name, _, _ := strings.Cut(line, "=")
				want := fmt.Sprintf(said, name)
				command := newCommand(t.Context(), folder, "doctor")
				command.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:1", line)
				output, _ := command.CombinedOutput()
				if found := string(output); !strings.Contains(found, "no traces are exported: "+want) ||
					strings.Contains(found, "canary") {
					t.Errorf("the doctor says %s", found)
				}
			})
		}
	}
	const want = "traces are not exported: OTEL_EXPORTER_OTLP_HEADERS cannot be read at entry 1; set it to NAME=VALUE"
	collector, folder := startCollector(t), t.TempDir()
	server := startTraced(t, folder, collector.url, "OTEL_EXPORTER_OTLP_HEADERS=canary", "OTEL_RESOURCE_ATTRIBUTES=canary")
	createOverHTTP(t, contracttest.Client(t), server, folder)
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	if log := server.stderr.String(); !strings.Contains(log, want) || strings.Contains(log, "canary") {
		t.Errorf("the server says %s", log)
	}
}

// Certificates mean nothing to a collector that is reached without.
func TestTracesOfCertificatesWithoutHTTPS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCertificate(t, folder, 1)
	for _, line := range []string{"CERTIFICATE=cert.pem", "CLIENT_CERTIFICATE=cert.pem", "CLIENT_KEY=key.pem"} {
		command := newCommand(t.Context(), folder, "doctor")
		command.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_"+line)
		output, _ := command.CombinedOutput()
		name, _, _ := strings.Cut(line, "=")
		if want := "OTEL_EXPORTER_OTLP_" + name + " is set, but the endpoint is http"; !strings.Contains(string(output), want) {
			t.Errorf("the doctor says %s", output)
		}
	}
}

// TestTracesOverHTTPS exports to a collector that asks for a certificate. The variables for traces beat those for all
// that is exported, which cannot be followed.
func TestTracesOverHTTPS(t *testing.T) {
	t.Parallel()
	folder, received := t.TempDir(), &collector{}
	writeCertificate(t, folder, 1)
	certificate, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewUnstartedServer(received)
	listener.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: trust(t, folder), ClientAuth: tls.RequireAndVerifyClientCert,
	}
	listener.StartTLS()
	t.Cleanup(listener.Close)
	environment := []string{"OTEL_BSP_SCHEDULE_DELAY=1"}
	for name, value := range map[string]string{
		"CERTIFICATE": certificate, "CLIENT_CERTIFICATE": certificate, "CLIENT_KEY": key,
		"COMPRESSION": "gzip", "HEADERS": "a=b", "PROTOCOL": "http/protobuf", "TIMEOUT": "60000",
	} {
		environment = append(environment, "OTEL_EXPORTER_OTLP_TRACES_"+name+"="+value, "OTEL_EXPORTER_OTLP_"+name+"=nothing")
	}
	server := startTraced(t, folder, listener.URL, environment...)
	createOverHTTP(t, contracttest.Client(t), server, folder)
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	if log := server.stderr.String(); received.requests() == 0 || strings.Contains(log, "WARN") {
		t.Errorf("the collector got %d requests, and the server says %s", received.requests(), log)
	}
	folder = t.TempDir()
	server = startTraced(t, folder, listener.URL, "OTEL_BSP_SCHEDULE_DELAY=1")
	waitUntil(t, "a collector that is not trusted is not sent to", func() bool {
		createOverHTTP(t, contracttest.Client(t), server, folder)
		return strings.Contains(server.stderr.String(), "failed to verify certificate")
	})
}

// TestTracesOfTimeout exports to a collector that answers nothing, until the server gives it up.
func TestTracesOfTimeout(t *testing.T) {
	t.Parallel()
	for _, star := range []string{"", "TRACES_"} {
		t.Run(star, func(t *testing.T) {
			t.Parallel()
			givenUp := make(chan time.Duration, 1)
			listener := answeringWith(t, func(_ http.ResponseWriter, r *http.Request) {
				begun := time.Now()
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				select {
				case givenUp <- time.Since(begun):
				default:
				}
			})
			const forever = "3600000"
			folder := t.TempDir()
			server := startTraced(t, folder, listener, "OTEL_BSP_SCHEDULE_DELAY=1",
				"OTEL_BSP_EXPORT_TIMEOUT="+forever, "OTEL_EXPORTER_OTLP_TIMEOUT="+forever,
				"OTEL_EXPORTER_OTLP_"+star+"TIMEOUT=100")
			createOverHTTP(t, contracttest.Client(t), server, folder)
			select {
			case took := <-givenUp:
				if took >= defaultExportTimeout {
					t.Errorf("the collector had %v", took)
				}
			case <-time.After(readyTimeout):
				t.Error("the server does not give the collector up")
			}
		})
	}
}
