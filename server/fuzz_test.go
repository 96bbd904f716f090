package server_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/providerd/server"
)

// target is a server in the same process, with a token for it.
type target struct {
	handler http.Handler
	token   string
	// into receives the bodies of responses; each has its own buffer if it is nil.
	into *bytes.Buffer
}

// newTarget starts a server without a listener. Each change is applied to its configuration.
func newTarget(t testing.TB, changes ...func(*server.Config)) target {
	t.Helper()
	h := start(t)
	return target{handler: h.newServer(t, changes...), token: h.token}
}

// post sends a create. Each change is applied to the request before it is sent.
func (s target) post(path, body string, changes ...func(*http.Request)) answer {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for _, change := range append([]func(*http.Request){
		set("Authorization", "Bearer "+s.token), set("Content-Type", "application/json"),
	}, changes...) {
		change(request)
	}
	recorder := httptest.NewRecorder()
	if s.into != nil {
		s.into.Reset()
		recorder.Body = s.into
	}
	s.handler.ServeHTTP(recorder, request)
	return answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
}

// FuzzHeaders sends creates with any header. None may cause a 5xx, a response that violates the contract, or a success
// without the token.
func FuzzHeaders(f *testing.F) {
	target := newTarget(f)
	valid := "Bearer " + target.token
	f.Add(valid, "application/json;q=0.5, */*", "application/json; charset=utf-8", "identity", "handling=lenient", "id-1")
	f.Add(valid, `text/html;a="x,\"y", application/*;q=0`, `application/json;charset="utf-8"`, "gzip,,", `handling="le\nient"`, "")
	f.Add(valid, ";;q=,", ";", ",", `="`, " ")
	f.Add("Bearer x", "", "", "", "", "")
	f.Add("bearer  pvd_"+strings.Repeat("0", 40), "", "", "", "", "")
	f.Add("Basic eDp5", "", "", "", "", "")
	body := encode(f, minimal(oauth2Path))
	f.Fuzz(func(t *testing.T, authorization, accept, contentType, contentEncoding, prefer, requestID string) {
		got := target.post(oauth2Path, body,
			set("Authorization", authorization), set("Accept", strings.Split(accept, "\n")...), set("Content-Type", contentType),
			set("Content-Encoding", contentEncoding), set("Prefer", strings.Split(prefer, "\n")...), set("X-Request-Id", requestID))
		if err := got.check(oauth2Path); err != nil {
			t.Error(err)
		}
		if got.status >= http.StatusInternalServerError {
			t.Errorf("status is %d: %s", got.status, got.body)
		}
		if known := strings.Contains(authorization, target.token); got.status != http.StatusUnauthorized && !known {
			t.Errorf("%q is answered %d", authorization, got.status)
		}
	})
}
