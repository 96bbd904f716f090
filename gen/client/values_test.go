package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/gen/client"
	"example.com/providerd/store/storetest/processtest"
)

// The server accepts every duration and list of valid URIs that the helpers return, and refuses invalid ones.
func TestServerJudgesDurationsAndRedirectURIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for length, want := range map[time.Duration]string{
		0:                                 "seconds=0",
		time.Nanosecond:                   "seconds=0.000000001",
		90 * time.Minute:                  "hours=1;minutes=30",
		time.Hour + 1500*time.Millisecond: "hours=1;seconds=1.5",
		720 * time.Hour:                   "hours=720",
		math.MaxInt64:                     "hours=2562047;minutes=47;seconds=16.854775807",
	} {
		request := oauth2Request()
		request.AccessTokenValidity = new(client.Duration(length))
		record, err := r.CreateOAuth2(t.Context(), request, client.WithUnchecked())
		if err != nil || *request.AccessTokenValidity != want || record.AccessTokenValidity != want {
			t.Errorf("%s is %q, want %q: %v", length, *request.AccessTokenValidity, want, err)
		}
	}
	for want, uris := range map[string][]string{
		"":                               nil,
		"https://a.example/":             {"https://a.example/"},
		"https://a.example/\nmyapp:back": {"https://a.example/", "myapp:back"},
		"https://a.example/\r\nhttps://b.example/\nmyapp:back": {"https://a.example/\r\nhttps://b.example/\r\n", "myapp:back\n"},
	} {
		request := oauth2Request()
		request.RedirectUris = new(client.RedirectURIs(uris...))
		if record, err := r.CreateOAuth2(t.Context(), request); err != nil || record.RedirectUris != want {
			t.Errorf("%q: %v", uris, err)
		}
	}
	for _, length := range []time.Duration{-1, -time.Second, -time.Hour, math.MinInt64} {
		request := oauth2Request()
		request.AccessTokenValidity = new(client.Duration(length))
		_, err := r.CreateOAuth2(t.Context(), request)
		expectViolation(t, err, "/access_token_validity", "invalid_duration")
	}
	for _, uri := range []string{"https://a.example/ https://b.example/", "https://a.example/\rhttps://b.example/", "a.example"} {
		request := oauth2Request()
		request.RedirectUris = new(client.RedirectURIs(uri, "https://c.example/"))
		_, err := r.CreateOAuth2(t.Context(), request)
		expectViolation(t, err, "/redirect_uris", "invalid_uri")
	}
}

// expectViolation checks the violation of a value.
func expectViolation(t *testing.T, err error, pointer string, code client.ViolationCode) {
	t.Helper()
	refused, ok := errors.AsType[*client.Error](err)
	processtest.Require(t, ok && errors.Is(err, client.ErrValidationFailed) && !errors.Is(err, client.ErrClientIDTaken),
		"error is %v", err)
	if violation, ok := refused.Violation(pointer); !ok || violation.Code != code {
		t.Errorf("the violation at %s is %v, want %s", pointer, violation, code)
	}
	if violation, ok := refused.Violation("/elsewhere"); ok {
		t.Errorf("unexpected violation: %v", violation)
	}
}

const (
	secretText = "hunter2"
	shownMask  = "********"
)

func TestSecretsAndTokensAreNotPrinted(t *testing.T) {
	t.Parallel()
	secret, credentials := client.NewSecret(secretText), client.NewSecretJSON(`{"key":"`+secretText+`"}`)
	record := client.OAuth2Provider{Name: "x", ClientSecret: secret}
	request := client.OAuth2ProviderRequest{Name: "x", ClientSecret: &secret}
	directory := client.WorkspaceDirectoryProvider{Name: "x", Credentials: credentials}
	directoryRequest := client.WorkspaceDirectoryProviderRequest{Name: "x", Credentials: credentials}
	for name, value := range map[string]any{
		"secret": secret, "pointer": &secret, "credentials": credentials,
		"record": record, "record's pointer": &record, "request": request, "request's pointer": &request,
		"directory": directory, "directory's pointer": &directory, "directory's request": directoryRequest,
	} {
		nested := []any{value, fmt.Errorf("x: %v", value), errors.New(fmt.Sprint(value))}
		nested = append(nested, []any{value}, map[string]any{"x": value}, struct{ X any }{value}, struct{ x any }{value})
		for _, value := range nested {
			for verb := 'A'; verb <= 'z'; verb++ {
				for _, flags := range []string{"", "+", "#", "-20", "020.3", "[1]"} {
					if text := fmt.Sprintf("%"+flags+string(verb), value); strings.Contains(text, secretText) {
						t.Errorf("%s, with %%%s%c: %s", name, flags, verb, text)
					}
				}
			}
		}
		if text := fmt.Sprintf("%+v", value); !strings.Contains(text, shownMask) {
			t.Errorf("%s is printed as %s", name, text)
		}
		var log bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			log.Reset()
			slog.New(handler).Info("x", "key", value, slog.Group("group", "key", value))
			if text := log.String(); strings.Contains(text, secretText) || strings.Count(text, shownMask) != 2 {
				t.Errorf("%s is logged as %s", name, text)
			}
		}
	}
	providers, err := client.New("http://example.com", secretToken)
	processtest.Must(t, err)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%10s"} {
		secret, credentials := client.NewSecret(secretText), client.NewSecretJSON(secretText)
		if text := fmt.Sprintf(format+format, secret, credentials); text != shownMask+shownMask {
			t.Errorf("%s prints %s", format, text)
		}
		for _, value := range []any{providers, *providers} {
			text := fmt.Sprintf(format, value)
			if strings.Contains(text, secretToken) || strings.Contains(text, fmt.Sprintf("%x", secretToken)) {
				t.Errorf("%s prints %s", format, text)
			}
		}
	}
}

func TestSecretsAreMarshaledUnmasked(t *testing.T) {
	t.Parallel()
	type both struct {
		Secret   client.Secret     `json:"secret"`
		Optional *client.Secret    `json:"optional,omitempty"`
		JSON     client.SecretJSON `json:"json"`
	}
	const zero = `{"secret":"","json":null}`
	for _, text := range []string{
		zero,
		`{"secret":"hunter2 \"ü\" \u0001","optional":"","json":{"n":9007199254740993,"b":[1.50,null]}}`,
	} {
		var value both
		processtest.Must(t, json.Unmarshal([]byte(text), &value))
		marshaled, err := json.Marshal(value)
		processtest.Expect(t, err == nil && string(marshaled) == text, "%s is marshaled as %s, %v", text, marshaled, err)
	}
	if marshaled, err := json.Marshal(both{}); err != nil || string(marshaled) != zero {
		t.Errorf("the zero value is marshaled as %s, %v", marshaled, err)
	}
	if secret := client.NewSecret(secretText); secret.Reveal() != secretText {
		t.Errorf("the secret is %s", secret.Reveal())
	}
	if text := client.NewSecretJSON([]byte(`{}`)).Reveal(); string(text) != `{}` || client.NewSecretJSON("").Reveal() != nil {
		t.Errorf("the JSON is %s", text)
	}
	var secret client.Secret
	for _, text := range []string{`["hunter2"]`, `{"hunter2":1}`, `12345`} {
		err := json.Unmarshal([]byte(text), &secret)
		if err == nil || strings.Contains(err.Error(), secretText) || strings.Contains(err.Error(), "12345") {
			t.Errorf("%s: error is %v", text, err)
		}
	}
}

// The constants match the server's index of problems.
func TestProblemTypesMatchServer(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("refusal.go")
	processtest.Must(t, err)
	baseURL, _ := startServer(t)
	response, err := http.Get(baseURL + "/problems/")
	processtest.Must(t, err)
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	processtest.Must(t, err)
	types := func(pattern string, text []byte) (found []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(match[1]))
		}
		slices.Sort(found)
		return found
	}
	declared, served := types(`"(/problems/[^"]+)"`, source), types(`href="(/problems/[^"]+)"`, page)
	processtest.Expect(t, slices.Equal(declared, served), "the server has the problems %q, the SDK %q", served, declared)
}
