package apply

import (
	"encoding/json"

	"example.com/providerd/store"
)

// Records converts between the bodies of requests and records as the server does.
type Records struct {
	// Requested returns the record that a valid body requests instead of a stored one, whose client_id and secret stay if
	// the body omits them. If stored is nil, they are generated. The record gets the idempotency key.
	Requested func(kind store.Kind, key *string, body []byte, stored store.Record) (store.Record, error)
	// Fields returns the members of a record as the API returns it.
	Fields func(record store.Record) (map[string]json.RawMessage, error)
	// Undo returns the command that gives the fields of a provider their old values.
	Undo func(pk int64, changes []FieldDiff) string
}
