package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"unicode/utf8"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/files"
	"example.com/providerd/store/records"
)

// items are the members of a request, as HTTPie writes them: NAME=TEXT, NAME:=JSON, NAME=@FILE and NAME:=@FILE.
type items []string

const itemForms = "write NAME=TEXT, NAME:=JSON, NAME=@FILE or NAME:=@FILE"

// check returns an error if there are none.
func (i items) check() error {
	if len(i) == 0 {
		return errors.New("pass fields, such as name=Wiki")
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
			return nil, fmt.Errorf("%s appears twice; write a list as %s:='[\"A\", \"B\"]'", name, name)
		}
		path, isFile := strings.CutPrefix(value, "@")
		if name == secret && !isFile && value != "" {
			return nil, fmt.Errorf("%s on a command line can be read by other programs; put it into a file and write %s@FILE",
				name, text[:len(text)-len(value)])
		}
		if isFile {
			content, err := readItem(path)
			if err != nil {
				if name != secret && errors.Is(err, fs.ErrNotExist) {
					err = fmt.Errorf(`%w; write %s:='"@TEXT"' for a string that begins with @`, err, name)
				}
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			value = content
		}
		member, err := memberOf(value, isJSON)
		if err != nil {
			return nil, fmt.Errorf("%s is %w", name, err)
		}
		members[name] = member
	}
	return members, nil
}

// parseItem returns the parts of an item. Its errors do not repeat the item, because it may be a secret.
func parseItem(number int, text string) (name, value string, isJSON bool, err error) {
	name, value, ok := strings.Cut(text, "=")
	name, isJSON = strings.CutSuffix(name, ":")
	switch {
	case !ok || name == "":
		err = fmt.Errorf("item %d is not a field; %s", number, itemForms)
	case !isJSON && strings.HasPrefix(value, "="):
		err = fmt.Errorf("item %d has ==; write NAME=TEXT, or NAME:='\"=TEXT\"' for a string that begins with =", number)
	}
	return name, value, isJSON, err
}

// readItem reads a file without the byte order mark and the line break that editors add.
func readItem(path string) (string, error) {
	content, err := files.ReadSmall(path)
	if err != nil {
		return "", err
	}
	text := files.Text(content)
	switch {
	case text == "":
		return "", fmt.Errorf("%s is empty; write the value into it", path)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%s is not UTF-8", path)
	default:
		return text, nil
	}
}

func memberOf(value string, isJSON bool) (json.RawMessage, error) {
	if !isJSON {
		return json.Marshal(value) //nolint:wrapcheck // It cannot fail.
	}
	if !json.Valid([]byte(value)) {
		return nil, errors.New("not JSON; write = instead of := for a string")
	}
	return json.RawMessage(value), nil
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
	body, err := bodyOf(members)
	if err != nil {
		return nil, err
	}
	violations, err := document.Validate(ctx, kind.Operation, body)
	if err != nil {
		return nil, fmt.Errorf("%w; nothing was stored", err)
	}
	if len(violations) > 0 {
		var details strings.Builder
		for _, violation := range violations {
			details.WriteString(strings.TrimSuffix(violation.Detail, ".") + "; ")
		}
		return nil, errors.New(details.String() + "nothing was stored")
	}
	return contract.Requested(records.Kind(kind.Name), caller, key, body, stored)
}

// requestFields returns the members of a request that creates the record. It omits values that are null or empty by
// default.
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
func bodyOf(members map[string]json.RawMessage) ([]byte, error) {
	const field = "redirect_uris"
	var list []string
	if bytes.HasPrefix(members[field], []byte("[")) && json.Unmarshal(members[field], &list) == nil {
		joined, err := memberOf(strings.Join(list, "\n"), false)
		if err != nil {
			return nil, err
		}
		members[field] = joined
	}
	body, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return body, nil
}
