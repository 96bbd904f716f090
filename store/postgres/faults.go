package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// firstMigration contains the CHECKs and the function of the trigger, as they must be.
const firstMigration = "migrations/00001_schema.sql"

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

// check returns the sequences that are behind. It returns database.ErrUnavailable if the schema has faults, or a
// sequence is at its end.
func check(tx *gorm.DB) (behind []sequence, err error) {
	migration, err := migrations.ReadFile(firstMigration)
	version, versionErr := SchemaVersion()
	if err = cmp.Or(err, versionErr); err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	var faults []string
	err = tx.Raw(selectFaults, sql.Named("migration", string(migration)), sql.Named("version", version),
		sql.Named("tables", strings.Join(migratedTables(), ","))).Scan(&faults).Error
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	if err := database.SchemaError(faults); err != nil {
		return nil, err
	}
	return readSequences(tx)
}

// Check reports whether Prepare has sequences to move, and returns its errors.
func (v *View) Check(ctx context.Context) (isBehind bool, err error) {
	behind, err := check(v.Reader().WithContext(ctx))
	return len(behind) > 0, err
}
