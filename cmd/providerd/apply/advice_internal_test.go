package apply

import (
	"encoding/json"
	"reflect"
	"testing"

	"example.com/providerd/gen/api"
	"example.com/providerd/server"
	"example.com/providerd/server/advice"
)

// TestAdviceIsThatOfTheServer reads bodies as the server does, of which some are advised on by each rule.
func TestAdviceIsThatOfTheServer(t *testing.T) {
	t.Parallel()
	unseen := map[string]bool{}
	for _, rule := range append(advice.OAuth2Rules(), advice.WorkspaceDirectoryRules()...) {
		unseen[rule.Pointer+" "+rule.Code] = true
	}
	expect := func(body string, got, want []advice.Advice, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, advice is\n%v\nwant\n%v", body, err, got, want)
		}
		for _, one := range got {
			delete(unseen, one.Pointer+" "+one.Code)
		}
	}
	for _, body := range []string{
		`{}`, `{"client_type":null,"client_secret":null,"redirect_uris":null}`, `{"client_type":"public"}`,
		`{"client_type":"public","client_secret":"x","client_id":"é","sub_mode":"user_email"}`,
		`{"client_secret":""}`, `{"client_secret":"short"}`, `{"client_secret":"1234567890123456789012345"}`,
		`{"client_secret":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`, `{"client_secret":"x\ty"}`,
		`{"authentication_flow":"00000000-0000-0000-0000-000000000000",
		  "signing_key":"00000000-0000-0000-0000-000000000000",
		  "access_code_validity":"hours=1","access_token_validity":"days=2","refresh_token_validity":"weeks=60",
		  "redirect_uris":"app:/x\nhttp://example.com/\nhttp://localhost/\nhttps://*.example.com/\n` +
			`https://a.example.com/,b\nhttps://b.example.com/\nhttps://b.example.com/\n:x"}`,
		`{"authorization_flow":"00000000-0000-0000-0000-000000000000"}`,
	} {
		var request api.OAuth2ProviderRequest
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			t.Fatal(err)
		}
		got, err := adviseOAuth2([]byte(body))
		expect(body, got, advice.OAuth2(server.FromAPIOAuth2(request)), err)
	}
	for _, body := range []string{
		`{"credentials":{"a":1}}`,
		`{"filter_group":"00000000-0000-0000-0000-000000000000","user_delete_action":"delete","group_delete_action":"delete"}`,
		`{"delegated_subject":"a@b.example.com","default_group_email_domain":"example.com",
		  "credentials":{"client_email":"a@b.example.com","private_key":"x","web":{},"json":"{}"}, "scopes":"x"}`,
		`{"delegated_subject":"a@b.example.com","credentials":{"a":{"type":"service_account"}}}`,
	} {
		var request api.WorkspaceDirectoryProviderRequest
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			t.Fatal(err)
		}
		got, err := adviseWorkspaceDirectory([]byte(body))
		expect(body, got, advice.WorkspaceDirectory(server.FromAPIWorkspaceDirectory(request)), err)
	}
	for rule := range unseen {
		t.Errorf("no body is advised on by %s", rule)
	}
}
