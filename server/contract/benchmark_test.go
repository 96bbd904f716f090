package contract_test

import (
	"testing"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/storetest/processtest"
)

// BenchmarkSteps measures the steps that a create like those of cmd/bench takes in this package.
func BenchmarkSteps(b *testing.B) {
	document, err := contract.Load(b.Context())
	processtest.Must(b, err)
	op, _ := document.Operation("providers_oauth2_create")
	body := []byte(`{"name":"bench 1234","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",` +
		`"redirect_uris":"https://app1234.example.com/callback","sub_mode":"user_uuid"}`)
	sent, err := op.Read(body)
	processtest.Must(b, err)
	for name, step := range map[string]func() error{
		"read":     func() error { _, err := op.Read(body); return err },
		"validate": func() error { return op.Validate(sent, false) },
		"bind":     func() error { return sent.Bind(new(model.OAuth2ProviderRequest)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				processtest.Must(b, step())
			}
		})
	}
}
