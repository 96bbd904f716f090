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

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
)

// plan is a report of what a run against a database does.
type plan struct {
	*report
	database *store.Store
	contract *contract.Document
	// entries are the first of the reported ones; the others are records that no entry names.
	entries []applied
	found   found
}

// found is all that a plan depends on.
type found struct {
	// pks has the pk of each entry's record, in the order of entries; 0 if there is none.
	pks []int64
	// versions has the versions of these records by pk.
	versions map[int64]string
	// holders are the records with the client_ids of entries. orphans are applied records without entries, if they matter.
	holders map[string]store.Identity
	orphans []store.Identity
}

const (
	// maxEntries and maxChanges limit a run, because creates wait for its transaction.
	maxEntries = 10_000
	maxChanges = 5_000
	// chunkSize is the number of values in a query.
	chunkSize = 500
)

func (p *plan) find(ctx context.Context, in store.Reader) (f found, err error) {
	applied, err := identities(ctx, in, p.appliedFilters(), func(r store.Identity) *string { return r.IdempotencyKey })
	if err != nil {
		return f, err
	}
	f.holders, err = identities(ctx, in, p.holderFilters(), func(r store.Identity) *string { return r.ClientID })
	if err != nil {
		return f, err
	}
	f.pks, f.orphans = p.match(applied, f.holders)
	f.versions, err = in.Versions(ctx, f.pks)
	return f, err
}

// identities returns the records that one of the filters selects, by key.
func identities(
	ctx context.Context, in store.Reader, filters []store.Filter, key func(store.Identity) *string,
) (map[string]store.Identity, error) {
	records := map[string]store.Identity{}
	for _, filter := range filters {
		list, err := in.Identities(ctx, filter, 2*maxEntries+maxChanges+1)
		if err != nil {
			return nil, err
		}
		for _, record := range list {
			records[*key(record)] = record
		}
	}
	return records, nil
}

// appliedFilters select the caller's records with the idempotency keys of the entries or, if orphans matter, of any.
func (p *plan) appliedFilters() (filters []store.Filter) {
	for _, kind := range Kinds() {
		filter := store.Filter{CreatedBy: string(*p.As), Kind: records.Kind(kind.Name)}
		if p.Prune > 0 || p.DryRun {
			filter.KeyPattern = keyPrefix(kind.Name) + strings.Repeat("_", hex.EncodedLen(sha256.Size))
			filters = append(filters, filter)
		}
		var keys []string
		for _, a := range p.entries {
			if a.Kind == kind.Name {
				keys = append(keys, idempotencyKey(a.Kind, a.ID), idempotencyKey(a.Kind, cmp.Or(a.Was, a.ID)))
			}
		}
		for filter.IdempotencyKeys = range slices.Chunk(slices.Compact(keys), chunkSize) {
			filters = append(filters, filter)
		}
	}
	return filters
}

func (p *plan) holderFilters() (filters []store.Filter) {
	var clientIDs []string
	for _, a := range p.entries {
		if a.clientID != "" {
			clientIDs = append(clientIDs, a.clientID)
		}
	}
	for chunk := range slices.Chunk(clientIDs, chunkSize) {
		filters = append(filters, store.Filter{ClientIDs: chunk})
	}
	return filters
}

// match returns the pks of the entries' records: those with the id or, if there is none, with the former one or, with
// --adopt, with the client_id. It also returns the others, such as one with the former id if another one has the id.
func (p *plan) match(records, holders map[string]store.Identity) (pks []int64, orphans []store.Identity) {
	pks, named := make([]int64, len(p.entries)), map[int64]bool{}
	for i, a := range p.entries {
		record, former := records[idempotencyKey(a.Kind, a.ID)], store.Identity{}
		if a.Was != "" {
			former = records[idempotencyKey(a.Kind, a.Was)]
		}
		pks[i] = cmp.Or(record.PK, former.PK)
		named[pks[i]] = true
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
func (p *plan) decide(ctx context.Context) (err error) {
	if p.found, err = p.find(ctx, p.database.Providers.Reader); err != nil {
		return err
	}
	if err := p.compareAll(ctx); err != nil {
		return err
	}
	for i := range p.entries {
		a := &p.entries[i]
		if a.Outcome != outcomePending {
			continue
		}
		a.Outcome = outcomeCreate
		if a.Was != "" {
			a.Detail = fmt.Sprintf("no record of %s has this id or %q", *p.As, a.Was)
		}
		if a.change.Requested, err = p.requested(a, nil); err != nil {
			return err
		}
	}
	for _, orphan := range p.found.orphans {
		a := applied{
			Entry: manifest.Entry{Kind: string(orphan.Kind)}, Name: orphan.Name, Outcome: outcomeOrphan, PK: orphan.PK,
			change: store.Change{Planned: records.OAuth2Provider{Provider: records.Provider{PK: orphan.PK}}},
		}
		if p.Prune > 0 {
			a.Outcome = outcomeDelete
		}
		if orphan.ClientID != nil {
			a.ClientID = *orphan.ClientID
		}
		p.applied = append(p.applied, a)
	}
	p.entries = p.applied[:len(p.entries)]
	p.refuseTaken()
	return nil
}

func (p *plan) compareAll(ctx context.Context) error {
	entries := map[int64]*applied{}
	for i, pk := range p.found.pks {
		entries[pk] = &p.entries[i]
	}
	delete(entries, 0)
	for pks := range slices.Chunk(slices.Sorted(maps.Keys(entries)), chunkSize) {
		for record, err := range p.database.Providers.Opened(ctx, p.database.Providers.List(ctx, store.Filter{PKs: pks}, 0)) {
			if err == nil {
				err = p.compare(entries[record.Common().PK], record)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// compare finds out what an entry changes in its record.
func (p *plan) compare(a *applied, record records.Record) error {
	requested, err := p.requested(a, record)
	if err != nil {
		return err
	}
	if a.Changes, err = a.kind.Diff(p.contract, record, requested); err != nil {
		return err
	}
	common := record.Common()
	a.PK = common.PK
	if oauth2, ok := record.(records.OAuth2Provider); ok {
		a.ClientID = oauth2.ClientID
	}
	switch {
	case p.isStoredUnder(a, a.ID, common.IdempotencyKey, common.CreatedBy):
		if err := p.compareOwn(a, record); err != nil {
			return err
		}
	case p.isStoredUnder(a, a.Was, common.IdempotencyKey, common.CreatedBy):
		a.Outcome, a.Detail = outcomeRename, fmt.Sprintf("was %q", a.Was)
	default:
		a.Outcome, a.Detail = outcomeAdopt, fmt.Sprintf("`client_id` belongs to a record of %s", common.CreatedBy)
	}
	if len(a.Changes) > 0 {
		a.Undo = a.kind.Undo(a.PK, a.Changes)
	}
	if !p.DryRun {
		a.change = store.Change{Planned: record, Requested: requested, Fields: FieldNames(a.Changes)}
		if a.Outcome == outcomeAdopt {
			a.change.Fields = append(a.change.Fields, "created_by")
		}
	}
	return nil
}

// isStoredUnder reports whether an id of an entry created the record of a caller with an idempotency key.
func (p *plan) isStoredUnder(a *applied, id string, key *string, createdBy string) bool {
	return id != "" && key != nil && *key == idempotencyKey(a.Kind, id) && createdBy == string(*p.As)
}

// compareOwn finds out whether an entry changes the record that its id created.
func (p *plan) compareOwn(a *applied, record records.Record) error {
	a.Outcome = outcomeUpdate
	// The server must take the body of the entry for a retry of the create.
	retried, err := p.requested(a, nil)
	if err != nil {
		return err
	}
	fields, err := records.Differing(record, retried)
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		a.Outcome, a.Changes = outcomeUnchanged, nil
	} else if len(a.Changes) == 0 {
		a.Detail = "keeps the client_id and the secret that the entry omits"
	}
	return nil
}

// requested returns the record that an entry requests instead of a stored one, or of none.
func (p *plan) requested(a *applied, stored records.Record) (records.Record, error) {
	key := idempotencyKey(a.Kind, a.ID)
	return contract.Requested(records.Kind(a.Kind), string(*p.As), &key, a.Body, stored)
}
