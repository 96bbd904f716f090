package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/client"
)

// checkCanValidate looks into the contract of the server. One that does not know validate_only would create what it is
// only asked about.
func checkCanValidate(ctx context.Context, from *client.Providers) error {
	text, err := from.Contract(ctx)
	if err != nil {
		return fmt.Errorf("%s; nothing was sent", console.Printable(reasonOf(err)))
	}
	if !bytes.Contains(text, []byte(`"validate_only"`)) {
		return errors.New("the server does not have validate_only in its contract, and cannot tell what it would do; " +
			"upgrade it, or leave out --server to check the file alone; nothing was sent")
	}
	return nil
}
