package apply

import (
	"fmt"
	"slices"
	"strings"

	"example.com/providerd/store"
)

// refuseTaken refuses entries whose client_id another record has, unless that record is changed or deleted, too.
func (p *plan) refuseTaken() {
	freed := map[int64]bool{}
	for _, a := range p.applied {
		freed[a.PK] = a.Outcome == outcomeDelete || a.Outcome.isChange() && a.clientID != "" && a.clientID != a.ClientID
	}
	for isStable := false; !isStable; {
		isStable = true
		for i := range p.entries {
			a := &p.entries[i]
			holder, isTaken := p.found.holders[a.clientID]
			if a.Outcome.isChange() && isTaken && holder.PK != a.PK && !freed[holder.PK] {
				isStable, freed[a.PK] = false, false
				p.refuseHeld(a, holder)
			}
		}
	}
}

// refuseHeld records that another record has the client_id. Of the id that it was applied with, only a hash is stored.
func (p *plan) refuseHeld(a *applied, holder store.Identity) {
	a.Outcome, a.Changes, a.Undo, a.Position = outcomeRefused, nil, "", a.At("/client_id")
	a.Detail = fmt.Sprintf("`client_id` is taken by provider %d of %s", holder.PK, holder.CreatedBy)
	if a.PK != 0 || p.Adopt {
		return
	}
	a.Detail += "; pass --adopt to take it over"
	usual := []string{holder.Name, strings.ToLower(holder.Name), a.clientID, fmt.Sprintf("%s-%d", a.Kind, holder.PK)}
	isFormer := func(id string) bool { return p.isStoredUnder(a, id, holder.IdempotencyKey, holder.CreatedBy) }
	if i := slices.IndexFunc(usual, isFormer); i >= 0 {
		a.Detail += fmt.Sprintf("; if the entry was renamed, write was: %q", usual[i])
	}
}
