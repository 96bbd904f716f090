package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/files"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// items are the members of a request, as HTTPie writes them: NAME=TEXT, NAME:=JSON, NAME=@FILE and NAME:=@FILE.
type items []string

// generateSecret is the item that gives a confidential client another random secret.
const generateSecret = "client_secret=generate"

// check refuses to generate a secret that would be lost.
func (i items) check(isRevealed bool) error {
	if slices.Contains(i, generateSecret) && (!isRevealed || console.IsOutputUnread()) {
		return errors.New(generateSecret + " requires --reveal, and a standard output other than " + os.DevNull)
	}
	return nil
}

// members reads the items. The secret field can only be read from a file, because others see the arguments of a
// program. It returns an error if an item has another form, or if a file cannot be used.
func (i items) members(secret string) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	for n, text := range i {
		name, value, isJSON, err := parseItem(n+1, text)
		if err != nil {
			return nil, err
		}
		if members[name] != nil {
			return nil, twice(name)
		}
		path, isFile := strings.CutPrefix(value, "@")
		isExposed := !isFile && value != "" && text != generateSecret && text != name+":=null"
		if name == secret && isExposed {
			form := map[bool]string{true: name + ":=", false: text[:len(text)-len(value)]}[json.Valid([]byte(value))]
			return nil, fmt.Errorf("%s on a command line can be read by other programs; put it into a file and write %s@FILE",
				name, form)
		}
		if isFile {
			if value, err = readItem(name, path, name == secret, isJSON); err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
		}
		if members[name], err = memberOf(value, isJSON); err != nil {
			return nil, fmt.Errorf("%s is %w", name, err)
		}
	}
	return members, nil
}

func twice(name string) error {
	if regexp.MustCompile(`^(jwks_sources|property_mappings.*|redirect_uris)$`).MatchString(name) {
		return fmt.Errorf(`%s appears twice; write a list as %[1]s:='["A", "B"]'`, name)
	}
	return fmt.Errorf("%s appears twice; remove one", name)
}

// parseItem returns the parts of an item. Its errors do not repeat the item, because it may be a secret.
func parseItem(number int, text string) (name, value string, isJSON bool, err error) {
	name, value, ok := strings.Cut(text, "=")
	name, isJSON = strings.CutSuffix(name, ":")
	switch {
	case ok && regexp.MustCompile(`^[a-z_]+(\+|-|\[\d*\])$`).MatchString(name):
		err = fmt.Errorf("item %d changes a part of a field; write the whole value, and a list as "+
			`redirect_uris:='["https://a.example.com/", "https://b.example.com/"]'`, number)
	case !ok && number > 1:
		err = fmt.Errorf("item %d is not a field; quote a value with spaces, as in name='My Wiki'", number)
	case !ok || !regexp.MustCompile(`^[A-Za-z_-]+$`).MatchString(name):
		err = fmt.Errorf("item %d is not a field; write NAME=TEXT, NAME:=JSON, NAME=@FILE or NAME:=@FILE", number)
	case name == "kind":
		err = errors.New("kind is not a field: a create takes it as an argument, and an update cannot change it")
	case text == "client_id=generate":
		err = errors.New(`only a create without client_id generates one; write client_id:='"generate"' for this text`)
	case !isJSON && strings.HasPrefix(value, "="):
		err = fmt.Errorf("item %d has ==; write NAME=TEXT, or NAME:='\"=TEXT\"' for a string that begins with =", number)
	}
	return name, value, isJSON, err
}

// readItem reads a file without the byte order mark and the line break that editors add.
func readItem(name, path string, isSecret, isJSON bool) (string, error) {
	if err := console.CheckPath(path); err != nil {
		return "", err
	}
	content, err := files.ReadInput(path)
	text := files.Text(content)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isSecret:
		return "", fmt.Errorf(`%s; correct the path, or write %s:='"@TEXT"' for the string "@TEXT"`, err.Error(), name)
	case err != nil:
		return "", err
	case text == "":
		return "", fmt.Errorf("%s is empty; write the value into it", path)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%s is not UTF-8", path)
	case !isJSON:
		return text, nil
	}
	if err := contract.CheckJSON([]byte(text)); err != nil {
		return "", fmt.Errorf("%s is not JSON: %w", path, err)
	}
	return text, nil
}

func memberOf(value string, isJSON bool) (json.RawMessage, error) {
	switch {
	case !isJSON:
		return json.Marshal(value) //nolint:wrapcheck // It cannot fail.
	case json.Valid([]byte(value)):
		return json.RawMessage(value), nil
	case strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{"):
		return nil, errors.New(`not JSON; quote it for the shell, such as :='["A", "B"]'`)
	default:
		return nil, errors.New("not JSON; write = instead of := for a string")
	}
}

// request returns the record that the items request instead of a stored one, whose other fields stay, or, if stored is
// nil, of none. It returns an error if the contract refuses it.
func (i items) request(
	ctx context.Context, document *contract.Document, kind apply.Kind, stored records.Record, caller string,
) (records.Record, error) {
	replaced, err := i.members(kind.Secret)
	if err != nil {
		return nil, err
	}
	if console.Unquote(replaced[kind.Secret]) == contract.Mask {
		return nil, fmt.Errorf("`%s` is a masked secret; pass the secret itself; nothing was stored", kind.Secret)
	}
	members, key := map[string]json.RawMessage{}, (*string)(nil)
	if stored != nil {
		caller, key = stored.Common().CreatedBy, stored.Common().IdempotencyKey
		if members, err = requestFields(document, kind, stored); err != nil {
			return nil, err
		}
	}
	maps.Copy(members, replaced)
	if slices.Contains(i, generateSecret) {
		if stored, err = omitSecret(kind, members, stored); err != nil {
			return nil, err
		}
	}
	body := bodyOf(members)
	violations, err := document.Validate(ctx, kind.Operation, body)
	if err != nil {
		return nil, fmt.Errorf("%w; nothing was stored", err)
	}
	if len(violations) > 0 {
		return nil, i.refused(violations, replaced)
	}
	return contract.Requested(records.Kind(kind.Name), caller, key, body, stored)
}

func (i items) refused(violations []contract.Violation, replaced map[string]json.RawMessage) error {
	var details strings.Builder
	for _, violation := range violations {
		details.WriteString(strings.Replace(strings.TrimSuffix(violation.Detail, "."), contract.OmitRemedy, "", 1) + "; ")
		name := violation.Pointer[1:]
		isFile := slices.ContainsFunc(i, func(text string) bool { return strings.HasPrefix(text, name+"=@") })
		switch {
		case violation.Code == "invalid_uuid" && (isFile || bytes.Contains(replaced[name], []byte("-----BEGIN"))):
			fmt.Fprintf(&details, "write %s=UUID with the UUID of an object of the platform, not a file; ", name)
		case violation.Code == "type" && isFile:
			fmt.Fprintf(&details, "write %s:=@FILE instead of %[1]s=@FILE; ", name)
		case violation.Code == "type" && bytes.HasPrefix(replaced[name], []byte(`"`)):
			fmt.Fprintf(&details, "write %s:=JSON instead of %[1]s=TEXT; ", name)
		}
	}
	return errors.New(details.String() + "nothing was stored")
}

const public = string(model.ClientTypeEnumPublic)

// omitSecret makes a request generate a secret, as for a public client that becomes confidential.
func omitSecret(kind apply.Kind, members map[string]json.RawMessage, stored records.Record) (records.Record, error) {
	if kind.Name != string(records.KindOAuth2) || console.Unquote(members["client_type"]) == public {
		return nil, errors.New(generateSecret + " requires a confidential OAuth2 provider; nothing was stored")
	}
	delete(members, kind.Secret)
	if client, ok := stored.(records.OAuth2Provider); ok {
		client.ClientType, client.ClientSecret = public, seal.NewSecret("")
		return client, nil
	}
	return stored, nil
}

// requestFields returns the members of a request that creates the record, without those that are null or empty anyway.
func requestFields(
	document *contract.Document, kind apply.Kind, record records.Record,
) (map[string]json.RawMessage, error) {
	fields, err := contract.Fields(record, true)
	if err != nil {
		return nil, err
	}
	known := document.RequestSchema(kind.Operation).Properties
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool {
		property := known[name]
		return property == nil || string(value) == "null" || string(value) == `""` && property.Value.MinLength > 0
	})
	return fields, nil
}

// bodyOf returns the body of a request. A list of redirect URIs becomes the lines of a string.
func bodyOf(members map[string]json.RawMessage) []byte {
	const field = "redirect_uris"
	var list []string
	if json.Unmarshal(members[field], &list) == nil && list != nil {
		members[field], _ = memberOf(strings.Join(list, "\n"), false)
	}
	body, _ := json.Marshal(members)
	return body
}
