package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"example.com/providerd/store"
)

// refuseTaken refuses entries whose client_id another record has, unless that record is changed or deleted first.
func (p *plan) refuseTaken(ctx context.Context) error {
	freed := map[int32]bool{}
	for _, a := range p.applied {
		freed[a.PK] = a.version != "" && (a.Outcome == outcomeDelete || a.requestedClientID() != a.ClientID)
	}
	holders, err := p.holders(ctx, freed)
	if err != nil {
		return err
	}
	for isStable := false; !isStable; {
		isStable = true
		for a, holder := range holders {
			if freed[holder] {
				continue
			}
			a.refuseTaken(holder)
			delete(holders, a)
			isStable = isStable && !freed[a.PK]
			freed[a.PK] = false
		}
	}
	return nil
}

// holders returns the pks of the records that have the client_ids that entries would get.
func (p *plan) holders(ctx context.Context, freed map[int32]bool) (map[*applied]int32, error) {
	holders := map[*applied]int32{}
	for i := range p.applied {
		a := &p.applied[i]
		clientID := clientIDOf(a.entry)
		if clientID == "" || a.Outcome != outcomeCreate && !freed[a.PK] {
			continue
		}
		holder, err := p.database.PKOfClientID(ctx, clientID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		holders[a] = holder
	}
	return holders, nil
}

// refuseTaken records that another record has the client_id.
func (a *applied) refuseTaken(holder int32) {
	a.Outcome, a.pointer, a.isClientIDTaken = outcomeRefused, "/client_id", true
	a.reason = fmt.Sprintf("client_id taken by provider %d", holder)
	taken := fmt.Sprintf("`client_id` is taken by provider %d", holder)
	if a.Detail != "" {
		taken += "; the entry " + a.Detail
	}
	a.Detail = taken
	a.version, a.Changes, a.Undo = "", nil, ""
}

// requestedClientID returns the client_id of an entry or, if the entry omits it, of the stored record.
func (a *applied) requestedClientID() string { return cmp.Or(clientIDOf(a.entry), a.ClientID) }
