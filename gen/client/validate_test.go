package client_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

// A validation returns the record as the create would store it, then the stored one, with advice and without secrets.
func TestValidationPredictsCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var replayed bool
	var advice []client.Advice
	options := []client.CreateOption{
		client.WithIdempotencyKey("k"), client.WithReplayed(&replayed), client.WithAdvice(&advice),
	}
	validate := append(slices.Clone(options), client.WithValidateOnly())
	oauth2, directory := oauth2Request(), directoryRequest()
	oauth2.RedirectUris = new("http://app.example.com/")
	for _, wantPK := range []int64{0, 1} {
		record, err := r.providers.CreateOAuth2(t.Context(), oauth2, validate...)
		if err != nil || record.PK != wantPK || replayed != (wantPK != 0) || record.ClientSecret.Reveal() != "" ||
			(record.ClientID == "") != (wantPK == 0) || record.AccessTokenValidity != "hours=1" {
			t.Fatalf("record is %+v, replayed %t, %v", record, replayed, err)
		}
		if len(advice) != 1 || advice[0].Code != "redirect_uri_http" || advice[0].Pointer != "/redirect_uris" ||
			!strings.HasPrefix(advice[0].Detail, "Line 1: ") {
			t.Errorf("advice is %+v", advice)
		}
		if record, err = r.providers.CreateOAuth2(t.Context(), oauth2, options...); err != nil || record.PK != 1 {
			t.Fatalf("record is %+v, %v", record, err)
		}
	}
	for _, wantPK := range []int64{0, 2} {
		record, err := r.providers.CreateWorkspaceDirectory(t.Context(), directory, validate...)
		if err != nil || record.PK != wantPK || string(record.Credentials.Reveal()) != "{}" || len(advice) != 0 {
			t.Fatalf("record is %+v, %v; advice is %+v", record, err, advice)
		}
		if record, err = r.providers.CreateWorkspaceDirectory(t.Context(), directory, options...); err != nil || record.PK != 2 {
			t.Fatalf("record is %+v, %v", record, err)
		}
	}
}

func directoryRequest() client.WorkspaceDirectoryProviderRequest {
	return client.WorkspaceDirectoryProviderRequest{
		Name: "Staff", DelegatedSubject: "admin@example.com", DefaultGroupEmailDomain: "example.com",
		Credentials: client.NewSecretJSON(`{"a":1}`),
	}
}

// Advice is read from the links of the header, whatever their sentences contain, and other links are ignored.
func TestAdviceIsReadFromLinks(t *testing.T) {
	t.Parallel()
	const link = `</other>; rel="help"; title="x", </advice/#a_b>; rel="help"; anchor="#/x"; title="Say \"no, <yes>\" \\ .", ` +
		`</advice/#c>; rel="help"; anchor="#/y"; title="", </advice/>; rel="help"`
	answer := answering(200, "application/json", fmt.Sprintf(recordText, "0"))
	s := newStranger(t, withHeader("Link", "</first>; rel=next", withHeader("Link", link, answer)))
	var advice []client.Advice
	_, err := s.providers(t).CreateOAuth2(t.Context(), oauth2Request(), client.WithValidateOnly(), client.WithAdvice(&advice))
	want := []client.Advice{{Code: "a_b", Pointer: "/x", Detail: `Say "no, <yes>" \ .`}, {Code: "c", Pointer: "/y"}}
	if err != nil || !slices.Equal(advice, want) {
		t.Errorf("advice is %+v, %v", advice, err)
	}
}
