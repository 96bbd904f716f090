package sqlite_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store/database"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// A server refuses to start, and is not ready, without what keeps creates single and in the log, or with a trigger of
// another program.
func TestSchemaFaults(t *testing.T) {
	t.Parallel()
	const dropIndex, noIndex = "DROP INDEX providers_idempotency_key; ", `index "providers_idempotency_key" is missing`
	const dropTrigger = "DROP TRIGGER providers_created; "
	for name, test := range map[string]struct{ statement, want string }{
		"nothing":           {"SELECT 1", ""},
		"index for reports": {"CREATE INDEX reports ON providers (name)", ""},
		"added column":      {"ALTER TABLE providers ADD COLUMN owner TEXT", ""},
		"missing index":     {dropIndex, noIndex},
		"not unique":        {dropIndex + "CREATE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key) WHERE idempotency_key IS NOT NULL", noIndex},
		"index of all rows": {dropIndex + "CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key)", noIndex},
		"index of no row":   {dropIndex + "CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key) WHERE idempotency_key = 'x'", noIndex},
		"other columns":     {dropIndex + "CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, idempotency_key) WHERE idempotency_key IS NOT NULL", noIndex},
		"same index":        {dropIndex + "CREATE UNIQUE INDEX other ON providers(created_by,kind,idempotency_key) WHERE idempotency_key IS NOT NULL", ""},
		"missing trigger":   {dropTrigger, `trigger "providers_created" is missing`},
		"changed trigger":   {dropTrigger + "CREATE TRIGGER providers_created AFTER INSERT ON providers BEGIN SELECT 1; END", `trigger "providers_created" was changed`},
		"added trigger":     {"CREATE TRIGGER forgetting BEFORE INSERT ON Providers BEGIN SELECT RAISE(IGNORE); END", `trigger "forgetting" was added`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			running := processtest.Try(storetest.CreateSQLite(t.Context(), path, "")).Must(t)
			storetest.Execute(t, path, test.statement)
			ready := running.Ready(t.Context())
			processtest.Must(t, running.Close())
			again, opening := storetest.CreateSQLite(t.Context(), path, "")
			if opening == nil {
				opening = again.Close()
			}
			for what, err := range map[string]error{"readiness": ready, "start": opening} {
				if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, database.ErrUnavailable) ||
					!strings.HasSuffix(err.Error(), ": "+test.want+"; undo what another program has changed")) {
					t.Errorf("%s: error is %v, want %q", what, err, test.want)
				}
			}
		})
	}
}
