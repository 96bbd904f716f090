package client_test

import (
	"errors"
	"net/http"
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

// A validation is refused like its create.
func TestValidationIsRefusedLikeCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	request, key := oauth2Request(), client.WithIdempotencyKey("k")
	if _, err := r.providers.CreateOAuth2(t.Context(), request, key); err != nil {
		t.Fatal(err)
	}
	request.Name, request.RedirectUris = "y", new("https://app.example.com/")
	_, created := r.providers.CreateOAuth2(t.Context(), request, key)
	_, validated := r.providers.ValidateOAuth2(t.Context(), request, key)
	for _, err := range []error{created, validated} {
		refused, ok := errors.AsType[*client.Error](err)
		if !ok || refused.Status != http.StatusUnprocessableEntity || refused.PK == nil || *refused.PK != 1 ||
			len(refused.Violations()) != 2 || refused.Violations()[1].Pointer != "/redirect_uris" ||
			!strings.Contains(err.Error(), "provider 1 ") || !strings.Contains(err.Error(), "name, redirect_uris") {
			t.Errorf("error is %v, %+v", err, refused)
		}
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
		s := newStranger(t, answering(test.status, test.mediaType, test.answer))
		verdict, err := s.providers(t).ValidateOAuth2(t.Context(), oauth2Request())
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%d %s: verdict is %v, error is %v", test.status, test.answer, verdict, err)
		}
		s.expectOneTry(t)
	}
}
