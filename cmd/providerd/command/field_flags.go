package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/store/files"
)

// fieldFlags has a flag for each field of a request. Those that were not passed are nil.
type fieldFlags struct {
	Name                    *string   `group:"Fields of both kinds" placeholder:"NAME" help:"Name of the provider."`
	PropertyMapping         []string  `group:"Fields of both kinds" sep:"none" placeholder:"UUID" help:"A property mapping; repeat it for each, '' for none."`
	AuthenticationFlow      *nullable `group:"Fields of OAuth2 providers" placeholder:"UUID" help:"Flow for users who are not signed in; '' for none."`
	AuthorizationFlow       *string   `group:"Fields of OAuth2 providers" placeholder:"UUID" help:"Flow that authorizes the provider."`
	ClientType              *string   `group:"Fields of OAuth2 providers" placeholder:"TYPE" help:"confidential or public."`
	ClientID                *string   `group:"Fields of OAuth2 providers" placeholder:"ID" help:"Client identifier; no other provider may have it."`
	ClientSecretFile        string    `group:"Fields of OAuth2 providers" type:"path" placeholder:"PATH" help:"File with the client secret; one trailing line break is removed."`
	AccessCodeValidity      *string   `group:"Fields of OAuth2 providers" placeholder:"DURATION" help:"Validity of codes, such as minutes=1."`
	AccessTokenValidity     *string   `group:"Fields of OAuth2 providers" placeholder:"DURATION" help:"Validity of access tokens, such as hours=1."`
	RefreshTokenValidity    *string   `group:"Fields of OAuth2 providers" placeholder:"DURATION" help:"Validity of refresh tokens, such as days=30."`
	IncludeClaimsInIDToken  *bool     `group:"Fields of OAuth2 providers" name:"include-claims-in-id-token" negatable:"" help:"Include claims in id tokens."`
	SigningKey              *nullable `group:"Fields of OAuth2 providers" placeholder:"UUID" help:"Key that signs tokens; '' for none."`
	RedirectURI             []string  `group:"Fields of OAuth2 providers" name:"redirect-uri" sep:"none" placeholder:"URI" help:"A redirect URI; repeat it for each, '' for none."`
	SubMode                 *string   `group:"Fields of OAuth2 providers" placeholder:"MODE" help:"Subject of tokens, such as hashed_user_id."`
	IssuerMode              *string   `group:"Fields of OAuth2 providers" placeholder:"MODE" help:"global or per_provider."`
	JWKSSource              []string  `group:"Fields of OAuth2 providers" name:"jwks-source" sep:"none" placeholder:"UUID" help:"A source of keys; repeat it for each, '' for none."`
	PropertyMappingGroup    []string  `group:"Fields of workspace directory-sync providers" sep:"none" placeholder:"UUID" help:"A property mapping of groups; repeat it for each, '' for none."`
	DelegatedSubject        *string   `group:"Fields of workspace directory-sync providers" placeholder:"EMAIL" help:"Address that the service account acts for."`
	CredentialsFile         string    `group:"Fields of workspace directory-sync providers" type:"path" placeholder:"PATH" help:"File with a JSON object."`
	Scopes                  *string   `group:"Fields of workspace directory-sync providers" placeholder:"SCOPES" help:"Scopes requested from the directory."`
	ExcludeServiceAccounts  *bool     `group:"Fields of workspace directory-sync providers" name:"exclude-users-service-account" negatable:"" help:"Do not push service accounts."`
	FilterGroup             *nullable `group:"Fields of workspace directory-sync providers" placeholder:"UUID" help:"Group whose members are pushed; '' for all users."`
	UserDeleteAction        *string   `group:"Fields of workspace directory-sync providers" placeholder:"ACTION" help:"What happens to deleted users: do_nothing, delete or suspend."`
	GroupDeleteAction       *string   `group:"Fields of workspace directory-sync providers" placeholder:"ACTION" help:"What happens to deleted groups: do_nothing, delete or suspend."`
	DefaultGroupEmailDomain *string   `group:"Fields of workspace directory-sync providers" placeholder:"DOMAIN" help:"Domain of the addresses of groups."`
}

// redirectURIsField is the field that is a list in flags, and a text of several lines in the API.
const redirectURIsField = "redirect_uris"

// isEmpty reports whether no flag was passed.
func (f fieldFlags) isEmpty() bool {
	members, err := f.members()
	return err == nil && len(members) == 0
}

// members returns the members of a request for the flags that were passed. It returns an error if a file cannot be
// read.
func (f fieldFlags) members() (map[string]json.RawMessage, error) {
	values := map[string]any{}
	addPassed(values, map[string]*string{
		"name": f.Name, "authorization_flow": f.AuthorizationFlow, "client_type": f.ClientType, "client_id": f.ClientID,
		"access_code_validity": f.AccessCodeValidity, "access_token_validity": f.AccessTokenValidity,
		"refresh_token_validity": f.RefreshTokenValidity, "sub_mode": f.SubMode, "issuer_mode": f.IssuerMode,
		"delegated_subject": f.DelegatedSubject, "scopes": f.Scopes, "user_delete_action": f.UserDeleteAction,
		"group_delete_action": f.GroupDeleteAction, "default_group_email_domain": f.DefaultGroupEmailDomain,
	})
	addPassed(values, map[string]*bool{
		"include_claims_in_id_token":    f.IncludeClaimsInIDToken,
		"exclude_users_service_account": f.ExcludeServiceAccounts,
	})
	addPassed(values, map[string]*nullable{
		"authentication_flow": f.AuthenticationFlow, "signing_key": f.SigningKey, "filter_group": f.FilterGroup,
	})
	for name, list := range map[string][]string{
		"property_mappings": f.PropertyMapping, "jwks_sources": f.JWKSSource,
		"property_mappings_group": f.PropertyMappingGroup, redirectURIsField: f.RedirectURI,
	} {
		if list != nil {
			values[name] = slices.DeleteFunc(list, func(element string) bool { return element == "" })
		}
	}
	if f.RedirectURI != nil {
		values[redirectURIsField] = strings.Join(f.RedirectURI, "\n")
	}
	if err := f.addSecrets(values); err != nil {
		return nil, err
	}
	members := make(map[string]json.RawMessage, len(values))
	for name, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s is not JSON", name)
		}
		members[name] = text
	}
	return members, nil
}

// undoCommand returns the command that gives the fields of a provider their old values. Secrets are in files.
func undoCommand(pk int64, changes []apply.FieldDiff) string {
	words := []string{fmt.Sprintf("providerd provider update %d", pk)}
	for _, change := range changes {
		words = append(words, fieldArguments(change.Field, change.Old)...)
	}
	return strings.Join(words, " ")
}

// fieldArguments returns the arguments that set a field.
func fieldArguments(field string, value json.RawMessage) []string {
	flag := flagOf(field)
	var list []string
	var text string
	switch {
	case strings.HasSuffix(flag, "-file"):
		return []string{flag + "=FILE"}
	case string(value) == "true":
		return []string{flag}
	case string(value) == "false":
		return []string{strings.Replace(flag, "--", "--no-", 1)}
	case json.Unmarshal(value, &text) == nil && field == redirectURIsField:
		list = strings.Fields(text)
	case json.Unmarshal(value, &list) != nil:
		list = []string{text}
	}
	if len(list) == 0 {
		list = []string{""}
	}
	for i, element := range list {
		list[i] = flag + "=" + quoted(element)
	}
	return list
}

// flagOf returns the flag that sets a field. Flags of lists are repeated, and secrets are in files.
func flagOf(field string) string {
	switch field {
	case "property_mappings", "jwks_sources", redirectURIsField:
		field = strings.TrimSuffix(field, "s")
	case "property_mappings_group":
		field = "property_mapping_group"
	case "client_secret", "credentials":
		field += "_file"
	}
	return "--" + strings.ReplaceAll(field, "_", "-")
}

// quoted quotes a text for a POSIX shell (POSIX.1-2017, Shell Command Language, section 2.2.2).
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// addSecrets adds the secrets from files.
func (f fieldFlags) addSecrets(values map[string]any) error {
	if f.ClientSecretFile != "" {
		secret, err := files.ReadSmall(f.ClientSecretFile)
		if err != nil {
			return fmt.Errorf("read client_secret: %w", err)
		}
		if !utf8.Valid(secret) {
			return fmt.Errorf("read client_secret: %s is not UTF-8", f.ClientSecretFile)
		}
		values["client_secret"] = strings.TrimSuffix(strings.TrimSuffix(string(secret), "\n"), "\r")
	}
	if f.CredentialsFile != "" {
		object, err := files.ReadSmall(f.CredentialsFile)
		if err != nil {
			return fmt.Errorf("read credentials: %w", err)
		}
		values["credentials"] = json.RawMessage(object)
	}
	return nil
}

// addPassed adds the values of flags that were passed.
func addPassed[Value any](values map[string]any, passed map[string]*Value) {
	for name, value := range passed {
		if value != nil {
			values[name] = *value
		}
	}
}

// nullable is a text that is null in JSON if it is empty.
type nullable string

// MarshalJSON implements json.Marshaler.
func (n nullable) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(n)) //nolint:wrapcheck // It cannot fail.
}
