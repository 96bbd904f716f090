#!/usr/bin/env bash
# Package:  resty.dev/v3 v3.0.0-rc.4
# Expected: after SetRetryCount(2), with the default conditions on, a GET is sent again after a 503 with Retry-After,
#           after a connection that is closed without a response, and after a refused connection.
# Happens:  each is sent once. The default conditions count 429 and 5xx up to v3.0.0-beta.6; since rc.1 they repeat only
#           errors that report themselves as temporary, and neither of these does. With RetryConditionStatus5XX added,
#           Retry-After: 1 is obeyed although the longest wait is set to 5 ms.
# Matters:  an idempotency key makes it safe to repeat a create, but a client that is configured to retry does not. It
#           needs conditions for status codes.
# Date:     2026-11-27
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >go.mod <<'MOD'
module finding

go 1.26

require resty.dev/v3 v3.0.0-rc.4
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"resty.dev/v3"
)

func client() *resty.Client {
	return resty.New().SetRetryCount(2).SetRetryWaitTime(time.Millisecond).SetRetryMaxWaitTime(5 * time.Millisecond)
}

func main() {
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if count.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	fmt.Println("default conditions:", client().IsRetryDefaultConditions())
	response, err := client().R().Get(server.URL)
	fmt.Println("503:", response.StatusCode(), err, count.Load())

	count.Store(0)
	start := time.Now()
	response, err = client().AddRetryConditions(resty.RetryConditionStatus5XX).R().Get(server.URL)
	fmt.Println("503 with a condition:", response.StatusCode(), err, count.Load(), time.Since(start) >= time.Second)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var accepted atomic.Int64
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			connection.Close()
		}
	}()
	url := "http://" + listener.Addr().String()
	_, err = client().R().Get(url)
	fmt.Println("closed:", err != nil, accepted.Load())

	listener.Close()
	request := client().R()
	_, err = request.Get(url)
	fmt.Println("refused:", err != nil, request.Attempt)
}
GO

seen=$(GOFLAGS=-mod=mod go run . 2>build.log) || {
	cat build.log
	exit 1
}
expected='default conditions: true
503: 503 <nil> 1
503 with a condition: 200 <nil> 2 true
closed: true 1
refused: true 1'
diff <(echo "$expected") <(echo "$seen") || {
	echo "resty-default-retries: < as recorded, > seen now"
	exit 1
}
echo "resty-default-retries: as recorded: SetRetryCount(2) alone repeats neither a 503 nor a lost connection."
