// Release prints a part of a release that is generated: the example requests of the contract as an .http file, which
// editors send, or the bill of materials of a providerd binary. .ci/dist calls it.
//
//	go run ./.ci/release         # the requests; PROVIDERD_TOKEN in the environment of the editor is the access token
//	go run ./.ci/release BINARY  # the bill of materials
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/contract"
)

func main() {
	log.SetFlags(0)
	err := error(nil)
	switch len(os.Args) {
	case 1:
		err = printRequests(os.Stdout)
	case 2:
		err = printBill(os.Stdout, os.Args[1])
	default:
		log.Fatal("usage: release [BINARY]")
	}
	if err != nil {
		log.Fatal("release: " + err.Error())
	}
}

// printRequests prints two requests for each example of each operation: one that is only validated, and the create.
func printRequests(to io.Writer) error {
	document, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	if err != nil {
		return fmt.Errorf("read the contract: %w", err)
	}
	var text bytes.Buffer
	text.WriteString("# Requests to a local providerd, from the examples of its contract.\n" +
		"@host = http://127.0.0.1:8080\n@token = {{$processEnv PROVIDERD_TOKEN}}\n")
	base := document.Servers[0].URL
	for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		operation := document.Paths.Value(path).Post
		examples := operation.RequestBody.Value.Content["application/json"].Examples
		for _, name := range slices.Sorted(maps.Keys(examples)) {
			body, err := json.MarshalIndent(examples[name].Value.Value, "", "  ")
			if err != nil {
				return fmt.Errorf("render example %s: %w", name, err)
			}
			for _, query := range []string{"?validate_only=true", ""} {
				_, _ = fmt.Fprintf(&text, "\n### %s: %s\nPOST {{host}}%s%s%s\nAuthorization: Bearer {{token}}\n"+
					"Content-Type: application/json\nIdempotency-Key: {{$guid}}\n\n%s\n",
					operation.Summary, name, base, path, query, body)
			}
		}
	}
	if _, err := text.WriteTo(to); err != nil {
		return fmt.Errorf("write requests: %w", err)
	}
	return nil
}
