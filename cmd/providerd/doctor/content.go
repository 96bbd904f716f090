package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
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
	// tokenNotice is how long before their last token ends callers are warned of.
	tokenNotice = 14 * flags.Day
	// oldKey is the age at which a key is to be followed by another.
	oldKey = 365 * flags.Day
	// fewPKs are so few that creates may end before anybody has thought of it.
	fewPKs = 10_000_000
	// shownCallers are how many are named.
	shownCallers = 5
)

// checkContent looks at what is in a database.
func checkContent(ctx context.Context, view database.View, keyset string) []finding {
	schema, isReadable := checkSchema(ctx, view)
	found := []finding{schema}
	if !isReadable {
		return append(found, checkKeysetAlone(keyset)...)
	}
	inspection := store.Inspect(view)
	found = append(found, checkKeyset(ctx, inspection, keyset)...)
	found = append(found, checkTokens(ctx, inspection), checkPKs(ctx, inspection))
	newest, err := inspection.Newest(ctx)
	if err != nil {
		return append(found, failedBy(checkOfClock, err))
	}
	return append(found, checkClockOfRecords(newest))
}

// checkSchema tells whether this program can read the tables, too.
func checkSchema(ctx context.Context, view database.View) (found finding, isReadable bool) {
	const check = "schema"
	schema, err := view.Schema(ctx)
	if err == nil {
		err = schema.Check()
	}
	switch {
	case errors.Is(err, database.ErrOlder) && schema.Level > 0:
		return failedBy(check, err).but(healthWarn,
			`"providerd serve" migrates it when it starts, and "providerd migrate" before`), true
	case err != nil:
		return failedBy(check, err), false
	case schema.Level > schema.Program():
		return passed(check, "it has level %d, which this program of level %d can use", schema.Level, schema.Program()), true
	}
	drift, err := view.Drift(ctx)
	switch {
	case err != nil:
		return failedBy(check, err), true
	case len(drift) > 0:
		return failed(check, "undo what another program has done, or put a backup in place of the database",
			"it has level %d, but not as this program makes it: %s", schema.Level, strings.Join(drift, ", ")), true
	default:
		return passed(check, "it has level %d, as this program", schema.Level), true
	}
}

// checkKeyset compares the keyset with the database, and opens every secret. That none is named for a database that
// needs it, checkConfiguration finds.
func checkKeyset(ctx context.Context, inspection store.Inspection, path string) []finding {
	if path == "" {
		return nil
	}
	keys, err := inspection.Keys(ctx, path)
	if errors.Is(err, database.ErrOlder) {
		return []finding{warned(checkOfKeyset, `"providerd serve" gives it that of --keyset`, "the database has none yet")}
	}
	if err != nil {
		return []finding{failedBy(checkOfKeyset, err)}
	}
	found := []finding{
		passed(checkOfKeyset, "%s is that of the database, and has %s", path, console.Count(len(keys.IDs()), "key")),
	}
	found = append(found, checkSecretsOpen(ctx, inspection, keys)...)
	return append(found, checkKeyAge(ctx, inspection, keys))
}

func checkSecretsOpen(ctx context.Context, inspection store.Inspection, keys *seal.Keys) (found []finding) {
	const check = "secrets"
	secrets, err := inspection.Secrets(ctx, keys)
	if err != nil {
		return []finding{failedBy(check, err)}
	}
	for _, id := range slices.Sorted(maps.Keys(secrets.Lacking)) {
		remedy := "put the newest keyset of this database in its place"
		if kept := keys.RetiredTo(id); kept != "" {
			remedy = fmt.Sprintf("put %s in its place, or name it with --keyset", kept)
		}
		found = append(found, failed(check, remedy, "%d of %d are encrypted with %s, which the keyset lacks",
			secrets.Lacking[id], secrets.Total, keys.Describe(id)))
	}
	if secrets.Altered > 0 {
		found = append(found, failed(check, `put a backup in place of the database, or delete those providers and create `+
			`them again; "providerd provider list" names each`,
			"%d of %d cannot be opened, such as that of %v", secrets.Altered, secrets.Total, secrets.Example))
	}
	if len(found) == 0 {
		found = append(found, passed(check, "the keyset opens all %d", secrets.Total))
	}
	return found
}

func checkKeyAge(ctx context.Context, inspection store.Inspection, keys *seal.Keys) finding {
	const check = "key age"
	ids := keys.IDs()
	newest := ids[len(ids)-1]
	made, err := inspection.KeyMade(ctx, newest)
	switch {
	case err != nil:
		return failedBy(check, err)
	case made.IsZero():
		return passed(check, "the database does not tell when key %d was made", newest)
	case time.Since(made) > oldKey:
		return warned(check, `run "providerd key rotate", then "providerd key reseal"`,
			"the newest key, %d, is from %s", newest, console.Timestamp(made))
	default:
		return passed(check, "the newest key, %d, is from %s", newest, console.Timestamp(made))
	}
}

// checkPKs tells whether creates can go on: a pk that was given is not given again.
func checkPKs(ctx context.Context, inspection store.Inspection) finding {
	const check = "pks"
	largest, err := inspection.LargestPK(ctx)
	if err != nil {
		return failedBy(check, err)
	}
	switch left := math.MaxInt32 - int64(largest); {
	case left == 0:
		return failed(check, "name a new database for what is created from now on",
			"the largest is given, and no create is stored")
	case left < fewPKs:
		return warned(check, "plan to name a new database for creates to come", "%d are left", left)
	default:
		return passed(check, "%d are left", left)
	}
}

func checkTokens(ctx context.Context, inspection store.Inspection) finding {
	const check, remedy = "tokens", `"providerd token create" makes one`
	now := time.Now()
	exist, err := inspection.HasActiveTokens(ctx, now)
	if err != nil {
		return failedBy(check, err)
	}
	if !exist {
		return warned(check, remedy, "none is accepted, so that nobody can create anything")
	}
	callers, err := inspection.Expiring(ctx, now, now.Add(tokenNotice), shownCallers+1)
	switch {
	case err != nil:
		return failedBy(check, err)
	case len(callers) > shownCallers:
		callers[shownCallers] = "others"
		fallthrough
	case len(callers) > 0:
		return warned(check, remedy+" of the same name", "those of these callers end before %s: %s",
			console.Timestamp(now.Add(tokenNotice)), strings.Join(callers, ", "))
	default:
		return passed(check, "each caller has one for more than 14 days")
	}
}

// checkKeysetAlone looks at the keyset of a database that cannot be read. That none is named for one that needs it,
// checkConfiguration finds.
func checkKeysetAlone(path string) []finding {
	if path == "" {
		return nil
	}
	if _, err := seal.OpenKeyring(path); err != nil {
		return []finding{failedBy(checkOfKeyset, err)}
	}
	return nil
}
