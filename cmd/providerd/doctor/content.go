package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

const (
	checkOfKeyset = "keyset"
	// tokenNotice is how long before the expiry of its last token a caller is warned of.
	tokenNotice = 14 * flags.Day
	// shownCallers is how many callers are listed.
	shownCallers = 5
)

// checkContent checks what is in a database.
func checkContent(ctx context.Context, view database.View, keyset string) []finding {
	schema, isReadable := checkSchema(ctx, view)
	found := []finding{schema}
	if !isReadable {
		return append(found, checkKeysetAlone(keyset)...)
	}
	inspection := store.Inspect(view)
	found = append(found, checkKeyset(ctx, inspection, keyset)...)
	return append(found, checkTokens(ctx, inspection))
}

// checkSchema also reports whether this program can read the tables.
func checkSchema(ctx context.Context, view database.View) (found finding, isReadable bool) {
	const check = "schema"
	schema, err := view.Schema(ctx)
	if err == nil {
		err = schema.Check()
	}
	switch {
	case errors.Is(err, database.ErrOlder) && schema.Version > 0:
		return failedBy(check, err).as(healthWarn,
			`"providerd serve" migrates it at startup, "providerd migrate" at once`), true
	case err != nil:
		return failedBy(check, err), false
	case schema.Version > schema.ProgramVersion():
		return passed(check, "schema version %d is newer than this program's %d, but compatible",
			schema.Version, schema.ProgramVersion()), true
	}
	drift, err := view.Drift(ctx)
	switch {
	case err != nil:
		return failedBy(check, err), true
	case len(drift) > 0:
		return failed(check, "undo what another program has changed, or restore a backup",
			"schema version %d differs from what this program creates: %s", schema.Version, strings.Join(drift, ", ")), true
	default:
		return passed(check, "schema version is %d, the same as this program's", schema.Version), true
	}
}

// checkKeyset compares the keyset with the database, and reads every provider with its secret. checkConfiguration finds
// a missing --keyset.
func checkKeyset(ctx context.Context, inspection store.Inspection, path string) []finding {
	if path == "" {
		return nil
	}
	keys, err := inspection.Keys(ctx, path)
	if errors.Is(err, database.ErrOlder) {
		return []finding{warned(checkOfKeyset, `"providerd serve" creates them`, "the database has no data keys yet")}
	}
	if err != nil {
		return []finding{failedBy(checkOfKeyset, err)}
	}
	return []finding{
		passed(checkOfKeyset, "%s opens %s of the database", path, console.Count(len(keys.IDs()), "data key")),
		checkRecords(ctx, inspection, path),
	}
}

func checkRecords(ctx context.Context, inspection store.Inspection, path string) finding {
	const check = "records"
	total, err := inspection.Providers(ctx, path, func(_, _ int64) {})
	if damaged, ok := errors.AsType[*store.DamagedError](err); ok {
		return failed(check, `restore a backup, or delete those providers and create them again; `+
			`"providerd provider list --advice" names them`,
			"%d of %d providers cannot be read, such as %v", damaged.Damaged, damaged.Total, damaged.First[0])
	}
	if err != nil {
		return failedBy(check, err)
	}
	return passed(check, "all providers can be read, with their secrets (%d)", total)
}

func checkTokens(ctx context.Context, inspection store.Inspection) finding {
	const check, remedy = "tokens", `run "providerd token create"`
	now := time.Now()
	exist, err := inspection.HasActiveTokens(ctx, now)
	if err != nil {
		return failedBy(check, err)
	}
	if !exist {
		return warned(check, remedy, "no token is valid, so nobody can create anything")
	}
	callers, err := inspection.Expiring(ctx, now, now.Add(tokenNotice), shownCallers+1)
	switch {
	case err != nil:
		return failedBy(check, err)
	case len(callers) > shownCallers:
		callers[shownCallers] = "others"
		fallthrough
	case len(callers) > 0:
		return warned(check, `run "providerd token renew" with the ids of their newest tokens`,
			"the tokens of these callers expire before %s: %s", console.Timestamp(now.Add(tokenNotice)),
			strings.Join(callers, ", "))
	default:
		return passed(check, "each caller with a valid token has one for more than 14 days")
	}
}

// checkKeysetAlone checks the keyset of a database that cannot be read. checkConfiguration finds a missing --keyset.
func checkKeysetAlone(path string) []finding {
	if path == "" {
		return nil
	}
	if _, err := seal.ReadMasterKeys(path); err != nil {
		return []finding{failedBy(checkOfKeyset, err)}
	}
	return nil
}
