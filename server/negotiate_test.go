package server_test

import (
	"net/http"
	"testing"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, test := range []struct {
		accept []string
		ok     bool
	}{
		{nil, true},
		{[]string{""}, true},
		{[]string{"*/*"}, true},
		{[]string{"application/*"}, true},
		{[]string{"application/json"}, true},
		{[]string{"APPLICATION/JSON"}, true},
		{[]string{"application/json;version=2"}, true},
		{[]string{"application/json; charset=utf-8"}, true},
		{[]string{"text/html, application/json"}, true},
		{[]string{"text/html", "application/json"}, true},
		{[]string{"text/html, */*;q=0.1"}, true},
		{[]string{"application/json;q=0.001"}, true},
		{[]string{"*/*;q=0, application/json"}, true},
		{[]string{"application/json;q=0, application/json;version=2"}, true},
		{[]string{`text/html;a="x, y", application/json`}, true},
		{[]string{"application/json;q=2"}, true},
		{[]string{";;;"}, true},
		{[]string{"*"}, true},
		{[]string{"json"}, true},
		{[]string{"*/json"}, true},
		{[]string{"*;q=0, json;q=0"}, true},
		{[]string{"application/"}, true},
		{[]string{"text/html, *"}, false},
		{[]string{"application/*json"}, false},
		{[]string{"text/html"}, false},
		{[]string{"application/problem+json"}, false},
		{[]string{"application/json;q=0"}, false},
		{[]string{"application/json;q=0.000, */*"}, false},
		{[]string{"application/*;q=0, */*"}, false},
		{[]string{"*/*;q=0"}, false},
		{[]string{"text/*"}, false},
	} {
		got := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)), set("Accept", test.accept...))
		if ok := got.status == http.StatusCreated; ok != test.ok {
			t.Errorf("Accept %q: status is %d", test.accept, got.status)
		}
		if got.status != http.StatusCreated {
			got.problem(t, http.StatusNotAcceptable, "not-acceptable")
		}
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, test := range []struct {
		contentType []string
		encoding    []string
		ok          bool
	}{
		{[]string{"application/json"}, nil, true},
		{[]string{"Application/JSON"}, nil, true},
		{[]string{"application/json;charset=utf-8"}, nil, true},
		{[]string{`application/json; Charset="UTF-8"`}, nil, true},
		{[]string{"application/json"}, []string{"identity"}, true},
		{[]string{"application/json"}, []string{"Identity, identity"}, true},
		{nil, nil, false},
		{[]string{""}, nil, false},
		{[]string{"text/plain"}, nil, false},
		{[]string{"application/x-www-form-urlencoded"}, nil, false},
		{[]string{"application/problem+json"}, nil, false},
		{[]string{"application/json; charset=utf-16"}, nil, false},
		{[]string{"application/json; charset=iso-8859-1"}, nil, false},
		{[]string{"application/json; version=2"}, nil, false},
		{[]string{"application/json", "application/json"}, nil, false},
		{[]string{"application/json, text/plain"}, nil, false},
		{[]string{"application/json"}, []string{"gzip"}, false},
		{[]string{"application/json"}, []string{"identity", "br"}, false},
	} {
		got := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)),
			set("Content-Type", test.contentType...), set("Content-Encoding", test.encoding...))
		if ok := got.status == http.StatusCreated; ok != test.ok {
			t.Errorf("Content-Type %q, Content-Encoding %q: status is %d", test.contentType, test.encoding, got.status)
		}
		if got.status != http.StatusCreated {
			got.problem(t, http.StatusUnsupportedMediaType, "unsupported-media-type")
			if got.header.Get("Accept-Post") != "application/json" {
				t.Errorf("Accept-Post is %q", got.header.Get("Accept-Post"))
			}
		}
	}
}
