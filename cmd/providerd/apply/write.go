package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
)

// maxChanges limits the changes of a transaction, because creates wait for it.
const maxChanges = 200

// write changes and deletes records, in transactions of their own, and then creates records. It returns an error for
// which isConflict is true if a record was changed since the plan.
func (p *plan) write(ctx context.Context, parallel int) error {
	var created []*applied
	for i := range p.applied {
		if a := &p.applied[i]; a.Outcome == outcomeCreate {
			created = append(created, a)
		}
	}
	for i, transaction := range p.transactions {
		begun := time.Now()
		if err := p.change(ctx, transaction); err != nil {
			return fmt.Errorf("transaction %d of %d: %w", i+1, len(p.transactions), err)
		}
		p.messages.Note("transaction %d of %d: changed %s", i+1, len(p.transactions),
			console.Count(len(transaction), "record"))
		if i == len(p.transactions)-1 && len(created) == 0 {
			return nil
		}
		// Pause for as long as the transaction took: SQLite has no queue of writers, so others would rarely get the lock.
		select {
		case <-time.After(time.Since(begun)):
		case <-ctx.Done():
			return errInterrupted()
		}
	}
	return inParallel(ctx, parallel, p.messages.Progress("entries created"), created, p.create)
}

// change changes records in one transaction.
func (p *plan) change(ctx context.Context, transaction []*applied) error {
	changes := make([]store.Change, len(transaction))
	for i, a := range transaction {
		var err error
		if changes[i], err = p.changeOf(ctx, a); err != nil {
			return err
		}
	}
	if err := p.database.ChangeProviders(ctx, changes); err != nil {
		return err
	}
	for _, a := range transaction {
		a.Outcome, a.ClientID, a.version = a.Outcome.done(), a.requestedClientID(), ""
	}
	return nil
}

// changeOf returns the change of a record, if that is still the planned one.
func (p *plan) changeOf(ctx context.Context, a *applied) (change store.Change, err error) {
	if change.Planned, err = p.database.Provider(ctx, a.PK); err != nil && !errors.Is(err, store.ErrNotFound) {
		return change, err
	}
	var version string
	if err == nil {
		if version, err = p.versionOf(change.Planned); err != nil {
			return change, err
		}
	}
	switch {
	case version != a.version:
		return change, fmt.Errorf("provider %d: %w", a.PK, store.ErrChanged)
	case a.Outcome == outcomeDelete:
		return change, nil
	}
	for _, field := range a.Changes {
		change.Fields = append(change.Fields, field.Field)
	}
	change.Requested, err = p.requested(a, change.Planned)
	return change, err
}

// create creates the record of an entry. It returns an error for which isConflict is true if its id or client_id was
// taken since the plan.
func (p *plan) create(ctx context.Context, a *applied) error {
	requested, err := p.requested(a, nil)
	if err != nil {
		return err
	}
	record, isReplayed, err := Create(ctx, p.database, p.caller, requested)
	if err != nil {
		return err
	}
	a.Outcome, a.stored = outcomeCreated, storedOf(record)
	if isReplayed {
		a.Outcome = outcomeUnchanged
		return nil
	}
	a.Undo = fmt.Sprintf("providerd provider delete %d", a.PK)
	return nil
}

// Create stores the record that a caller requests, or finds the one that its idempotency key already created. It
// returns the errors of the store.
func Create(
	ctx context.Context, database *store.Store, caller string, requested store.Record,
) (record store.Record, isReplayed bool, err error) {
	common := requested.Common()
	request := store.CreateRequest{
		Name: common.Name, Generated: common.Generated, CreatedBy: caller, IdempotencyKey: common.IdempotencyKey,
	}
	switch provider := requested.(type) {
	case store.OAuth2Provider:
		return database.CreateOAuth2Provider(ctx, request, provider.OAuth2Settings)
	case store.WorkspaceDirectoryProvider:
		return database.CreateWorkspaceDirectoryProvider(ctx, request, provider.WorkspaceDirectorySettings)
	default:
		return nil, false, fmt.Errorf("%T is not a provider", requested)
	}
}

// group groups the changes into transactions. The provider that has a client_id comes before the one that gets it, if
// possible in the same transaction, in which two can also swap theirs. It returns an error if more exchange theirs than
// fit into a transaction.
func (p *plan) group() error {
	holders := map[string]*applied{}
	for i := range p.applied {
		if a := &p.applied[i]; a.version != "" {
			holders[a.ClientID] = a
		}
	}
	delete(holders, "")
	seen := map[*applied]bool{}
	for i := range p.applied {
		if p.applied[i].version == "" {
			continue
		}
		var chain []*applied
		next := &p.applied[i]
		for ; next != nil && !seen[next]; next = holders[next.requestedClientID()] {
			seen[next] = true
			chain = append(chain, next)
		}
		// A record of this chain is at its end, too, if records exchange their client_ids.
		if first := slices.Index(chain, next); first >= 0 && len(chain)-first > maxChanges {
			return fmt.Errorf("%d records exchange their client_ids, and a transaction can change at most %d; "+
				"first give one of them another client_id", len(chain)-first, maxChanges)
		}
		slices.Reverse(chain)
		p.transactions = appendChain(p.transactions, chain)
	}
	return nil
}

// appendChain adds a chain of changes to the last transaction, or to new ones if it has no room.
func appendChain(list [][]*applied, chain []*applied) [][]*applied {
	for len(chain) > 0 {
		last := len(list) - 1
		if last < 0 || len(list[last])+min(len(chain), maxChanges) > maxChanges {
			list, last = append(list, nil), last+1
		}
		count := min(len(chain), maxChanges)
		list[last], chain = append(list[last], chain[:count]...), chain[count:]
	}
	return list
}
