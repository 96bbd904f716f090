package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

func TestValidationTellsWhatACreateWouldDo(t *testing.T) {
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

// expectVerdict compares a verdict with the pk of what the key made before; 0 for nothing.
func expectVerdict(t *testing.T, verdict *client.Verdict, err error, madeBefore int32) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	want := client.VerdictOutcomeWouldCreate
	if madeBefore != 0 {
		want = client.VerdictOutcomeAlreadyCreated
	}
	if verdict.Outcome != want || (verdict.PK == nil) != (madeBefore == 0) || verdict.PK != nil && *verdict.PK != madeBefore {
		t.Errorf("the verdict is %+v, want %s %d", verdict, want, madeBefore)
	}
}

// What a create is refused for, its validation is refused for.
func TestValidationIsRefusedAsTheCreateIs(t *testing.T) {
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
		var one, other *client.Error
		if !errors.As(created, &one) || !errors.As(validated, &other) || one.Status != test.status ||
			one.Type != other.Type || one.Detail != other.Detail || len(one.Violations()) != len(other.Violations()) {
			t.Errorf("created: %v; validated: %v", created, validated)
		}
		if test.status != http.StatusUnprocessableEntity {
			continue
		}
		if other.PK == nil || *other.PK != 1 || len(other.Violations()) != 2 || other.Violations()[1].Pointer != "/redirect_uris" ||
			!strings.Contains(validated.Error(), "provider 1 ") || !strings.Contains(validated.Error(), "name, redirect_uris") {
			t.Errorf("error is %v, %+v", validated, other.Problem)
		}
	}
}

// A validation whose answer is lost is asked for again.
func TestLostVerdictIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wire.instead = []func(*http.Request, *http.Response) (*http.Response, error){lost, unavailable(503, "0")}
	verdict, err := r.providers.ValidateOAuth2(t.Context(), oauth2Request())
	expectVerdict(t, verdict, err, 0)
	if len(r.wire.keys) != 3 || r.wire.keys[0] != r.wire.keys[2] {
		t.Errorf("keys are %q", r.wire.keys)
	}
}

// What is no verdict is an error, above all the record that an older server stores.
func TestAnswersThatAreNoVerdictAreErrors(t *testing.T) {
	t.Parallel()
	const json, noVerdict = "application/json", "the answer is not a verdict"
	for _, test := range []struct {
		status            int
		mediaType, answer string
		want              string
	}{
		{201, json, strings.ReplaceAll(recordText, "%s", "1"), "does not know validate_only, and has stored the provider"},
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
