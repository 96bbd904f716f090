//go:build slow

package leaks_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store/storetest/processtest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestGateFindsInjectedLeaks injects all leaks at once or, in the proof "leaks", each alone. The gate must find them.
func TestGateFindsInjectedLeaks(t *testing.T) {
	t.Parallel()
	for injected := range slices.Chunk(leaks(), processtest.ProofSize(t, "leaks", len(leaks()))) {
		t.Run(injected[0].finding, func(t *testing.T) {
			t.Parallel()
			s := newSearch(t)
			// Responses with leaks may violate the contract.
			s.client = &http.Client{}
			variable := leaksVariable + "="
			for _, leak := range injected {
				variable += leak.finding + "\n"
			}
			s.environment = []string{variable}
			s.overSQLite()
			for _, leak := range leaks() {
				isFound := slices.ContainsFunc(s.leaks, regexp.MustCompile(leak.finding).MatchString)
				isInjected := strings.Contains(variable, leak.finding+"\n")
				processtest.Expect(t, isFound == isInjected, "%s: found is %v, injected is %v", leak.finding, isFound, isInjected)
			}
			t.Logf("found %d injected leaks in %d places", len(injected), s.places)
		})
	}
}

// leak is a leak that is injected around the program, between it and its callers.
type leak struct {
	// when is how occasions begin on which something leaks: responses, or commands after their exit status.
	when string
	// what returns what leaks, and to makes it leak.
	what func(o *occasion) string
	to   func(o *occasion, text string)
	// finding matches what the gate must find. No other leak causes it.
	finding string
}

// leaks has a leak of each kind, through every channel.
func leaks() []leak {
	return []leak{
		{"422", input, toStderr, "nested value in other .* in standard error"},
		{"400", input, toStderr, "refused secret is in standard error"},
		{"201", secret, toStderr, "client_secret of first .* in standard error"},
		{"403", token, toStderr, "narrow token is in standard error"},
		{"400", query, toStderr, "secret in a query is in standard error"},
		{"400", input, toBody, "refused secret is in the body of 400"},
		{"400", query, toBody, "secret in a query is in the body of 400"},
		{"422", secret, toBody, "client_secret of other .* in the body of 422"},
		{"200", secret, toBody, "client_secret of first .* in the body of 200"},
		{"200 OK of GET /metrics", masterKey, toBody, "master key .* in the body of 200 OK of GET /metrics"},
		{"201", secret, toHeader, "client_secret of first .* in the header of 201"},
		{"401", token, toHeader, "wrong token is in the header of 401"},
		{"400", query, toSpan, "secret in a query is in the traces"},
		{"403", token, toAttribute, "narrow token is in the traces"},
		{"400", state, toState, "refused secret is in the traces"},
		{"201", input, toDatabase, "value in first .* in the file providerd.db"},
		{"201", digest, toDatabase, "digest of first .* in the file providerd.db"},
		{"403", token, toDatabase, "narrow token is in the file providerd.db"},
		{"201", dataKeys, toDatabase, "data key .* in the file providerd.db"},
		{"0 key rotate", masterKey, toFile, "master key .* in the file keyset.json.old"},
		{"0 key rotate", masterKey, toStderr, "master key .* in the standard error with the output of key rotate"},
		{"0 key rotate", dataKeys, toStderr, "data key .* in the standard error with the output of key rotate"},
		{"0 key list", dataKeys, toOutput, "data key .* in the output of key list"},
		{"0 provider show", revealed, toOutput, "client_secret of first .* in the output of provider show"},
		{"0 provider list --advice", revealed, toOutput, "client_secret of first .* in the output of provider list"},
		{"0 provider export", revealed, toOutput, "client_secret of first .* is in the output of provider export"},
		{"0 provider export", revealed, toStderr, "secret of first .* the standard error with the output of provider export"},
		{"0 backup", revealed, toStderr, "secret of applied .* in the standard error with the output of backup"},
		{"0 backup backup.db", input, toEveryone, "the file backup.db has the mode 644"},
		{"0 apply", input, toStderr, "secret of applied .* in the standard error with the output of apply"},
		{"1 apply", input, toStderr, "secret in a faulty file is in the standard error with the output of apply"},
	}
}

// occasion is a request and its response, or a command that has ended.
type occasion struct {
	request  *http.Request
	response *http.Response
	// input is the body of the request, or the standard input of the command.
	input string
}

func input(o *occasion) string { return o.input }

func secret(o *occasion) string {
	return regexp.MustCompile(`"client_secret":"\w+`).FindString(o.input)
}

func token(o *occasion) string { return o.request.Header.Get("Authorization") }

func query(o *occasion) string { return o.request.URL.RawQuery }

func state(o *occasion) string { return o.request.Header.Get("Tracestate") }

func digest(o *occasion) string {
	digest := sha256.Sum256([]byte(o.input))
	return string(digest[:])
}

func masterKey(*occasion) string { return string(must(os.ReadFile("data/keyset.json"))) }

func dataKeys(*occasion) (text string) {
	for _, key := range must(providerdtest.ClearKeys("data/keyset.json", "sqlite3", "data/providerd.db")) {
		if key.Kind != "master" {
			text += string(key.Key)
		}
	}
	return text
}

func revealed(*occasion) string {
	command := exec.CommandContext(context.Background(), must(os.Executable()))
	command.Args = []string{"providerd", "provider", "export", "--reveal"}
	command.Env = append(os.Environ(), leaksVariable+"=")
	return string(must(command.Output()))
}

func toStderr(_ *occasion, text string) { println(text) }

func toOutput(_ *occasion, text string) { fmt.Println(text) }

func toBody(o *occasion, text string) {
	o.response.Body = io.NopCloser(io.MultiReader(o.response.Body, strings.NewReader(text)))
	o.response.Header.Del("Content-Length")
}

func toHeader(o *occasion, text string) { o.response.Header.Set("X-Leak", text) }

func toSpan(_ *occasion, text string) { export(context.Background(), text) }

func toAttribute(_ *occasion, text string) {
	export(context.Background(), "", trace.WithAttributes(attribute.String("x", text)))
}

func toState(_ *occasion, text string) {
	caller := trace.SpanContext{}.WithTraceState(must(trace.ParseTraceState(text)))
	export(trace.ContextWithSpanContext(context.Background(), caller), "")
}

func export(ctx context.Context, name string, options ...trace.SpanStartOption) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(must(otlptracehttp.New(ctx))))
	_, span := provider.Tracer("").Start(ctx, name, options...)
	span.End()
}

func toDatabase(_ *occasion, text string) {
	db := must(sql.Open("sqlite3", "data/providerd.db"))
	_ = must(db.Exec("CREATE TABLE IF NOT EXISTS leaked (value)"))
	_ = must(db.Exec("INSERT INTO leaked VALUES (?)", []byte(text)))
	check(db.Close())
}

func toFile(_ *occasion, text string) {
	check(os.WriteFile("data/keyset.json.old", []byte(text), 0o600))
}

func toEveryone(*occasion, string) { check(os.Chmod("backup.db", 0o644)) }

// leaksVariable has the findings of the leaks that a program has, each followed by a line feed.
const leaksVariable = "INJECTED_LEAKS"

type leaking []leak

// runLeaking runs the program with the leaks that the variable names.
func runLeaking(program func() int) int {
	injected := leaking(slices.DeleteFunc(leaks(), func(l leak) bool {
		return !strings.Contains(os.Getenv(leaksVariable), l.finding+"\n")
	}))
	switch {
	case len(injected) == 0:
		return program()
	case os.Args[1] == "serve":
		injected.interceptServer()
		return program()
	}
	input := must(io.ReadAll(os.Stdin))
	reader, writer, err := os.Pipe()
	os.Stdin = must(reader, err)
	go func() { _, _ = must(writer.Write(input)), writer.Close() }()
	status := program()
	injected.leak(fmt.Sprint(status, " ", strings.Join(os.Args[1:], " ")), &occasion{input: string(input)})
	return status
}

func (l leaking) leak(when string, o *occasion) {
	for _, leak := range l {
		if strings.HasPrefix(when, leak.when) {
			leak.to(o, leak.what(o))
		}
	}
}

// interceptServer makes the server report the addresses of proxies instead of its own.
func (l leaking) interceptServer() {
	ops := must(net.Listen("tcp", "127.0.0.1:0"))
	os.Args[slices.Index(os.Args, "--ops-listen")+1] = ops.Addr().String()
	// The first address reported counts.
	println("serving metrics, health, the manual and pprof profiles on " + l.proxy("http://"+ops.Addr().String()))
	check(ops.Close())
	stdout := os.Stdout
	reader, writer, err := os.Pipe()
	os.Stdout = must(writer, err)
	go func() {
		line := must(bufio.NewReader(reader).ReadString('\n'))
		_ = must(fmt.Fprintln(stdout, "listening on", l.proxy(strings.Fields(line)[2])))
	}()
}

// proxy returns the URL of a proxy, which leaks.
func (l leaking) proxy(target string) string {
	location := must(url.Parse(target))
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := must(io.ReadAll(r.Body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy := httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(location)
				p.Out.URL.RawQuery = p.In.URL.RawQuery
				p.Out.Header.Set("Accept-Encoding", "identity")
			},
			ModifyResponse: func(response *http.Response) error {
				l.leak(response.Status+" of "+r.Method+" "+r.URL.Path, &occasion{r, response, string(body)})
				return nil
			},
		}
		proxy.ServeHTTP(w, r)
	})).URL
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
