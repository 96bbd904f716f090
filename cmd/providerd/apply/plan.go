package apply

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// plan is a report of what a run against a database does.
type plan struct {
	*report
	contract *contract.Document
	// entries are the first of the reported ones; the others are records that no entry names.
	entries []applied
	found   found
}

// found is all that a plan depends on.
type found struct {
	// pks are those of the records of the entries, in their order; 0 for an entry without one.
	pks []int64
	// versions are those of these records, by pk.
	versions map[int64]string
	// holders are the records with the client_ids of entries, and orphans the applied records that no entry names, if they
	// are deleted or listed.
	holders map[string]store.Identity
	orphans []store.Identity
}

// chunkSize is the number of values in a query.
const chunkSize = 500

// find finds what the plan depends on.
func (p *plan) find(ctx context.Context, in *store.Store) (f found, err error) {
	applied, err := p.appliedRecords(ctx, in)
	if err != nil {
		return f, err
	}
	if f.holders, err = p.holders(ctx, in); err != nil {
		return f, err
	}
	f.pks, f.orphans = p.match(applied, f.holders)
	f.versions, err = in.Versions(ctx, f.pks)
	return f, err
}

// appliedRecords returns the records of the caller with the idempotency keys of the entries or, if orphans matter, with
// those of any entries, by key.
func (p *plan) appliedRecords(ctx context.Context, in *store.Store) (map[string]store.Identity, error) {
	records := map[string]store.Identity{}
	for _, kind := range Kinds() {
		var keys []string
		for _, a := range p.entries {
			if a.Kind == kind.Name {
				keys = append(keys, idempotencyKey(a.Kind, a.ID), idempotencyKey(a.Kind, cmp.Or(a.Was, a.ID)))
			}
		}
		var filters []store.Filter
		for chunk := range slices.Chunk(slices.Compact(keys), chunkSize) {
			filters = append(filters, store.Filter{IdempotencyKeys: chunk})
		}
		if p.Prune > 0 || p.DryRun {
			pattern := keyPrefix(kind.Name) + strings.Repeat("_", hex.EncodedLen(sha256.Size))
			filters = append(filters, store.Filter{KeyPattern: pattern})
		}
		for _, filter := range filters {
			filter.CreatedBy, filter.Kind = string(*p.As), store.Kind(kind.Name)
			list, err := in.Identities(ctx, filter, len(keys)+maxChanges+1)
			if err != nil {
				return nil, err
			}
			for _, record := range list {
				records[*record.IdempotencyKey] = record
			}
		}
	}
	return records, nil
}

// holders returns the records that have the client_ids of entries, by client_id.
func (p *plan) holders(ctx context.Context, in *store.Store) (map[string]store.Identity, error) {
	var clientIDs []string
	for _, a := range p.entries {
		if a.clientID != "" {
			clientIDs = append(clientIDs, a.clientID)
		}
	}
	holders := map[string]store.Identity{}
	for chunk := range slices.Chunk(clientIDs, chunkSize) {
		list, err := in.Identities(ctx, store.Filter{ClientIDs: chunk}, chunkSize)
		if err != nil {
			return nil, err
		}
		for _, record := range list {
			holders[*record.ClientID] = record
		}
	}
	return holders, nil
}

// match returns the pks of the records of the entries: the record with its id or, if there is none, with its former one
// or, with --adopt, with its client_id. It also returns the records that no entry names.
func (p *plan) match(
	records, holders map[string]store.Identity,
) (pks []int64, orphans []store.Identity) {
	pks, named := make([]int64, len(p.entries)), map[int64]bool{}
	for i, a := range p.entries {
		record, former := records[idempotencyKey(a.Kind, a.ID)], store.Identity{}
		if a.Was != "" {
			former = records[idempotencyKey(a.Kind, a.Was)]
		}
		pks[i] = cmp.Or(record.PK, former.PK)
		named[record.PK], named[former.PK] = true, true
	}
	for i, a := range p.entries {
		if holder := holders[a.clientID]; p.Adopt && pks[i] == 0 && !named[holder.PK] {
			pks[i], named[holder.PK] = holder.PK, true
		}
	}
	for key, record := range records {
		_, err := hex.DecodeString(strings.TrimPrefix(key, keyPrefix(string(record.Kind))))
		if err == nil && strings.ToLower(key) == key && !named[record.PK] {
			orphans = append(orphans, record)
		}
	}
	slices.SortFunc(orphans, func(a, b store.Identity) int { return cmp.Compare(a.PK, b.PK) })
	return pks, orphans
}

// decide sets the outcome of each entry and adds the orphans.
func (p *plan) decide(ctx context.Context, in *store.Store) (err error) {
	if p.found, err = p.find(ctx, in); err != nil {
		return err
	}
	if err := p.compareAll(ctx, in); err != nil {
		return err
	}
	for i := range p.entries {
		if a := &p.entries[i]; a.Outcome == outcomePending {
			a.Outcome = outcomeCreate
			if a.Was != "" {
				a.Detail = fmt.Sprintf("no record of %s has this id or %q", *p.As, a.Was)
			}
		}
	}
	planned := outcomeOrphan
	if p.Prune > 0 {
		planned = outcomeDelete
	}
	for _, orphan := range p.found.orphans {
		a := applied{appliedJSON: appliedJSON{
			Kind: string(orphan.Kind), Name: orphan.Name, Outcome: planned, PK: orphan.PK,
		}}
		if orphan.ClientID != nil {
			a.ClientID = *orphan.ClientID
		}
		p.applied = append(p.applied, a)
	}
	p.entries = p.applied[:len(p.entries)]
	p.refuseTaken()
	return nil
}

// compareAll compares the entries with their records.
func (p *plan) compareAll(ctx context.Context, in *store.Store) error {
	entries := map[int64]int{}
	for i, pk := range p.found.pks {
		entries[pk] = i
	}
	delete(entries, 0)
	for pks := range slices.Chunk(slices.Sorted(maps.Keys(entries)), chunkSize) {
		for record, err := range in.Opened(ctx, in.Providers(ctx, store.Filter{PKs: pks}, 0)) {
			if err == nil {
				err = p.compare(&p.entries[entries[record.Common().PK]], record)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// compare finds out what an entry changes in its record.
func (p *plan) compare(a *applied, record store.Record) error {
	requested, err := p.requested(a, record)
	if err != nil {
		return err
	}
	if a.Changes, err = a.kind.Diff(p.contract, record, requested); err != nil {
		return err
	}
	common := record.Common()
	a.PK = common.PK
	if oauth2, ok := record.(store.OAuth2Provider); ok {
		a.ClientID = oauth2.ClientID
	}
	switch {
	case p.isStoredUnder(a, a.ID, common):
		if err := p.compareOwn(a, record); err != nil {
			return err
		}
	case p.isStoredUnder(a, a.Was, common):
		a.Outcome, a.Detail = outcomeRename, fmt.Sprintf("was %q", a.Was)
	default:
		a.Outcome, a.Detail = outcomeAdopt, fmt.Sprintf("`client_id` belongs to a record of %s", common.CreatedBy)
	}
	if len(a.Changes) > 0 {
		a.Undo = a.kind.Undo(a.PK, a.Changes)
	}
	if a.isWritten() && !p.DryRun {
		a.change = &store.Change{Planned: record, Requested: requested}
	}
	return nil
}

// isStoredUnder reports whether an id of an entry created a record of the caller.
func (p *plan) isStoredUnder(a *applied, id string, record store.Provider) bool {
	key := record.IdempotencyKey
	return id != "" && key != nil && *key == idempotencyKey(a.Kind, id) && record.CreatedBy == string(*p.As)
}

// compareOwn finds out whether an entry changes the record that its id created.
func (p *plan) compareOwn(a *applied, record store.Record) error {
	a.Outcome = outcomeUpdate
	if len(a.Changes) > 0 {
		return nil
	}
	// The server must take the body of the entry for a retry of the create.
	retried, err := p.requested(a, nil)
	if err != nil {
		return err
	}
	fields, err := store.Differing(record, retried)
	if err != nil {
		return err
	}
	a.Detail = "keeps the client_id and the secret that the entry omits"
	if len(fields) == 0 {
		a.Outcome, a.Detail = outcomeUnchanged, ""
	}
	return nil
}

// requested returns the record that an entry requests instead of a stored one, or of none.
func (p *plan) requested(a *applied, stored store.Record) (store.Record, error) {
	key := idempotencyKey(a.Kind, a.ID)
	return contract.Requested(store.Kind(a.Kind), string(*p.As), &key, a.entry.Body, stored)
}

// refuseTaken refuses entries whose client_id another record has, unless that record is changed or deleted, too.
func (p *plan) refuseTaken() {
	freed := map[int64]bool{}
	for _, a := range p.applied {
		freed[a.PK] = a.Outcome == outcomeDelete || a.isWritten() && a.clientID != "" && a.clientID != a.ClientID
	}
	for isStable := false; !isStable; {
		isStable = true
		for i := range p.entries {
			a := &p.entries[i]
			holder, isTaken := p.found.holders[a.clientID]
			if a.isWritten() && isTaken && holder.PK != a.PK && !freed[holder.PK] {
				isStable, freed[a.PK] = false, false
				a.refuseHeld(holder, p.Adopt)
			}
		}
	}
}

// refuseHeld records that another record has the client_id.
func (a *applied) refuseHeld(holder store.Identity, isAdopting bool) {
	a.Outcome, a.isClientIDTaken, a.Changes, a.Undo = outcomeRefused, true, nil, ""
	a.Detail = fmt.Sprintf("`client_id` is taken by provider %d of %s", holder.PK, holder.CreatedBy)
	if a.PK == 0 && !isAdopting {
		a.Detail += "; --adopt takes it over"
	}
	a.pointAt("/client_id")
}

// isWritten reports whether the plan writes or deletes the record.
func (a *applied) isWritten() bool { return a.Outcome.done() != "" }
