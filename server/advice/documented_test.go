package advice_test

import (
	"encoding/json"
	"strings"
	"testing"

	"example.com/providerd/server/advice"
	"example.com/providerd/store/storetest/processtest"
)

// Clients as guides of 2026 describe them, with example.com and a generated secret: the client and whose guide it is,
// further members, redirect URIs, and the advice. If there is advice, the guide has what a standard forbids although it
// works: a scheme that any app can claim (RFC 8252, section 7.1), a secret in an app (section 8.5), an address as
// subject (OpenID Connect Core 1.0, section 5.7), or a placeholder.
const documentedClients = `
Grafana, Authelia |  | https://grafana.example.com/login/generic_oauth |
GitLab, Authelia |  | https://gitlab.example.com/users/auth/openid_connect/callback |
Argo CD, Authelia |  | https://argocd.example.com/auth/callback |
Argo CD, authentik |  | https://argocd.example.com/api/dex/callback https://localhost:8085/auth/callback |
Argo CD CLI, Authelia | "client_type":"public" | http://localhost:8085/auth/callback |
Nextcloud, Authelia |  | https://nextcloud.example.com/apps/user_oidc/code |
Vault, Authelia |  | https://vault.example.com/oidc/callback https://vault.example.com/ui/vault/auth/oidc/oidc/callback |
kubelogin, Authelia |  | http://localhost:8000 http://localhost:18000 |
Harbor, authentik |  | https://harbor.example.com/c/oidc/callback |
Gitea, Authelia |  | https://gitea.example.com/user/oauth2/authelia/callback |
Gitea, authentik |  | https://<gitea.example.com>/user/oauth2/authentik/callback | redirect_uri_placeholder
Jenkins, Authelia |  | https://jenkins.example.com/accounts/authelia/login/callback |
Proxmox, Authelia |  | https://proxmox.example.com |
Proxmox, authentik | "sub_mode":"user_email" | https://proxmox.example.com:8006 | sub_mode_reassignable
Portainer, Authelia |  | https://portainer.example.com |
FreshRSS, Authelia |  | https://freshrss.example.com:443/i/oidc/ |
Immich, Authelia |  | https://immich.example.com/auth/login https://immich.example.com/user-settings app.immich:///oauth-callback |
Outline, Authelia |  | https://outline.example.com/auth/oidc.callback |
WordPress, Authelia |  | https://wordpress.example.com/wp-admin/admin-ajax.php?action=openid-connect-authorize |
Matomo, Authelia |  | https://matomo.example.com/index.php?module=LoginOIDC&action=callback&provider=oidc |
Synapse, Authelia |  | https://synapse.example.com/_synapse/client/oidc/callback |
openCloud, Authelia | "client_type":"public" | https://opencloud.example.com/ https://opencloud.example.com/oidc-silent-redirect.html |
engomo, Authelia |  | https://engomo.example.com/auth com.engomo.engomo://callback/ |
Audiobookshelf, Authelia |  | https://audiobookshelf.example.com/auth/openid/callback audiobookshelf://oauth | redirect_uri_scheme_without_dot
ownCloud app, Authelia |  | oc://android.example.com | native_app_confidential redirect_uri_scheme_without_dot
Wiki.js, Authelia |  | https://wikijs.example.com/login/<UUID>/callback | redirect_uri_placeholder`

func TestDocumentedClients(t *testing.T) {
	t.Parallel()
	checkDocumented(t, documentedClients, func(further, uris string) []advice.Advice {
		if strings.Contains(further, "public") {
			further += `,"client_secret":null`
		}
		text, err := json.Marshal(strings.ReplaceAll(uris, " ", "\n"))
		processtest.Must(t, err)
		return advise(client(t, strings.TrimPrefix(further+`,"redirect_uris":`+string(text), ",")))
	})
}

// Directories in the same form, with scopes, of which +X is one of the Directory API; a number is an issue. If there is
// advice, the guide is for programs that only read, has another form of credentials, or takes the risk.
const documentedDirectories = `
authentik, Configure Google Workspace | "user_delete_action":"suspend" | +user,+group,+group.member,+domain.readonly |
authentik, Google Workspace provider | "user_delete_action":"delete" | +user,+group,+group.member,+domain.readonly | delete_action_destructive
authentik, Skipping certain users | "filter_group":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01" | +user,+group,+group.member |
Ping, Google Workspace Admin Connector |  | +user, +group, +device.chromeos, +device.mobile |
Okta Workflows, Authorization |  | +group +group.readonly +group.member +user openid +user.alias +orgunit |
Britive, Domain-Wide Delegation | "default_group_email_domain":"example.net" | +user, https://www.googleapis.com/auth/cloud-platform, +group, +group.member |
Commvault, Delegate Domain-Wide Authority |  | https://mail.google.com/,+group.member,+group,+orgunit,+user,+user.alias |
terraform-provider-gsuite, README | "delegated_subject":"admin@example.net" | +group,+user |
terraform-provider-gsuite, README, schemas | "delegated_subject":"ops@corp.example.com" | +group,+user,+userschema |
terraform-provider-googleworkspace, 374 | "default_group_email_domain":"example.org" | +user,+userschema,+group,+groupschema |
google-auth-library-ruby, 123 | "delegated_subject":"admin@example.org" | +user +group |
google-api-nodejs-client, 1834 |  | +user +user.readonly +group |
terraform-provider-googleworkspace, token | "credentials":{"access_token":"ya29.x"} |  |
Pulumi, authentik.ProviderGoogleWorkspace |  |  | scopes_incomplete
Dex, Google connector |  | +group.readonly | scopes_incomplete
Forcepoint, Delegate domain-wide authority |  | +user.readonly +domain.readonly +group.readonly | scopes_incomplete
google-api-java-client-services, 4279 |  | +group.readonly +user.readonly +user.security | scopes_incomplete
google-auth-library-nodejs, 610 |  | https://www.googleapis.com/auth/gmail.settings.basic +user | scopes_incomplete
google-auth-library-ruby, 134 |  | +user.readonly | scopes_incomplete
Nango, Google Service Account | "credentials":{"client_email":"sync@project.example.com","private_key":"KEY"} | +user +group | credentials_incomplete
google-api-dotnet-client, 1561 | "delegated_subject":"admin@gmail.com" | +user +group | delegated_subject_outside_directory`

func TestDocumentedDirectories(t *testing.T) {
	t.Parallel()
	key, err := json.Marshal(generated())
	processtest.Must(t, err)
	checkDocumented(t, documentedDirectories, func(further, scopes string) []advice.Advice {
		further = strings.ReplaceAll(further, `"KEY"`, string(key))
		scopes = `,"scopes":"` + strings.ReplaceAll(scopes, "+", directoryScope) + `",`
		return advice.WorkspaceDirectory(directory(t, strings.TrimSuffix(serviceAccount(t, "")+scopes+further, ",")))
	})
}

// checkDocumented reads a table of at least 20 lines.
func checkDocumented(t *testing.T, table string, read func(further, value string) []advice.Advice) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(table), "\n")
	for _, line := range lines {
		cells := strings.Split(line, "|")
		got := strings.Join(codes(read(strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]))), " ")
		if want := strings.TrimSpace(cells[3]); got != want {
			t.Errorf("%s: %q, want %q", cells[0], got, want)
		}
	}
	processtest.Expect(t, len(lines) >= 20, "there are %d configurations", len(lines))
}
