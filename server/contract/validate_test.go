package contract_test

import (
	"strings"
	"testing"

	"example.com/providerd/server/contract"
)

func TestValidateRefusesWhatHasNoViolations(t *testing.T) {
	t.Parallel()
	document, err := contract.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	large := []byte(`{"name":"` + strings.Repeat("x", contract.MaxBodyBytes) + `"}`)
	if _, err := document.Validate(t.Context(), "providers_oauth2_create", large); err == nil {
		t.Error("a body over 1 MiB passes")
	}
	if _, err := document.Validate(t.Context(), "nothing", []byte("{}")); err == nil {
		t.Error("an operation that does not exist passes")
	}
	if document.RequestSchema("nothing") != nil {
		t.Error("an operation that does not exist has a schema")
	}
}
