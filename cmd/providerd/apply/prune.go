package apply

import (
	"context"
	"errors"
	"fmt"

	"example.com/providerd/store"
)

// maxOrphans limits the records that a run deletes or lists.
const maxOrphans = 10_000

// addOrphans adds the records that no entry names, if they are to be deleted or listed. It returns an error if one that
// would be deleted serves an application.
func (p *plan) addOrphans(ctx context.Context) error {
	if !p.isPruned && !p.isVerbose {
		return nil
	}
	if len(p.orphans) > maxOrphans {
		return fmt.Errorf("%d applied records of %s have no entry, and at most %d can be listed or deleted; "+
			"check the files", len(p.orphans), p.caller, maxOrphans)
	}
	var listed []int64
	for _, pk := range p.orphans {
		record, err := p.database.Provider(ctx, pk)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		listed = append(listed, pk)
		a, err := p.orphan(record)
		if err != nil {
			return err
		}
		p.applied = append(p.applied, a)
	}
	p.orphans = nil
	if !p.isPruned {
		return nil
	}
	if _, err := p.database.Deletable(ctx, listed); err != nil {
		return fmt.Errorf("--prune: %w", err)
	}
	return nil
}

// orphan returns a record that no entry names.
func (p *plan) orphan(record store.Record) (a applied, err error) {
	common := record.Common()
	a = applied{appliedJSON: appliedJSON{
		Kind: string(common.Kind), Name: common.Name, Outcome: outcomeOrphan, stored: storedOf(record),
	}}
	if p.isPruned {
		a.Outcome = outcomeDelete
		a.version, err = p.versionOf(record)
	}
	return a, err
}
