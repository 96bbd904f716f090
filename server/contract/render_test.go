package contract_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/storetest/processtest"
)

// TestRenderedRecordIsThatOfEncodingJSON renders records with any values, also those that no record has: lists that are
// nil, strings that are not UTF-8, and texts that are not JSON.
func TestRenderedRecordIsThatOfEncodingJSON(t *testing.T) {
	t.Parallel()
	document, err := contract.Load(t.Context())
	processtest.Must(t, err)
	for id, record := range map[string]any{
		"providers_oauth2_create":              new(model.OAuth2Provider),
		"providers_workspace_directory_create": new(model.WorkspaceDirectoryProvider),
	} {
		op, _ := document.Operation(id)
		rapid.Check(t, func(t *rapid.T) {
			fields := reflect.ValueOf(record).Elem()
			for i := range fields.NumField() {
				fill(t, fields.Field(i))
			}
			var want bytes.Buffer
			wantErr := json.NewEncoder(&want).Encode(record)
			got, err := op.Render(record)
			if !bytes.Equal(got, want.Bytes()) || (err == nil) != (wantErr == nil) {
				t.Fatalf("%+v is rendered as\n%s(%v), want\n%s(%v)", record, got, err, &want, wantErr)
			}
		})
	}
}

// fill sets a field of a record to any value.
func fill(t *rapid.T, field reflect.Value) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([ -~]|[<>&"\\]|[\x00-\x1f\x7f]|é|\x{2028}|\x{2029})*`),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(text []byte) string { return string(text) }))
	ids := rapid.Custom(func(t *rapid.T) uuid.UUID { return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")) })
	switch value := field.Addr().Interface().(type) {
	case *int64:
		*value = rapid.Int64().Draw(t, "number")
	case *bool:
		*value = rapid.Bool().Draw(t, "boolean")
	case *uuid.UUID:
		*value = ids.Draw(t, "id")
	case **uuid.UUID:
		*value = rapid.Ptr(ids, true).Draw(t, "optional id")
	case *[]uuid.UUID:
		*value = rapid.OneOf(rapid.SliceOfN(ids, 0, 3), rapid.Just([]uuid.UUID(nil))).Draw(t, "list")
	case *json.RawMessage:
		*value = json.RawMessage(rapid.OneOf(text, rapid.SampledFrom([]string{"", `{ "a" : "<\u2028 " }`})).Draw(t, "text"))
	default:
		field.SetString(text.Draw(t, "string"))
	}
}
