package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// maxSteps is the largest gap that a sequence passes key by key, and stepsAtOnce how many of them a transaction takes:
	// a second or less.
	maxSteps    = 10_000_000
	stepsAtOnce = 250_000
)

// selectSequences selects the sequences that are behind the keys in use, or at their end. Logical replication and COPY
// add rows without moving them. The events contain the pks of deleted providers.
const selectSequences = `SELECT name, relname AS sequence, oid AS id, last, largest, seqmax AS max
	FROM (VALUES (1, 'providers', 'pk', greatest((SELECT max(pk) FROM providers),
			(SELECT max(subject) FROM events WHERE event = 'provider deleted'))),
		(2, 'applications', 'id', (SELECT max(id) FROM applications)),
		(3, 'tokens', 'id', (SELECT max(id) FROM tokens)),
		(4, 'events', 'id', (SELECT max(id) FROM events)),
		(5, 'goose_db_version', 'id', (SELECT max(id) FROM goose_db_version))) AS keys (place, name, key, largest),
		pg_get_serial_sequence(name, key) AS sequence, coalesce(pg_sequence_last_value(sequence::regclass), 0) AS last,
		pg_sequence JOIN pg_class ON oid = seqrelid
	WHERE oid = sequence::regclass AND (last < largest OR last >= seqmax) ORDER BY place`

// sequence is a row of selectSequences.
type sequence struct {
	Name, Sequence     string
	ID                 uint32
	Last, Largest, Max int64
}

// readSequences returns the sequences that are behind. It returns database.ErrUnavailable if one is at its end.
func readSequences(tx *gorm.DB) (behind []sequence, err error) {
	if err := tx.Raw(selectSequences).Scan(&behind).Error; err != nil {
		return nil, fmt.Errorf("read the sequences: %w", err)
	}
	for _, s := range behind {
		if max(s.Last, s.Largest) >= s.Max {
			return nil, fmt.Errorf("%w: sequence %s is at its end, %d, so no row can be added to table %s; use ALTER SEQUENCE "+
				"to restore the MAXVALUE that the migrations set, or restore a backup", database.ErrUnavailable, s.Sequence, s.Max,
				s.Name)
		}
	}
	return behind, nil
}

// NewPKs takes pks from their sequence.
func (*Database) NewPKs(tx *gorm.DB, count int) (pks []int64, err error) {
	const query = "SELECT nextval(pg_get_serial_sequence('providers', 'pk')) FROM generate_series(1, ?)"
	err = tx.Raw(query, count).Scan(&pks).Error
	return pks, err
}

// Prepare moves sequences that are behind, once for all concurrent calls and servers.
func (d *Database) Prepare(ctx context.Context) error {
	ended := d.preparing.DoChan("", func() (any, error) { return nil, d.prepare(context.WithoutCancel(ctx)) })
	select {
	case result := <-ended:
		return result.Err
	case <-ctx.Done():
		return fmt.Errorf("%w: check the schema and the sequences: %w", database.ErrUnavailable, ctx.Err())
	}
}

func (d *Database) prepare(ctx context.Context) error {
	var behind []sequence
	err := d.inspect(ctx, func(tx *gorm.DB) (err error) {
		behind, err = check(tx)
		return err
	})
	for isBehind := len(behind) > 0; isBehind && err == nil; {
		err = d.change(ctx, func(tx *gorm.DB) (err error) {
			isBehind, err = d.advance(tx)
			return err
		})
	}
	if errors.Is(err, database.ErrOutcomeUnknown) {
		// No rows were written.
		err = fmt.Errorf("%w: %s", database.ErrUnavailable, err.Error())
	}
	return err
}

// advance moves the first sequence that is behind, and reports whether there was one. nextval never moves a sequence
// back, and needs no lock; setval could, while other servers insert.
func (d *Database) advance(tx *gorm.DB) (isBehind bool, err error) {
	behind, err := readSequences(tx)
	if err != nil || len(behind) == 0 {
		return false, err
	}
	s := behind[0]
	gap := s.Largest - s.Last
	if gap > maxSteps {
		err = errors.Join(tx.Exec("LOCK TABLE "+s.Name+" IN SHARE ROW EXCLUSIVE MODE").Error,
			tx.Exec("SELECT setval(?::oid, greatest(?, pg_sequence_last_value(?::oid)))", s.ID, s.Largest, s.ID).Error)
	} else {
		err = tx.Exec("SELECT max(nextval(?::oid)) FROM generate_series(1, ?)", s.ID, min(gap, stepsAtOnce)).Error
	}
	if err != nil {
		return false, fmt.Errorf("move sequence %s: %w", s.Sequence, err)
	}
	if gap > maxSteps || gap <= stepsAtOnce {
		d.logger.Warn("moved a sequence that was behind the keys in its table, because another program has copied rows",
			slog.String("table", s.Name), slog.Int64("from", s.Last), slog.Int64("to", s.Largest))
	}
	return true, nil
}
