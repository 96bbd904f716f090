package apply

import (
	"context"
	"fmt"
	"slices"

	"example.com/providerd/store"
)

// findSimilar names the records that no entry names and that look like an entry that would be created: they have the
// same client_id or, if the entry omits it, the same other fields.
func (p *plan) findSimilar(ctx context.Context) error {
	created := map[string]*applied{}
	for i := range p.applied {
		if a := &p.applied[i]; a.Outcome == outcomeCreate {
			requested, err := p.requested(a, nil)
			if err != nil {
				return err
			}
			likeness, err := p.likeness(requested, clientIDOf(a.entry))
			if err != nil {
				return err
			}
			created[likeness] = a
		}
	}
	if len(created) == 0 || len(p.orphans) == 0 {
		return nil
	}
	for record, err := range p.recordsOfCaller(ctx) {
		if err != nil {
			return err
		}
		if _, isOrphan := slices.BinarySearch(p.orphans, record.Common().PK); !isOrphan {
			continue
		}
		if err := p.nameSimilar(created, record); err != nil {
			return err
		}
	}
	return nil
}

// nameSimilar says that an entry looks like a record.
func (p *plan) nameSimilar(created map[string]*applied, record store.Record) error {
	for _, clientID := range []string{clientIDIn(record), ""} {
		likeness, err := p.likeness(record, clientID)
		if err != nil {
			return err
		}
		if a := created[likeness]; a != nil && a.Detail == "" {
			a.Detail = fmt.Sprintf("looks like provider %d, which another id created; if you changed the id, "+
				"add `was` with the old one", record.Common().PK)
		}
	}
	return nil
}

// likeness returns what similar records have in common: the client_id or, if it is "", the fields that are not
// generated.
func (p *plan) likeness(record store.Record, clientID string) (string, error) {
	if clientID != "" {
		return "client_id " + clientID, nil
	}
	return p.fieldsDigest(record, "client_id", "client_secret")
}
