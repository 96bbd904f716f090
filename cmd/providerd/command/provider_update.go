package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

type providerUpdateCommand struct {
	flags.DatabaseFlags
	flags.ConsentFlag
	PK    providerPK `arg:"" help:"pk of the provider."`
	Items items      `arg:"" optional:"" name:"item" help:"Fields: NAME=TEXT, NAME:=JSON, NAME=@FILE or NAME:=@FILE. A secret must be in a file."`
}

// Help is the long help text.
func (*providerUpdateCommand) Help() string {
	return "Changes a provider in place: its pk, its idempotency key and its links to applications stay, and so do " +
		"the other fields. The new values are checked like a create, shown, and stored once you confirm. A retry " +
		"of the create with the old body is then refused and lists the fields; \"providerd audit\" shows who changed " +
		"which fields."
}

// Validate requires fields, and consent.
func (c *providerUpdateCommand) Validate() error {
	return errors.Join(c.Items.check(), c.ConsentFlag.Validate())
}

// Run changes the provider.
func (c *providerUpdateCommand) Run(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		planned, err := database.Provider(ctx, int64(c.PK))
		if err != nil {
			return console.SuggestList(err, listOfProviders)
		}
		kind, err := apply.KindOf(planned.Common().Kind)
		if err != nil {
			return err
		}
		update := update{contract: contract, kind: kind, planned: planned}
		body, err := c.body(update)
		if err != nil {
			return err
		}
		if err := update.read(ctx, body, messages); err != nil {
			return err
		}
		if len(update.diffs) == 0 {
			messages.Note("provider %d already has these values", c.PK)
			return nil
		}
		for _, diff := range update.diffs {
			for _, line := range diff.Lines() {
				if err := out.Line(console.Printable(line)); err != nil {
					return err
				}
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if err := c.Ask(fmt.Sprintf("update provider %d (%s)", c.PK, planned.Common().Name)); err != nil {
			return err
		}
		if err := database.ChangeProviders(ctx, []store.Change{update.change()}); err != nil {
			return explainConflict(err)
		}
		messages.Note("updated provider %d", c.PK)
		return nil
	})
}

// explainConflict adds what to do if another program or record prevents a change.
func explainConflict(err error) error {
	switch {
	case errors.Is(err, store.ErrChanged):
		return fmt.Errorf("%w; run the command again", err)
	case errors.Is(err, store.ErrClientIDTaken):
		return fmt.Errorf("%w; see \"providerd provider list --client-id\"", err)
	default:
		return err
	}
}

// body returns the body of a request with the new values.
func (c *providerUpdateCommand) body(update update) ([]byte, error) {
	changed, err := c.Items.members(update.kind.SecretField())
	if err != nil {
		return nil, err
	}
	fields, err := requestFields(update.contract, update.kind, update.planned)
	if err != nil {
		return nil, err
	}
	return merge(fields, changed)
}

// update is the change of one provider.
type update struct {
	contract           *contract.Document
	kind               apply.Kind
	planned, requested store.Record
	diffs              []apply.FieldDiff
}

// read checks a body against the contract, and finds out what it changes.
func (u *update) read(ctx context.Context, body []byte, messages *console.Messages) error {
	err := checkBody(ctx, u.contract, u.kind, body)
	if err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	common := u.planned.Common()
	u.requested, err = contract.Requested(common.Kind, common.CreatedBy, common.IdempotencyKey, body, u.planned)
	if err != nil {
		return err
	}
	if u.diffs, err = u.kind.Diff(u.contract, u.planned, u.requested); err != nil {
		return err
	}
	after, err := contract.Fields(u.requested)
	if err != nil {
		return err
	}
	secret := u.kind.SecretField()
	isChanged := slices.ContainsFunc(u.diffs, func(diff apply.FieldDiff) bool { return diff.Field == secret })
	if isChanged && console.Unquote(after[secret]) == contract.Mask {
		return fmt.Errorf("`%s` is a masked secret; pass the secret itself; nothing was changed", secret)
	}
	noteAdvice(messages, u.requested)
	return nil
}

func (u *update) change() store.Change {
	fields := make([]string, len(u.diffs))
	for i, diff := range u.diffs {
		fields[i] = diff.Field
	}
	return store.Change{Planned: u.planned, Requested: u.requested, Fields: slices.Clip(fields)}
}
