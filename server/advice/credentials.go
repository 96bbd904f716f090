package advice

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"regexp"
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

// outsideDirectory matches addresses that no directory of Google Workspace has.
var outsideDirectory = regexp.MustCompile(`(?i)[@.](gmail|googlemail|gserviceaccount)\.com$`)

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
	isSubject bool
	// hasUnusableKey is true if nothing can be signed with the key, and hasOddKey if only some libraries can read it.
	hasUnusableKey, hasOddKey bool
	isOAuthClient             bool
	hasJSONAsString           bool
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
		isRSA, isPlain := readKey(text)
		c.hasPrivateKey, c.hasUnusableKey, c.hasOddKey = true, !isRSA, isRSA && !isPlain
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

var (
	// privateKey matches the part of a text that is a key in PEM, with whatever white space.
	privateKey = regexp.MustCompile(`-----BEGIN ((?:[A-Z]+ )*KEY)-----([A-Za-z0-9+/=\s]+)-----END ((?:[A-Z]+ )*KEY)-----`)
	// plainKey matches what Google's libraries for Go, Node.js and Python read.
	plainKey = regexp.MustCompile(`^\s*-----BEGIN (?:RSA )?PRIVATE KEY-----\r?\n(?:[A-Za-z0-9+/=]+\r?\n)+-----END `)
)

// readKey reports whether a text has an RSA key (RFC 7468, section 10; RFC 8017, appendix A.1.2), and whether it has it
// in the form that all libraries read.
func readKey(text []byte) (isRSA, isPlain bool) {
	parts := privateKey.FindSubmatch(text[:min(len(text), maxKeyBytes+1)])
	if len(text) > maxKeyBytes || parts == nil || !bytes.Equal(parts[1], parts[3]) {
		return false, false
	}
	body, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(parts[2]), nil)))
	if err != nil {
		return false, false
	}
	if _, err := x509.ParsePKCS1PrivateKey(body); err == nil {
		return true, plainKey.Match(text) && bytes.HasPrefix(parts[1], []byte("RSA"))
	}
	key, _ := x509.ParsePKCS8PrivateKey(body)
	_, isRSA = key.(*rsa.PrivateKey)
	return isRSA, plainKey.Match(text)
}

// lacksDirectoryScope reports whether Google is meant, but no scope lets write users or none groups.
func (d directory) lacksDirectoryScope() bool {
	isGoogle := d.isServiceAccount()
	var users, groups bool
	separators := func(r rune) bool { return r == ',' || r == ' ' }
	for scope := range strings.FieldsFuncSeq(d.Scopes, separators) {
		isGoogle = isGoogle || strings.HasPrefix(scope, scopePrefix)
		users = users || scope == userScope
		groups = groups || scope == groupScope
	}
	return isGoogle && (!users || !groups)
}
