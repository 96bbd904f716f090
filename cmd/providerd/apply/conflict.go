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
	freed := map[int64]bool{}
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
			p.refuseHeld(ctx, a, holder)
			delete(holders, a)
			isStable = isStable && !freed[a.PK]
			freed[a.PK] = false
		}
	}
	return nil
}

// holders returns the pks of the records that have the client_ids that entries would get.
func (p *plan) holders(ctx context.Context, freed map[int64]bool) (map[*applied]int64, error) {
	holders := map[*applied]int64{}
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

// refuseHeld records that another record has the client_id and, if it is not one of the caller, whose it is.
func (p *plan) refuseHeld(ctx context.Context, a *applied, holder int64) {
	a.Outcome, a.pointer, a.isClientIDTaken = outcomeRefused, "/client_id", true
	title := fmt.Sprintf("provider %d", holder)
	if record, err := p.database.Provider(ctx, holder); err == nil && record.Common().CreatedBy != p.caller {
		title += " of " + record.Common().CreatedBy
	}
	a.reason = "client_id taken by " + title
	taken := "`client_id` is taken by " + title
	if a.Detail != "" {
		taken += "; the entry " + a.Detail
	}
	a.Detail = taken
	a.version, a.Changes, a.Undo = "", nil, ""
}

// requestedClientID returns the client_id of an entry or, if the entry omits it, of the stored record.
func (a *applied) requestedClientID() string { return cmp.Or(clientIDOf(a.entry), a.ClientID) }
