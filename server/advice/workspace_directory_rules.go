package advice

import (
	_ "embed"
	"strings"

	"github.com/google/uuid"
)

const (
	object   = "/credentials"
	server   = "Google Identity, Using OAuth 2.0 for Server to Server Applications"
	notFound = "google-auth-library 10.9.1, x/oauth2 0.38.0 and google-auth 1.5.1 find no service account in this."
)

// account is a key file of a service account, with a key of RFC 9500, section 2.1.
//
//go:embed service_account.json
var account string

// directoryRules are in the order of the fields of the contract.
//
//nolint:gochecknoglobals // A table that is only read.
var directoryRules = []rule[directory]{
	{Rule: Rule{
		Code: "delegated_subject_outside_directory", Pointer: "/delegated_subject",
		When: "delegated_subject is the client_email of the credentials, or at gmail.com, googlemail.com or " +
			"gserviceaccount.com",
		Detail: "A service account or consumer account is not a user of the directory. Use the address of an administrator " +
			"whom the service account acts for.",
		Section: server,
		Seen:    "Google: unauthorized_client (google-api-dotnet-client issue 1561).",
		Bad:     `"delegated_subject": "sync@project.example.com", "credentials": ` + account,
		Good:    `"delegated_subject": "admin@example.com", "credentials": ` + account,
	}, holds: func(d directory) bool { return d.isSubject || outsideDirectory.MatchString(d.DelegatedSubject) }},
	{Rule: Rule{
		Code: "credentials_incomplete", Pointer: object,
		When: "credentials are for a service account but lack type, client_email, private_key or token_uri",
		Detail: "Token requests require type, client_email, private_key and token_uri. Use the whole key file of the " +
			"service account.",
		Section: server,
		Seen: "x/oauth2 0.38.0 refuses a file without type, google-auth 1.5.1 one without token_uri, " +
			"google-auth-library 10.9.1 one without client_email, and all one without private_key.",
		Bad: `"credentials": {"type": "service_account"}`, Good: `"credentials": ` + account,
	}, holds: directory.isIncomplete},
	{Rule: Rule{
		Code: "credentials_key_unusable", Pointer: object,
		When: "private_key in credentials is not an RSA key in PEM that is not encrypted, or is larger than 8 KiB",
		Detail: "Token requests cannot be signed (RS256) with the key. Copy private_key unchanged from the key file, with " +
			"its line breaks.",
		Section: server + "; RFC 7518, section 3.3",
		Seen: "google-auth-library 10.9.1, x/oauth2 0.38.0 and google-auth 1.5.1 refuse Ed25519 keys, cut and encrypted " +
			"ones, and \\n instead of line breaks.",
		Bad:  `"credentials": {"private_key": "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy"}`,
		Good: `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.hasUnusableKey }},
	{Rule: Rule{
		Code: "credentials_key_rewritten", Pointer: object,
		When: "private_key in credentials is an RSA key, but has something before it, another label, or lines that are " +
			"indented, blank or joined",
		Detail:  "Some libraries cannot read the key. Copy private_key unchanged from the key file, with its line breaks.",
		Section: "RFC 7468, section 3",
		Seen: "x/oauth2 0.38.0 refuses a certificate or byte order mark before the key, google-auth-library 10.9.1 and " +
			"google-auth 1.5.1 blank lines, and all three indented lines and spaces instead of line breaks.",
		Bad:  `"credentials": ` + strings.Replace(account, `-----\n`, "----- ", 1),
		Good: `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.hasOddKey }},
	{Rule: Rule{
		Code: "credentials_oauth_client", Pointer: object,
		When:    "credentials have the member installed or web, or the type authorized_user",
		Detail:  "These are the credentials of an OAuth client or of a user. Use the key file of a service account.",
		Section: server, Seen: notFound,
		Bad: `"credentials": {"installed": {"client_id": "shop"}}`, Good: `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.isOAuthClient }},
	{Rule: Rule{
		Code: "credentials_json_string", Pointer: object,
		When:    "a member of credentials is a string that contains a JSON object",
		Detail:  "The credentials themselves must be that object. Send its members, not a string that contains them.",
		Section: "openapi.yaml, WorkspaceDirectoryProviderRequest", Seen: notFound,
		Bad: `"credentials": {"json": "{\"key\": \"example\"}"}`, Good: `"credentials": {"key": "example"}`,
	}, holds: func(d directory) bool { return d.hasJSONAsString }},
	{Rule: Rule{
		Code: "credentials_empty", Pointer: object, When: "credentials have no members",
		Detail:  "Nothing can be synchronized without credentials. Use the key file of a service account.",
		Section: server, Seen: notFound,
		Bad: `"credentials": {}`, Good: `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.isEmpty }},
	{Rule: Rule{
		Code: "credentials_nested", Pointer: object,
		When: "a member of credentials has a private_key, or is privateKeyData of the IAM API",
		Detail: "The key file is inside a member. Send the members of the key file themselves; decode privateKeyData " +
			"from Base64 first.",
		Section: server, Seen: notFound,
		Bad: `"credentials": {"key": ` + account + "}", Good: `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.isNested }},
	{Rule: Rule{
		Code: "scopes_incomplete", Pointer: "/scopes",
		When: "scopes are Google's, or empty beside a service account, and lack those of the Directory API",
		Detail: "Synchronization writes users and groups. Add " + userScope + " and " + groupScope +
			", separated by a space.",
		Section: "Google Workspace Admin SDK, Directory API",
		Seen:    "With empty scopes, google-auth-library 10.9.1 requests no token and drops the delegated subject.",
		Bad:     `"scopes": "` + userScope + `"`, Good: `"scopes": "` + userScope + " " + groupScope + `"`,
	}, holds: directory.lacksDirectoryScope},
	nilUUID("filter_group", "a group, or omit the field", func(d directory) *uuid.UUID { return d.FilterGroup }),
	destructive("user", "suspend", "the user and all their data", func(d directory) string { return d.UserDeleteAction }),
	destructive("group", "do_nothing", "it", func(d directory) string { return d.GroupDeleteAction }),
	{Rule: Rule{
		Code: "domain_malformed", Pointer: "/default_group_email_domain",
		When: "default_group_email_domain is not a domain name of letters, digits and hyphens with dots between them",
		Detail: `This is not a domain name, so group addresses are invalid. Write one such as example.com, without "@", a ` +
			"scheme, white space, an underscore, a comma or a dot at the end.",
		Section: "RFC 5321, section 2.3.5",
		Seen:    "authentik joins the name of a group, \"@\" and this value, which gives addresses such as ops@@example.com.",
		Bad:     `"default_group_email_domain": "@example.com"`, Good: `"default_group_email_domain": "example.com"`,
	}, holds: func(d directory) bool { return !isDomain(d.DefaultGroupEmailDomain) }},
}

func destructive(entity, instead, lost string, get func(directory) string) rule[directory] {
	field := entity + "_delete_action"
	return rule[directory]{Rule: Rule{
		Code: "delete_action_destructive", Pointer: "/" + field, When: field + " is delete",
		Detail: "If a " + entity + " is deleted in the platform, perhaps by mistake, the directory deletes " + lost +
			". Use suspend or do_nothing.",
		Section: "openapi.yaml, OutgoingSyncDeleteAction",
		Seen:    "A fault of Google's API let a synchronization delete 72 groups (idp-scim-sync issue 70).",
		Bad:     `"` + field + `": "delete"`, Good: `"` + field + `": "` + instead + `"`,
	}, holds: func(d directory) bool { return get(d) == "delete" }}
}
