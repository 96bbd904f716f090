package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// checkTimeout limits Check.
	checkTimeout = 2 * time.Second
	// probeInterval is the least time between probes of the server.
	probeInterval = 500 * time.Millisecond
	// maxSteps is the largest gap that a sequence passes key by key, and stepsAtOnce how many of them a transaction takes:
	// a second or less.
	maxSteps    = 10_000_000
	stepsAtOnce = 250_000
)

// readiness is the result of the last probe.
type readiness struct {
	mutex    sync.Mutex
	known    time.Time
	prepared database.Prepared
	err      error
}

// Check returns an error unless the server stores rows now, or did within the last half second. A response alone is not
// enough, because a standby responds too, and so does a primary without its standbys. It takes at most checkTimeout.
func (d *Database) Check(ctx context.Context) error {
	r := &d.readiness
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if time.Since(r.known) < probeInterval {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	if r.err != nil {
		// Another server may have taken over since.
		r.prepared.Forget()
	}
	if r.err = d.probe(ctx); r.err == nil {
		r.err = r.prepared.Renew(func() error { return d.Prepare(ctx) })
	}
	r.known = time.Now()
	return r.err
}

// probe retries if the server is out of connections.
func (d *Database) probe(ctx context.Context) error {
	var tx *transaction
	err := retry(ctx, func() (again bool, err error) {
		tx, err = d.connection(ctx, d.writers)
		return hasCode(err, tooManyConnections), err
	})
	if err == nil {
		err = d.prove(ctx, tx)
	}
	if err == nil {
		err = d.probeInserts(ctx, tx)
	}
	return err
}

// insertProbe needs the same privileges and locks as a create, and writes as much as a large one if it has a secret, or
// else nothing. It names the columns, because operators may have added others.
const insertProbe = `INSERT INTO providers (uid, kind, name, created_at, created_by, request_id, remote_address, secret,
		generated, property_mappings, property_mappings_group, delegated_subject, scopes, exclude_users_service_account,
		user_delete_action, group_delete_action, default_group_email_domain)
	SELECT gen_random_uuid(), 'workspace_directory', '', now(), '', '', '', $1::bytea, 0, '[]', '[]', '', '', false,
		'delete', 'delete', '' WHERE $1 IS NOT NULL`

// probeInserts returns database.ErrUnavailable if creates cannot insert rows. It inserts none, or after a failure one
// that it rolls back.
func (d *Database) probeInserts(ctx context.Context, tx *transaction) error {
	var secret []byte
	if d.isInsertFailing.Load() {
		// Random bytes do not compress.
		secret = make([]byte, 64<<10)
		_, _ = rand.Read(secret)
	}
	_, err := tx.exchange(ctx, statement{text: beginStatement}, statement{text: "SET LOCAL lock_timeout = '500ms'"},
		statement{insertProbe, [][]byte{secret}})
	d.isInsertFailing.Store(err != nil)
	tx.rollBack(ctx)
	return database.Wrap("insert rows", unavailable(err))
}

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
	errPrepared := errors.New("nothing is behind")
	var err error
	for err == nil {
		err = d.transact(ctx, terms{beginStatement, transactTimeout, commitTimeout}, func(tx *gorm.DB) error {
			behind, err := check(tx)
			if err != nil {
				return err
			}
			if len(behind) == 0 {
				// Unlike a commit, it needs no standby.
				return errPrepared
			}
			_, err = d.advance(tx)
			return err
		})
	}
	if errors.Is(err, errPrepared) {
		return nil
	}
	return unwritten(err)
}

// advance moves the first sequence that is behind, and reports whether there was one. nextval never moves a sequence
// back, and needs no lock; setval could, while other servers insert.
func (d *Database) advance(tx *gorm.DB) (isBehind bool, err error) {
	if err := takeTurn(tx); err != nil {
		return false, err
	}
	behind, err := check(tx)
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

// firstMigration contains the CHECKs and the function of the trigger, as they must be.
//
//go:embed migrations/00001_schema.sql
var firstMigration string

// plain removes from an expression or a statement what servers and their settings write differently.
const plain = `'[()"[:space:]]|::"{0,1}text"{0,1}', '', 'g'`

// selectFaults selects what is missing of what keeps creates single, complete and in the log. It finds indexes by what
// they do, because REINDEX CONCURRENTLY gives them other names for a while. A newer program may have changed all of it.
const selectFaults = `WITH migration (text) AS (SELECT regexp_replace(@migration, ` + plain + `)),
	faults (fault) AS (
		SELECT format('table "%s" is unlogged', relname) FROM pg_class
			WHERE relpersistence <> 'p' AND oid IN (SELECT to_regclass(name) FROM string_to_table(@tables, ',') AS name)
		UNION ALL SELECT format('a valid unique index on providers (%s) is missing', columns)
			FROM (VALUES ('pk', ''), ('uid', ''), ('client_id', ''),
				('created_by, kind, idempotency_key', 'idempotency_keyISNOTNULL')) AS wanted (columns, predicate)
			WHERE NOT EXISTS (SELECT FROM pg_index i WHERE indrelid = to_regclass('providers')
				AND indisunique AND indisvalid AND indisready AND indimmediate
				AND to_jsonb(i) ->> 'indnullsnotdistinct' IS DISTINCT FROM 'true'
				AND coalesce(regexp_replace(pg_get_expr(indpred, indrelid), ` + plain + `), '') = predicate
				AND columns = (SELECT string_agg(coalesce(attname, 'expression'), ', ' ORDER BY place)
					FROM unnest(indkey) WITH ORDINALITY AS k (number, place)
					LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = number WHERE place <= indnkeyatts))
		UNION ALL SELECT 'trigger "providers_created" is missing, disabled or changed' FROM migration
			WHERE NOT EXISTS (SELECT FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid
				WHERE tgrelid = to_regclass('providers') AND tgname = 'providers_created' AND tgenabled = 'O'
				AND tgtype = 4 AND tgqual IS NULL AND translate(proconfig[1], '"', '') = (
					SELECT translate(format('search_path=%s, pg_temp', relnamespace::regnamespace), '"', '')
					FROM pg_class WHERE oid = tgrelid)
				AND strpos(text, '$$' || regexp_replace(prosrc, ` + plain + `) || '$$') > 0)
		UNION ALL SELECT 'the default of "providers"."pk" is missing or changed'
			WHERE NOT EXISTS (SELECT FROM pg_attrdef a
				JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid
				JOIN pg_sequence s ON s.seqrelid = d.refobjid AND seqincrement = 1 AND NOT seqcycle
				WHERE adrelid = to_regclass('providers')
				AND starts_with(regexp_replace(pg_get_expr(adbin, adrelid), ` + plain + `), 'nextval')
				AND s.seqrelid = pg_get_serial_sequence('providers', 'pk')::regclass)
		UNION ALL SELECT format('a CHECK of "providers" for the kind %s is missing or changed', kind)
			FROM migration, unnest(ARRAY['oauth2', 'workspace_directory']) AS kind
			WHERE NOT EXISTS (SELECT FROM pg_constraint,
					regexp_replace(pg_get_expr(conbin, conrelid), ` + plain + `) AS expression
				WHERE conrelid = to_regclass('providers') AND contype = 'c' AND convalidated
				AND starts_with(expression, format('kind<>%L', kind) || 'OR')
				AND (strpos(text, 'CHECK' || expression || ',') > 0 OR strpos(text, 'CHECK' || expression || ';') > 0))
	)
	SELECT fault FROM faults
	WHERE (SELECT max(version_id) FROM goose_db_version WHERE is_applied) = @version LIMIT 5`

// check returns the sequences that are behind, or database.ErrUnavailable for a faulty schema or an ended sequence.
func check(tx *gorm.DB) (behind []sequence, err error) {
	version, err := SchemaVersion()
	if err != nil {
		return nil, err
	}
	var faults []string
	err = tx.Raw(selectFaults, sql.Named("migration", firstMigration), sql.Named("version", version),
		sql.Named("tables", strings.Join(migratedTables(), ","))).Scan(&faults).Error
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	if err := database.SchemaError(faults); err != nil {
		return nil, err
	}
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
