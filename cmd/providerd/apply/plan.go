package apply

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"strings"

	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// plan is the report of a run against a database, and what it found there.
type plan struct {
	*report
	database *store.Store
	contract *contract.Document
	caller   string
	// isPruned is true if the orphans are deleted, and isVerbose if they are listed.
	isPruned, isVerbose bool
	// owned is the number of records of the caller, and orphans are the pks of those that no entry names.
	owned   int
	orphans []int64
	// transactions are the changes in the order in which they are written.
	transactions [][]*applied
}

// make compares the entries with the records of the caller.
func (p *plan) make(ctx context.Context) error {
	if err := p.matchRecords(ctx); err != nil {
		return err
	}
	if err := p.findSimilar(ctx); err != nil {
		return err
	}
	if err := p.addOrphans(ctx); err != nil {
		return err
	}
	if err := p.refuseTaken(ctx); err != nil {
		return err
	}
	return p.group()
}

// addWritten adds the outcomes of an earlier plan, of which this one found only the records.
func (p *plan) addWritten(earlier []applied) {
	entries := map[string]*applied{}
	for i := range p.applied {
		entries[p.applied[i].ID] = &p.applied[i]
	}
	for _, before := range earlier {
		if before.Outcome == outcomeDeleted {
			p.applied = append(p.applied, before)
		} else if now := entries[before.ID]; now.Outcome == outcomeUnchanged {
			*now = before
		}
	}
}

// written returns the entries and records that were changed.
func (p *plan) written() []applied {
	return slices.DeleteFunc(slices.Clone(p.applied), func(a applied) bool {
		return !slices.Contains([]outcome{outcomeCreated, outcomeUpdated, outcomeRenamed, outcomeDeleted}, a.Outcome)
	})
}

// matchRecords compares each record with the entry that has its id or, if there is no record with that id, its former
// one.
func (p *plan) matchRecords(ctx context.Context) error {
	byKey, byFormerKey, former := map[string]*applied{}, map[string]*applied{}, map[*applied]store.Record{}
	for i := range p.applied {
		a := &p.applied[i]
		byKey[idempotencyKey(a.Kind, a.ID)] = a
		if a.Was != "" {
			byFormerKey[idempotencyKey(a.Kind, a.Was)] = a
		}
	}
	for record, err := range p.recordsOfCaller(ctx) {
		if err != nil {
			return err
		}
		p.owned++
		key := record.Common().IdempotencyKey
		switch {
		case key == nil || !strings.HasPrefix(*key, keyPrefix+string(record.Common().Kind)+"/"):
		case byKey[*key] != nil:
			if err := p.compare(byKey[*key], record); err != nil {
				return err
			}
		case byFormerKey[*key] != nil:
			former[byFormerKey[*key]] = record
		default:
			p.orphans = append(p.orphans, record.Common().PK)
		}
	}
	return p.matchFormer(former)
}

// matchFormer renames the records of entries that are stored only under their former ids.
func (p *plan) matchFormer(former map[*applied]store.Record) (err error) {
	for i := range p.applied {
		a := &p.applied[i]
		record := former[a]
		switch {
		case a.Outcome == outcomePending && record != nil:
			err = p.compare(a, record)
		case a.Outcome == outcomePending:
			a.Outcome = outcomeCreate
			if a.Was != "" {
				a.reason = fmt.Sprintf("no record of %s has this id or %q", p.caller, a.Was)
			}
		case record != nil:
			p.orphans = append(p.orphans, record.Common().PK)
		}
		if err != nil {
			return err
		}
	}
	slices.Sort(p.orphans)
	return nil
}

// recordsOfCaller returns the records of the caller with their secrets.
func (p *plan) recordsOfCaller(ctx context.Context) iter.Seq2[store.Record, error] {
	return p.database.Opened(ctx, p.database.Providers(ctx, store.Filter{CreatedBy: p.caller}, 0))
}

// compare finds out what an entry changes in its record.
func (p *plan) compare(a *applied, record store.Record) error {
	requested, err := p.requested(a, record)
	if err != nil {
		return err
	}
	if a.Changes, err = p.diff(a.kind, record, requested); err != nil {
		return err
	}
	a.stored = storedOf(record)
	switch {
	case *record.Common().IdempotencyKey != idempotencyKey(a.Kind, a.ID):
		a.Outcome, a.reason = outcomeRename, fmt.Sprintf("was %q", a.Was)
	case len(a.Changes) > 0:
		a.Outcome = outcomeUpdate
	default:
		isAccepted, err := p.isAccepted(a, record)
		if err != nil {
			return err
		}
		a.Outcome = outcomeUnchanged
		if isAccepted {
			return nil
		}
		a.Outcome, a.reason = outcomeUpdate, "keeps the client_id and the secret that the entry omits"
	}
	if a.version, err = p.versionOf(record); err != nil {
		return err
	}
	if len(a.Changes) > 0 {
		a.Undo = Undo(a.PK, a.Changes)
	}
	return nil
}

// requested returns the record that an entry requests instead of a stored one, or of none.
func (p *plan) requested(a *applied, stored store.Record) (store.Record, error) {
	key := idempotencyKey(a.Kind, a.ID)
	return contract.Requested(store.Kind(a.Kind), &key, a.entry.Body, stored)
}

// versionOf returns a text that changes when the record is changed.
func (p *plan) versionOf(record store.Record) (string, error) {
	sum, err := p.fieldsDigest(record)
	return *record.Common().IdempotencyKey + sum, err
}

// fieldsDigest returns a digest of the fields that a request can set, except for the omitted ones.
func (p *plan) fieldsDigest(record store.Record, omitted ...string) (string, error) {
	kind, err := KindOf(record.Common().Kind)
	if err != nil {
		return "", err
	}
	fields, err := contract.Fields(record)
	if err != nil {
		return "", err
	}
	operation, _ := p.contract.Operation(kind.Operation)
	text := []byte(kind.Name)
	for _, name := range operation.FieldNames() {
		if !slices.Contains(omitted, name) {
			text = append(append(text, '\n'), fields[name]...)
		}
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}

func (p *plan) diff(kind Kind, before, after store.Record) ([]FieldDiff, error) {
	was, err := contract.Fields(before)
	if err != nil {
		return nil, err
	}
	is, err := contract.Fields(after)
	if err != nil {
		return nil, err
	}
	operation, _ := p.contract.Operation(kind.Operation)
	return Diff(operation.FieldNames(), kind.SecretField(), was, is), nil
}

// isAccepted reports whether the server takes the body of an entry for a retry of the create of its record.
func (p *plan) isAccepted(a *applied, record store.Record) (bool, error) {
	retried, err := p.requested(a, nil)
	if err != nil {
		return false, err
	}
	fields, err := store.Differing(record, retried)
	return len(fields) == 0, err
}

// storedOf returns what the output contains of a record.
func storedOf(record store.Record) stored {
	return stored{PK: record.Common().PK, ClientID: clientIDIn(record)}
}

// clientIDIn returns the client_id of a record; "" if it has none.
func clientIDIn(record store.Record) string {
	oauth2, _ := record.(store.OAuth2Provider)
	return oauth2.ClientID
}
