// Package api holds what is generated from openapi.yaml for the server: the models, the Echo strict server and the
// contract itself.
package api

import _ "embed"

//go:embed openapi.gen.yaml
var contract []byte

// Contract returns openapi.yaml, byte for byte, as it was when the package was generated.
func Contract() []byte {
	return append([]byte(nil), contract...)
}
