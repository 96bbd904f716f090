// Command providerd is the provider configuration server and the operator's tool for its database.
package main

import (
	"os"

	"example.com/providerd/cmd/providerd/command"
)

func main() {
	os.Exit(command.Main())
}
