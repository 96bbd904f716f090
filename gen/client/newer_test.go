package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

// newNewerServer starts a server of a later version, with responses that this package does not know.
func newNewerServer(t *testing.T, status int, mediaType, answer string) *client.Providers {
	t.Helper()
	return newStranger(t, answering(status, mediaType, answer)).providers(t)
}

func TestRecordWithNewMembersOfEnumsIsReturned(t *testing.T) {
	t.Parallel()
	oauth2, err := newNewerServer(t, http.StatusCreated, "application/json", `{
		"pk": 1, "meta_model_name": "providers_oauth2.oauth2provider", "component": "a-new-form", "client_type": "new_type",
		"sub_mode": "new_mode", "issuer_mode": "new_issuer", "verbose_name": "New", "a_new_field": {}
	}`).CreateOAuth2(t.Context(), oauth2Request())
	if err != nil || oauth2.PK != 1 || oauth2.Component != "a-new-form" || oauth2.ClientType != "new_type" ||
		oauth2.SubMode != "new_mode" || oauth2.IssuerMode != "new_issuer" || oauth2.VerboseName != "New" {
		t.Errorf("record is %+v, %v", oauth2, err)
	}
	directory, err := newNewerServer(t, http.StatusCreated, "application/json", `{
		"pk": 1, "meta_model_name": "providers_workspace_directory.workspacedirectoryprovider", "user_delete_action": "archive"
	}`).CreateWorkspaceDirectory(t.Context(), client.WorkspaceDirectoryProviderRequest{})
	if err != nil || directory.UserDeleteAction != "archive" || directory.UserDeleteAction.Valid() {
		t.Errorf("record is %+v, %v", directory, err)
	}
}

func TestRefusalWithNewTypeAndCodeIsReturned(t *testing.T) {
	t.Parallel()
	_, err := newNewerServer(t, http.StatusBadRequest, "application/problem+json", `{
		"type": "/problems/new", "title": "New", "status": 400, "detail": "Something new.", "request_id": "r",
		"errors": [{"pointer": "/name", "code": "too_short", "detail": "Name must be longer."}], "a_new_member": []
	}`).CreateOAuth2(t.Context(), oauth2Request())
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Type != "/problems/new" || len(refused.Violations()) != 1 ||
		refused.Violations()[0].Code != "too_short" || !strings.Contains(err.Error(), "Name must be longer.") {
		t.Errorf("error is %v", err)
	}
}
