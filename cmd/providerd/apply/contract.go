package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/client"
)

// checkCanValidate checks that the contract of the server has validate_only: a server that does not know it would
// create instead of validate.
func checkCanValidate(ctx context.Context, from *client.Providers) error {
	text, err := from.Contract(ctx)
	if err != nil {
		return fmt.Errorf("%s; nothing was sent", console.Printable(reasonOf(err)))
	}
	if !bytes.Contains(text, []byte(`"validate_only"`)) {
		return errors.New("the server is too old for a dry run or `was`: its contract lacks validate_only; " +
			"upgrade it, or check only the files with --dry-run without --server; nothing was sent")
	}
	return nil
}
