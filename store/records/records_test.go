package records_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
)

// A retry is compared with its record by meaning: ids are sets, the last line need not end, and JSON has no order of
// members, but every digit of a number counts. What both let the server choose does not differ.
func TestDiffering(t *testing.T) {
	t.Parallel()
	type settings = records.OAuth2Settings
	oauth2 := func(s settings, chosen records.Generated) records.Record {
		return records.OAuth2Provider{Provider: records.Provider{Generated: chosen}, OAuth2Settings: s}
	}
	uris := func(text string) records.Record { return oauth2(settings{RedirectURIs: text}, 0) }
	ids := func(ids ...uuid.UUID) records.Record { return oauth2(settings{JWKSSources: ids}, 0) }
	secret := func(clientType, text string, chosen records.Generated) records.Record {
		return oauth2(settings{ClientID: text, ClientType: clientType, ClientSecret: seal.NewSecret(text)}, chosen)
	}
	key := func(text string) records.Record {
		settings := records.WorkspaceDirectorySettings{Credentials: seal.NewSecret(text)}
		return records.WorkspaceDirectoryProvider{WorkspaceDirectorySettings: settings}
	}
	a, b := uuid.UUID{1}, uuid.UUID{2}
	const chosen = records.GeneratedClientID | records.GeneratedSecret
	for title, test := range map[string]struct {
		stored, requested records.Record
		want              string
	}{
		"ends of lines":           {uris("a:b\nb:c"), uris("a:b\r\nb:c\r\n"), ""},
		"lines in another order":  {uris("a:b\nb:c"), uris("b:c\na:b"), "redirect_uris"},
		"a set in another order":  {ids(a, b), ids(b, a, b), ""},
		"another set":             {ids(a, b), ids(a, a), "jwks_sources"},
		"chosen values":           {secret("public", "a", chosen), secret("public", "b", chosen), ""},
		"one chosen value":        {secret("public", "a", chosen), secret("public", "b", records.GeneratedSecret), "client_id"},
		"values of one":           {secret("public", "a", chosen), secret("public", "b", 0), "client_id client_secret"},
		"a chosen secret of none": {secret("public", "", chosen), secret("confidential", "b", chosen), "client_type client_secret"},
		"members":                 {key(`{"a":1,"b":{"c":2,"d":3}}`), key(`{"b":{"d":3,"c":2},"a":1}`), ""},
		"values in another order": {key(`{"a":1,"b":2}`), key(`{"b":1,"a":2}`), "credentials"},
		"a list in another order": {key(`{"a":[1,2]}`), key(`{"a":[2,1]}`), "credentials"},
		"digits of a number":      {key(`{"a":1.5}`), key(`{"a":1.50}`), "credentials"},
		"an exponent":             {key(`{"a":1.10}`), key(`{"a":11e-1}`), "credentials"},
	} {
		for _, pair := range [][]records.Record{{test.stored, test.requested}, {test.requested, test.stored}} {
			fields, err := records.Differing(pair[0], pair[1])
			processtest.Expect(t, err == nil && slices.Equal(fields, strings.Fields(test.want)), "%s: %q differ, %v, want %s",
				title, fields, err, test.want)
		}
	}
}
