#!/usr/bin/env bash
# Package:  cloud.google.com/go/auth 0.24.4 (Go)
# Expected: DetectOptions.Subject of a service account is the subject of its tokens. If it cannot be, because the token
#           is a self-signed JWT or the file has a universe_domain of its own, there is an error.
# Happens:  in both cases the JWT has the service account as its subject, and there is no error. A token request has
#           the subject that was asked for. google-auth-library for Node reports an error for such a domain.
# Matters:  a directory sync acts for its delegated subject. With such credentials it acts as the service account, and
#           the directory reports a missing permission instead of the cause.
# Date:     2026-11-28
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >go.mod <<'MOD'
module example.com/finding

go 1.26.0

require cloud.google.com/go/auth v0.24.4
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"cloud.google.com/go/auth/credentials"
)

var assertion string

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assertion = r.FormValue("assertion")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"opaque","token_type":"Bearer","expires_in":60}`)
	}))
	defer server.Close()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	check(err)
	account := map[string]string{
		"type": "service_account", "client_email": "sync@example.com", "private_key_id": "1", "token_uri": server.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
	show("token request", account, false)
	show("self-signed", account, true)
	account["universe_domain"] = "universe.example.com"
	show("universe", account, false)
}

func show(name string, account map[string]string, selfSigned bool) {
	file, err := json.Marshal(account)
	check(err)
	found, err := credentials.DetectDefault(&credentials.DetectOptions{
		CredentialsJSON: file, Scopes: []string{"read"}, Subject: "admin@example.com", UseSelfSignedJWT: selfSigned,
	})
	check(err)
	token, err := found.Token(context.Background())
	check(err)
	signed := token.Value
	if signed == "opaque" {
		signed = assertion
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(signed, ".")[1])
	check(err)
	var claims struct{ Sub string }
	check(json.Unmarshal(payload, &claims))
	fmt.Println(name, claims.Sub)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go mod tidy 2>tidy.log || { cat tidy.log >&2; exit 1; }
seen=$(go run .)
expected='token request admin@example.com
self-signed sync@example.com
universe sync@example.com'
if [ "$seen" != "$expected" ]; then
  printf 'google-auth-drops-subject: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "google-auth-drops-subject: as recorded: a self-signed token has the account as its subject, without an error"
