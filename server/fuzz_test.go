package server_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/providerd/server/contracttest"
)

// fuzzTarget sends requests to a server in the same process and checks the responses against the contract.
type fuzzTarget struct {
	handler http.Handler
	token   string
	checker *contracttest.Checker
}

func newFuzzTarget(f *testing.F) fuzzTarget {
	f.Helper()
	checker, err := contracttest.NewChecker()
	if err != nil {
		f.Fatal(err)
	}
	handler, token := bareServer(f)
	return fuzzTarget{handler: handler, token: token, checker: checker}
}

// send returns the status. No input may cause a 5xx or a response that violates the contract.
func (target fuzzTarget) send(t *testing.T, path string, body []byte, change func(http.Header)) int {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+target.token)
	request.Header.Set("Content-Type", "application/json")
	change(request.Header)
	recorder := httptest.NewRecorder()
	target.handler.ServeHTTP(recorder, request)
	response := recorder.Result()
	defer func() { _ = response.Body.Close() }()
	if err := target.checker.Check(t.Context(), request, response, recorder.Body.Bytes()); err != nil {
		t.Error(err)
	}
	if response.StatusCode >= http.StatusInternalServerError {
		t.Errorf("status is %d: %s", response.StatusCode, recorder.Body)
	}
	return response.StatusCode
}

func FuzzBody(f *testing.F) {
	target := newFuzzTarget(f)
	for _, path := range []string{oauth2Path, workspaceDirectoryPath} {
		body := encode(f, minimal(path))
		f.Add(path == oauth2Path, false, []byte(body))
		f.Add(path == oauth2Path, true, []byte(strings.Replace(body, "{", `{"x":[1,{"y":"\u0000"}],`, 1)))
	}
	for _, body := range []string{
		`{"name":"a","name":"b"}`, `{"name":"\ud800"}`, "\xef\xbb\xbf{}", `{}{}`, `[[[[`, `{"credentials":{"a":1e999,"b":-0.10}}`,
		`{"redirect_uris":"https://a\r\nb:c\n","access_code_validity":"hours=1;minutes=2.5","delegated_subject":"a@b"}`,
		`{"name":null,"authorization_flow":"3F6E1C1A-5A0F-4D3C-9A54-6B8C2F7D9E01","property_mappings":["x",null,3,[]]}`,
	} {
		f.Add(true, true, []byte(body))
		f.Add(false, false, []byte(body))
	}
	f.Fuzz(func(t *testing.T, oauth2, lenient bool, body []byte) {
		path := workspaceDirectoryPath
		if oauth2 {
			path = oauth2Path
		}
		target.send(t, path, body, func(header http.Header) {
			if lenient {
				header.Set("Prefer", "handling=lenient")
			}
		})
	})
}

func FuzzHeaders(f *testing.F) {
	target := newFuzzTarget(f)
	f.Add("application/json;q=0.5, */*", "application/json; charset=utf-8", "identity", "handling=lenient", "id-1")
	f.Add(`text/html;a="x,\"y", application/*;q=0`, `application/json;charset="utf-8"`, "gzip,,", `handling="le\nient"`, "")
	f.Add(";;q=,", ";", ",", `="`, " ")
	body := []byte(encode(f, minimal(oauth2Path)))
	f.Fuzz(func(t *testing.T, accept, contentType, contentEncoding, prefer, requestID string) {
		target.send(t, oauth2Path, body, func(header http.Header) {
			header["Accept"] = strings.Split(accept, "\n")
			header["Content-Type"] = []string{contentType}
			header["Content-Encoding"] = []string{contentEncoding}
			header["Prefer"] = strings.Split(prefer, "\n")
			header["X-Request-Id"] = []string{requestID}
		})
	})
}

func FuzzAuthorization(f *testing.F) {
	target := newFuzzTarget(f)
	f.Add("Bearer x")
	f.Add("bearer  pvd_" + strings.Repeat("0", 40))
	f.Add("Basic eDp5")
	f.Fuzz(func(t *testing.T, authorization string) {
		status := target.send(t, oauth2Path, nil, func(header http.Header) { header.Set("Authorization", authorization) })
		if known := strings.Contains(authorization, target.token); status != http.StatusUnauthorized && !known {
			t.Errorf("%q is answered %d", authorization, status)
		}
	})
}
