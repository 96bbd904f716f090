package postgres

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"strings"

	"example.com/providerd/store/database"
)

// catalog is the result of selectObjects for an unmodified schema. Each line has a name, a tab and a definition.
//
//go:embed catalog.txt
var catalog string

// selectObjects selects the objects that affect the rows of tables, wherever these are on the search path, and the
// expected objects. It removes parentheses and casts from expressions, because server versions write them differently.
// It ignores not-null constraints, which exist only since version 18.
const selectObjects = `WITH tables AS (
		SELECT * FROM pg_class WHERE oid IN (SELECT to_regclass(name) FROM string_to_table(@tables, E'\n') AS name)
	), objects (name, definition, decides) AS (
		SELECT format('table "%s"', t.relname), concat_ws(' ', t.relkind, t.relpersistence,
				CASE WHEN t.relrowsecurity THEN 'row security' END,
				CASE WHEN EXISTS (SELECT FROM pg_inherits h WHERE t.oid IN (h.inhparent, h.inhrelid)) THEN 'inherited' END,
				CASE WHEN EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.oid AND g.tgisinternal AND g.tgenabled <> 'O')
					THEN 'triggers disabled' END), true
			FROM tables t
		UNION ALL SELECT format('column "%s"."%s"', t.relname, a.attname),
				concat_ws(' ', format_type(a.atttypid, a.atttypmod),
				CASE WHEN a.attnotnull THEN 'not null' END, CASE WHEN a.atthasdef THEN 'default' END,
				nullif(format('identity %s', a.attidentity), 'identity '),
				nullif(format('generated %s', a.attgenerated), 'generated '),
				CASE WHEN c.collname <> 'default' THEN 'collate ' || c.collname END), true
			FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid LEFT JOIN pg_collation c ON c.oid = a.attcollation
			WHERE a.attnum > 0 AND NOT a.attisdropped
		UNION ALL SELECT format('sequence "%s"', c.relname), concat_ws(' ', t.relname, format_type(s.seqtypid, NULL),
				s.seqincrement, s.seqmin, s.seqmax, CASE WHEN s.seqcycle THEN 'cycle' END), true
			FROM tables t JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid
			JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid JOIN pg_sequence s ON s.seqrelid = c.oid
		UNION ALL SELECT format('constraint "%s" of "%s"', c.conname, t.relname), concat_ws(' ', c.contype,
				CASE WHEN c.condeferrable THEN 'deferrable' END, CASE WHEN NOT c.convalidated THEN 'not validated' END,
				(SELECT string_agg(a.attname, ', ' ORDER BY k.place) FROM unnest(c.conkey) WITH ORDINALITY AS k(number, place)
					JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number),
				f.relname, (SELECT string_agg(a.attname, ', ' ORDER BY k.place)
					FROM unnest(c.confkey) WITH ORDINALITY AS k(number, place)
					JOIN pg_attribute a ON a.attrelid = f.oid AND a.attnum = k.number),
				CASE WHEN f.oid IS NOT NULL THEN format('update %s delete %s', c.confupdtype, c.confdeltype) END,
				regexp_replace(pg_get_expr(c.conbin, t.oid), '[() ]|::text', '', 'g')), true
			FROM tables t JOIN pg_constraint c ON c.conrelid = t.oid LEFT JOIN pg_class f ON f.oid = c.confrelid
			WHERE c.contype <> 'n'
		UNION ALL SELECT format('index "%s"', c.relname), concat_ws(' ', CASE WHEN i.indisunique THEN 'unique' END, t.relname,
				CASE WHEN NOT i.indisvalid THEN 'invalid' END, CASE WHEN NOT i.indimmediate THEN 'deferred' END,
				CASE WHEN to_jsonb(i) ->> 'indnullsnotdistinct' = 'true' THEN 'nulls not distinct' END,
				(SELECT string_agg(coalesce(a.attname, 'expression'), ', ' ORDER BY k.place)
					FROM unnest(i.indkey) WITH ORDINALITY AS k(number, place)
					LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number
					WHERE k.place <= i.indnkeyatts),
				'where ' || regexp_replace(pg_get_expr(i.indpred, t.oid), '[() ]|::text', '', 'g')),
				i.indisunique AND i.indisvalid
			FROM tables t JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class c ON c.oid = i.indexrelid
		UNION ALL SELECT format('trigger "%s" of "%s"', g.tgname, t.relname), 'enabled ' || g.tgenabled::text, true
			FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
		UNION ALL SELECT format('rule "%s" of "%s"', r.rulename, t.relname), '', true
			FROM tables t JOIN pg_rewrite r ON r.ev_class = t.oid
	)
	SELECT name, definition FROM objects
	WHERE @expected = '' OR decides OR name = ANY (string_to_array(@expected, E'\n'))
	ORDER BY name = ANY (string_to_array(@expected, E'\n')) DESC, name LIMIT 1000`

// Drift describes how the tables differ from those that the migrations of this program create. It lists the first few
// differences. An additional index counts only if it is unique. It returns database.ErrUnavailable.
func (v *View) Drift(ctx context.Context) ([]string, error) {
	expected, err := migratedObjects()
	if err != nil {
		return nil, err
	}
	found, err := v.objects(ctx, expected.Names())
	if err != nil {
		return nil, err
	}
	return expected.Drift(found), nil
}

func migratedObjects() (database.Objects, error) {
	objects := database.Objects{}
	for line := range strings.Lines(catalog) {
		name, definition, isObject := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !isObject {
			return nil, fmt.Errorf("parse catalog.txt: %q", line)
		}
		objects[name] = definition
	}
	return objects, nil
}

// objects returns the objects of the migrated tables that affect rows or have one of the names. If names is nil, it
// returns all objects.
func (v *View) objects(ctx context.Context, names []string) (database.Objects, error) {
	tables, err := migratedTables()
	if err != nil {
		return nil, err
	}
	return database.ReadObjects(v.Reader().WithContext(ctx).Raw(selectObjects,
		sql.Named("tables", strings.Join(tables, "\n")), sql.Named("expected", strings.Join(names, "\n"))))
}
