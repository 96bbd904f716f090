package advice

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/store/records"
)

const (
	scopePrefix = "https://www.googleapis.com/auth/"
	userScope   = scopePrefix + "admin.directory.user"
	groupScope  = scopePrefix + "admin.directory.group"
)

// maxKeyBytes limits the private keys that are parsed, because large numbers take long. A key of 8,192 bits is shorter.
const maxKeyBytes = 8 << 10

// directory is the input of the rules for workspace directory-sync providers.
type directory struct {
	records.WorkspaceDirectorySettings
	credentials
}

// credentials describe the credentials of a directory without repeating a value.
type credentials struct {
	hasType, hasClientEmail, hasPrivateKey, hasTokenURI bool
	// isOtherType is true if the type is not a service account, such as authorized_user.
	isOtherType bool
	// isSubject is true if client_email is the delegated subject.
	isSubject       bool
	hasUnusableKey  bool
	isOAuthClient   bool
	hasJSONAsString bool
	// isEmpty is true if there are no members, and isNested if a member holds a key file.
	isEmpty, isNested bool
}

// readCredentials reads the members of the object. Of nested members it knows nothing.
func readCredentials(s records.WorkspaceDirectorySettings) credentials {
	var c credentials
	// The contract refuses an object that repeats a name, so they need not be remembered here.
	decoder := jsontext.NewDecoder(bytes.NewBufferString(s.Credentials.Reveal()), jsontext.AllowDuplicateNames(true))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return c
	}
	c.isEmpty = decoder.PeekKind() == '}'
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return c
		}
		member := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return c
		}
		c.read(member, value, s.DelegatedSubject)
	}
	return c
}

func (c *credentials) read(member string, value jsontext.Value, subject string) {
	isObject := value.Kind() == '{'
	c.isOAuthClient = c.isOAuthClient || isObject && (member == "installed" || member == "web")
	c.isNested = c.isNested || member == "privateKeyData" || isObject && bytes.Contains(value, []byte(`"private_key"`))
	unquoted, err := jsontext.AppendUnquote(nil, value)
	if value.Kind() != '"' || err != nil || len(unquoted) == 0 {
		return
	}
	c.readString(member, unquoted, subject)
	if object := jsontext.Value(unquoted); object.Kind() == '{' && object.IsValid() {
		c.hasJSONAsString = true
	}
}

func (c *credentials) readString(member string, text []byte, subject string) {
	switch member {
	case "type":
		c.hasType, c.isOtherType = true, string(text) != "service_account"
		c.isOAuthClient = c.isOAuthClient || string(text) == "authorized_user"
	case "client_email":
		c.hasClientEmail, c.isSubject = true, strings.EqualFold(string(text), subject)
	case "token_uri":
		c.hasTokenURI = true
	case "private_key":
		c.hasPrivateKey, c.hasUnusableKey = true, !isPrivateKey(text)
	}
}

// isIncomplete reports whether a service account lacks a member that a token is requested with.
func (c credentials) isIncomplete() bool {
	isWhole := c.hasType && c.hasClientEmail && c.hasPrivateKey && c.hasTokenURI
	return c.isServiceAccount() && !isWhole
}

func (c credentials) isServiceAccount() bool {
	return !c.isOtherType && (c.hasType || c.hasPrivateKey)
}

// isPrivateKey reports whether a string is a private key in PEM (RFC 7468, section 10) that can be parsed.
func isPrivateKey(text []byte) bool {
	if len(text) > maxKeyBytes {
		return false
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return true
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}

// isInOtherDomain reports whether the delegated subject has another domain than the addresses of groups.
func (d directory) isInOtherDomain() bool {
	_, domain, ok := strings.Cut(d.DelegatedSubject, "@")
	groups := strings.ToLower(d.DefaultGroupEmailDomain)
	domain = strings.ToLower(domain)
	return ok && !isNoDomain(groups) && groups != domain && !strings.HasSuffix(groups, "."+domain)
}

// lacksDirectoryScope reports whether there are scopes for Google, but none to write users or none to write groups.
func (d directory) lacksDirectoryScope() bool {
	isGoogle := d.isServiceAccount() && d.Scopes != ""
	var users, groups bool
	separators := func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }
	for scope := range strings.FieldsFuncSeq(d.Scopes, separators) {
		isGoogle = isGoogle || strings.HasPrefix(scope, scopePrefix)
		users = users || scope == userScope
		groups = groups || scope == groupScope
	}
	return isGoogle && (!users || !groups)
}
