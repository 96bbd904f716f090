package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// watchInterval is how often heartbeats are checked.
const watchInterval = 500 * time.Millisecond

// demand is what each live replica must have reported about a key.
type demand struct {
	key   uint32
	isMet func(row replicaRow) bool
	// refusal is the error if one has not, and remedy what to do.
	refusal error
	remedy  string
}

// hasKey demands that each replica has the key.
func hasKey(key uint32) demand {
	return demand{
		key: key, refusal: ErrReplicaLacksKey, remedy: "copy the keyset file to it",
		isMet: func(row replicaRow) bool { return slices.Contains(row.Keys, key) },
	}
}

// sealsWith demands that each replica seals with the key.
func sealsWith(key uint32) demand {
	return demand{
		key: key, refusal: ErrReplicaNotPromoted, remedy: "copy the keyset file, and this version of providerd, to it",
		isMet: func(row replicaRow) bool {
			return len(row.Keys) > 0 && row.Keys[0] == key && slices.Contains(row.Keys[1:], key)
		},
	}
}

func (d demand) refuse(names []string) error {
	return fmt.Errorf("%w %d: %s; %s", d.refusal, d.key, strings.Join(names, "; "), d.remedy)
}

// behind returns the replicas that do not meet the demand.
func (d demand) behind(tx *gorm.DB) ([]replicaRow, error) {
	var rows []replicaRow
	if err := tx.Order("name").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read replicas: %w", err)
	}
	return slices.DeleteFunc(rows, d.isMet), nil
}

// await waits until each replica meets the demand or has sent no heartbeat for deathTime. It returns the last
// heartbeats of the dead replicas, or the refusal if one is live.
func (d demand) await(ctx context.Context, db database.Database) (dead map[string]int64, err error) {
	first, begun := map[string]int64{}, time.Now()
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		rows, err := d.behind(db.Reader().WithContext(ctx))
		if err != nil {
			return nil, err
		}
		var live []string
		for _, row := range rows {
			before, known := first[row.ID]
			if !known {
				first[row.ID] = row.Beat
			}
			if known && before != row.Beat {
				live = append(live, row.Name)
			}
		}
		if len(live) > 0 {
			return nil, d.refuse(live)
		}
		if len(rows) == 0 || time.Since(begun) > deathTime {
			return first, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for heartbeats: %w", ctx.Err())
		}
	}
}

// removeDead removes the dead replicas behind the demand. It refuses if another one has joined since await.
func (d demand) removeDead(tx *gorm.DB, dead map[string]int64) error {
	rows, err := d.behind(tx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if beat, ok := dead[row.ID]; !ok || beat != row.Beat {
			return d.refuse([]string{row.Name})
		}
		if err := tx.Delete(&row).Error; err != nil {
			return fmt.Errorf("remove a dead replica: %w", err)
		}
	}
	return nil
}
