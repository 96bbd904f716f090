package advice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/gen/api"
	"example.com/providerd/server"
	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// Whoever leaves everything out has nothing to be told.
func TestDefaultsBringNoAdvice(t *testing.T) {
	t.Parallel()
	for range 100 {
		client := server.FromAPIOAuth2(api.OAuth2ProviderRequest{Name: "x", AuthorizationFlow: uuid.MustParse(anyUUID)})
		if got := advice.OAuth2(client); got == nil || len(got) > 0 {
			t.Errorf("a client: %+v", got)
		}
	}
	directory := server.FromAPIWorkspaceDirectory(api.WorkspaceDirectoryProviderRequest{
		Name: "x", DelegatedSubject: "admin@example.com", Credentials: []byte("{}"), DefaultGroupEmailDomain: "example.com",
	})
	if got := advice.WorkspaceDirectory(directory); got == nil || len(got) > 0 {
		t.Errorf("a directory: %+v", got)
	}
}

// What a public client leaves out, it has to be told. Tokens cannot be signed with a secret that is empty.
func TestWhatIsLeftOutIsTold(t *testing.T) {
	t.Parallel()
	clientType := api.ClientTypeEnumPublic
	public := server.FromAPIOAuth2(api.OAuth2ProviderRequest{
		Name: "x", AuthorizationFlow: uuid.MustParse(anyUUID), ClientType: &clientType,
	})
	unsigned := goodClient()
	and(withoutKey, secret(""))(&unsigned)
	for want, client := range map[string]store.OAuth2Settings{
		"signing_key_missing redirect_uris_missing": public, "client_secret_empty signing_key_missing": unsigned,
	} {
		if got := strings.Join(codes(advice.OAuth2(client)), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func codes(given []advice.Advice) []string {
	var codes []string
	for _, one := range given {
		codes = append(codes, one.Code)
	}
	return codes
}

// One rule speaks once, of ten lines at most by their numbers, and in the order of the fields.
func TestManyLinesAreOnePieceOfAdvice(t *testing.T) {
	t.Parallel()
	settings := goodClient()
	settings.SubMode, settings.AccessCodeValidity = "user_upn", "hours=1"
	for count, want := range map[int]string{
		1:    "line 1: ",
		2:    "lines 1 and 2: ",
		11:   "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 1 more: ",
		1000: "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more: ",
		1001: "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more: ",
	} {
		var text strings.Builder
		for line := range count {
			fmt.Fprintf(&text, "http://%d.example.com/*\n", line)
		}
		settings.RedirectURIs = text.String()
		got := advice.OAuth2(settings)
		wantCodes := []string{
			"access_code_long_lived", "redirect_uri_http", "redirect_uri_wildcard", "sub_mode_reassignable",
		}
		if !slices.Equal(codes(got), wantCodes) {
			t.Fatalf("%d lines: %+v", count, got)
		}
		for _, one := range got[1:3] {
			if !strings.HasPrefix(one.Detail, want) {
				t.Errorf("%d lines: %s", count, one.Detail)
			}
		}
	}
}
