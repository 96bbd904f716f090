package command

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/seal"
)

func (f *findings) openPostgreSQL(ctx context.Context, url flags.DatabaseURL, keyset string) (database.View, error) {
	f.keysetFile(keyset, userOf(keyset))
	ctx, cancel := context.WithTimeout(ctx, postgresTimeout)
	defer cancel()
	view, err := postgres.OpenReadOnly(ctx, url.Postgres())
	if err != nil {
		return nil, err
	}
	f.ok(databaseFlag, "connected to %s", url.Postgres())
	faults, err := view.Faults(ctx)
	safeguards, safeguardsErr := view.Safeguards(ctx)
	if err = cmp.Or(err, safeguardsErr); err != nil {
		faults = append(faults, err)
	}
	for _, fault := range faults {
		f.err("settings", fault)
	}
	if len(faults) == 0 {
		f.ok("settings", "the server accepts writes, and acknowledged commits are durable")
	}
	if err == nil {
		f.safeguards(safeguards)
	}
	return view, nil
}

func (f *findings) safeguards(safeguards postgres.Safeguards) {
	const standbys, archive, connections, needed = "standbys", "archive", "connections", postgres.MaxConnectionsPerReplica
	if safeguards.Standbys == "" {
		f.warn(standbys, "synchronous_standby_names is empty: a failover loses commits that no standby has received; "+
			"run a synchronous standby and list it there")
	} else {
		f.ok(standbys, "commits wait for %s", safeguards.Standbys)
	}
	switch {
	case safeguards.Archiving == "off":
		f.warn(archive, "archive_mode is off: without a WAL archive, everything since the last backup can be lost; "+
			"set it to on, with an archive_command such as pgBackRest's")
	case !safeguards.HasArchive:
		f.warn(archive, "archive_command is empty: nothing is archived, and WAL accumulates; set it or archive_library")
	case safeguards.IsArchiveFailing:
		f.fail(archive, "archive_command fails, and WAL accumulates; see PostgreSQL's log")
	default:
		f.ok(archive, "the WAL is archived")
	}
	if allowed := safeguards.MaxConnections; allowed < needed {
		f.warn(connections, "a replica may open up to %d connections, but the server allows %d: creates, tokens and /readyz "+
			"wait for one; raise max_connections or the role's limit, or put PgBouncer in front", needed, allowed)
	} else {
		f.ok(connections, "the server allows %d connections, enough for %s of up to %d each", allowed,
			console.Count(allowed/needed, "replica"), needed)
	}
}

// userOf returns the user that a keyset file must belong to: this user or, for root, which checks on behalf of another
// user, any.
func userOf(keyset string) uint32 {
	if _, owner, err := stat(keyset); err == nil && os.Geteuid() == 0 {
		return owner
	}
	return uint32(os.Geteuid()) //nolint:gosec // A user's number is not negative.
}

// schema reports whether this program can read the tables.
func (f *findings) schema(ctx context.Context, view database.View) (isReadable bool) {
	const check = "schema"
	schema, err := view.Schema(ctx)
	err = cmp.Or(err, schema.Check())
	isOlder := errors.Is(err, database.ErrOlder) && schema.Version > 0
	var drift []string
	if err == nil && schema.Version == schema.ProgramVersion() {
		drift, err = view.Drift(ctx)
		isReadable = true
	}
	switch version := schema.Version; {
	case isOlder:
		f.warn(check, `%v; "providerd serve" migrates it at startup, "providerd migrate" immediately`, err)
		return true
	case err != nil:
		f.err(check, err)
		return isReadable
	case len(drift) > 0:
		f.fail(check, "schema version %d differs from what this program creates: %s; undo what another program has changed, "+
			"or restore a backup", version, strings.Join(drift, ", "))
	case version > schema.ProgramVersion():
		f.ok(check, "schema version %d is newer than this program's %d, but compatible", version, schema.ProgramVersion())
	default:
		f.ok(check, "schema version is %d, the same as this program's", version)
	}
	return true
}

// keyset compares the keyset with the database, and reads every provider with its secret.
func (f *findings) keyset(ctx context.Context, inspection store.Inspection, path string) {
	keys, err := inspection.Keys(ctx, path)
	if errors.Is(err, database.ErrOlder) {
		f.warn(checkKeyset, `the database has no data keys yet; "providerd serve" creates them`)
		return
	}
	if err != nil {
		f.err(checkKeyset, err)
		return
	}
	f.ok(checkKeyset, "%s opens %s of the database", path, console.Count(len(keys.IDs()), "data key"))
	const check = "records"
	total, err := inspection.Providers(ctx, path, func(_, _ int64) {})
	if damaged, ok := errors.AsType[*store.DamagedError](err); ok {
		f.fail(check, "%d of %d providers cannot be read, such as %v; restore a backup, or delete those providers and "+
			`create them again: "providerd provider list --reveal" lists them`, damaged.Damaged, damaged.Total, damaged.First[0])
	} else if err != nil {
		f.err(check, err)
	} else {
		f.ok(check, "all providers can be read, with their secrets (%d)", total)
	}
}

// keysetAlone checks the keyset of a database that cannot be read. Another check finds a missing --keyset.
func (f *findings) keysetAlone(path string) {
	if path == "" {
		return
	}
	if _, err := seal.ReadMasterKeys(path); err != nil {
		f.err(checkKeyset, err)
	}
}

func (f *findings) tokens(ctx context.Context, inspection store.Inspection) {
	const check, maxCallers = "tokens", 5
	now := time.Now()
	exist, err := inspection.HasActiveTokens(ctx, now)
	callers, listErr := inspection.Expiring(ctx, now, now.Add(expiryNotice), maxCallers+1)
	if len(callers) > maxCallers {
		callers[maxCallers] = "others"
	}
	switch err = cmp.Or(err, listErr); {
	case err != nil:
		f.err(check, err)
	case !exist:
		f.warn(check, `no token is valid, so no caller can create anything; run "providerd token create"`)
	case len(callers) > 0:
		f.warn(check, `the tokens of these callers expire before %s: %s; run "providerd token renew" with the ids of their `+
			"newest tokens", console.Timestamp(now.Add(expiryNotice)), strings.Join(callers, ", "))
	default:
		f.ok(check, "each caller with a valid token has one for more than 14 days")
	}
}
