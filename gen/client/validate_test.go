package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

func TestValidationPredictsCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	oauth2, key := oauth2Request(), client.WithIdempotencyKey("k")
	directory := client.WorkspaceDirectoryProviderRequest{
		Name: "Staff", DelegatedSubject: "admin@example.com", DefaultGroupEmailDomain: "example.com",
		Credentials: client.NewSecretJSON(`{"a":1}`),
	}
	expect := func(wantOAuth2, wantDirectory int32) {
		t.Helper()
		verdict, err := r.providers.ValidateOAuth2(t.Context(), oauth2, key)
		expectVerdict(t, verdict, err, wantOAuth2)
		verdict, err = r.providers.ValidateWorkspaceDirectory(t.Context(), directory, key)
		expectVerdict(t, verdict, err, wantDirectory)
	}
	expect(0, 0)
	record, err := r.providers.CreateOAuth2(t.Context(), oauth2, key)
	if err != nil || record.PK != 1 {
		t.Fatalf("record is %v, %v", record, err)
	}
	expect(1, 0)
	if _, err := r.providers.CreateWorkspaceDirectory(t.Context(), directory, key); err != nil {
		t.Fatal(err)
	}
	expect(1, 2)
}

// expectVerdict compares a verdict with the pk of the earlier record of the key, 0 if there is none.
func expectVerdict(t *testing.T, verdict *client.Verdict, err error, priorPK int32) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	want := client.VerdictOutcomeWouldCreate
	if priorPK != 0 {
		want = client.VerdictOutcomeAlreadyCreated
	}
	if verdict.Outcome != want || (verdict.PK == nil) != (priorPK == 0) || verdict.PK != nil && *verdict.PK != priorPK {
		t.Errorf("verdict is %+v, want %s %d", verdict, want, priorPK)
	}
}

// A validation is refused for the same reasons as its create.
func TestValidationIsRefusedLikeCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, key := oauth2Request(), client.WithIdempotencyKey("k")
	first.ClientID = new("taken")
	if _, err := r.providers.CreateOAuth2(t.Context(), first, key); err != nil {
		t.Fatal(err)
	}
	changed := first
	changed.Name, changed.RedirectUris = "y", new("https://app.example.com/")
	blank := first
	blank.Name = " "
	for _, test := range []struct {
		request client.OAuth2ProviderRequest
		options []client.CreateOption
		status  int32
	}{
		{blank, nil, http.StatusBadRequest},
		{first, nil, http.StatusConflict},
		{changed, []client.CreateOption{key}, http.StatusUnprocessableEntity},
	} {
		_, created := r.providers.CreateOAuth2(t.Context(), test.request, test.options...)
		_, validated := r.providers.ValidateOAuth2(t.Context(), test.request, test.options...)
		var create, validation *client.Error
		if !errors.As(created, &create) || !errors.As(validated, &validation) || create.Status != test.status ||
			create.Type != validation.Type || create.Detail != validation.Detail ||
			len(create.Violations()) != len(validation.Violations()) {
			t.Errorf("created: %v; validated: %v", created, validated)
		}
		if test.status != http.StatusUnprocessableEntity {
			continue
		}
		if validation.PK == nil || *validation.PK != 1 ||
			len(validation.Violations()) != 2 || validation.Violations()[1].Pointer != "/redirect_uris" ||
			!strings.Contains(validated.Error(), "provider 1 ") || !strings.Contains(validated.Error(), "name, redirect_uris") {
			t.Errorf("error is %v, %+v", validated, validation.Problem)
		}
	}
}

// A validation is retried if its response is lost.
func TestLostVerdictIsRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wire.instead = []func(*http.Request, *http.Response) (*http.Response, error){lost, unavailable(503, "0")}
	verdict, err := r.providers.ValidateOAuth2(t.Context(), oauth2Request())
	expectVerdict(t, verdict, err, 0)
	if len(r.wire.keys) != 3 || r.wire.keys[0] != r.wire.keys[2] {
		t.Errorf("keys are %q", r.wire.keys)
	}
}

// Responses other than a verdict are errors, in particular the record that an older server stores.
func TestOtherResponsesToValidation(t *testing.T) {
	t.Parallel()
	const json, noVerdict = "application/json", "the response is not a verdict"
	for _, test := range []struct {
		status            int
		mediaType, answer string
		want              string
	}{
		{201, json, strings.ReplaceAll(recordText, "%s", "1"), "does not support validate_only and stored the provider"},
		{200, "text/html", `{"outcome":"would_create","pk":null,"advice":[]}`, "is not of the type"},
		{200, json, `{}`, noVerdict},
		{200, json, `null`, noVerdict},
		{200, json, `"hunter2"`, noVerdict},
		{200, json, ``, noVerdict},
		{200, json, `{"outcome":"would_create","pk":null}`, noVerdict},
		{200, json, `{"outcome":"hunter2"}`, noVerdict},
		{200, json, `{"outcome":"would_create","pk":1,"advice":[]}`, noVerdict},
		{200, json, `{"outcome":"already_created","pk":null,"advice":[]}`, noVerdict},
		{200, json, `{"outcome":"already_created","pk":0,"advice":[]}`, noVerdict},
		{200, json, `{"outcome":"already_created","pk":"1","advice":[]}`, noVerdict},
		{202, json, `{"outcome":"would_create","pk":null,"advice":[]}`, "202"},
	} {
		s := newStranger(t, (*httptest.Server).Start, answering(test.status, test.mediaType, test.answer))
		providers, err := client.New(s.URL, secretToken)
		if err != nil {
			t.Fatal(err)
		}
		verdict, err := providers.ValidateOAuth2(t.Context(), oauth2Request())
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%d %s: verdict is %v, error is %v", test.status, test.answer, verdict, err)
		}
		if requests := s.requests.Load(); requests != 1 {
			t.Errorf("%d requests were sent, want 1", requests)
		}
	}
}
