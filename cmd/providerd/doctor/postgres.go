package doctor

import (
	"context"
	"os"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/postgres"
)

// serverTimeout is how long the checks of a server may take.
const serverTimeout = 10 * time.Second

// checkPostgreSQL checks a PostgreSQL database and its server.
func checkPostgreSQL(ctx context.Context, url postgres.URL, keyset string) []finding {
	found := checkKeysetFile(keyset, userOf(keyset))
	view, err := connect(ctx, url)
	if err != nil {
		found = append(found, failedBy(checkOfDatabase, err))
		return append(found, checkKeysetAlone(keyset)...)
	}
	defer func() { _ = view.Close() }()
	found = append(found, passed(checkOfDatabase, "connected to %s", url))
	found = append(found, checkServer(ctx, view)...)
	return append(found, checkContent(ctx, view, keyset)...)
}

func connect(ctx context.Context, url postgres.URL) (*postgres.View, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	return postgres.OpenReadOnly(ctx, url)
}

// userOf returns the user that a keyset file must belong to: this user or, for root, which checks on behalf of another
// user, any.
func userOf(keyset string) uint32 {
	if _, owner, err := stat(keyset); err == nil && os.Geteuid() == 0 {
		return owner
	}
	return uint32(os.Geteuid()) //nolint:gosec // A user's number is not negative.
}

// checkServer checks the settings of a server.
func checkServer(ctx context.Context, view *postgres.View) (found []finding) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	const check = "settings"
	faults, err := view.Faults(ctx)
	if err != nil {
		return []finding{failedBy(check, err)}
	}
	for _, fault := range faults {
		found = append(found, failedBy(check, fault))
	}
	if len(faults) == 0 {
		found = append(found, passed(check, "the server accepts writes, and acknowledged commits are durable"))
	}
	safeguards, err := view.Safeguards(ctx)
	if err != nil {
		return append(found, failedBy(check, err))
	}
	return append(found, checkStandbys(safeguards), checkArchive(safeguards),
		checkConnections(safeguards.MaxConnections))
}

// checkConnections compares the connections that a replica may open with the role's limit.
func checkConnections(limit int) finding {
	const check = "connections"
	replicas := limit / postgres.MaxConnectionsPerReplica
	if replicas == 0 {
		return warned(check, "raise max_connections or the role's limit, or put PgBouncer in front",
			"a replica may open up to %d connections, but the server allows %d: creates, tokens and /readyz wait for one",
			postgres.MaxConnectionsPerReplica, limit)
	}
	return passed(check, "the server allows %d connections, enough for %s of up to %d each", limit,
		console.Count(replicas, "replica", "replicas"), postgres.MaxConnectionsPerReplica)
}

func checkStandbys(safeguards postgres.Safeguards) finding {
	const check = "standbys"
	if safeguards.Standbys == "" {
		return warned(check, "run a synchronous standby and list it there",
			"synchronous_standby_names is empty: a failover loses commits that no standby has received")
	}
	return passed(check, "commits wait for %s", safeguards.Standbys)
}

func checkArchive(safeguards postgres.Safeguards) finding {
	const check = "archive"
	switch {
	case safeguards.Archiving == "off":
		return warned(check, "set it to on, with an archive_command such as pgBackRest's",
			"archive_mode is off: without a WAL archive, everything since the last backup can be lost")
	case !safeguards.HasArchive:
		return warned(check, "set it or archive_library",
			"archive_command is empty: nothing is archived, and WAL accumulates")
	case safeguards.IsArchiveFailing:
		return failed(check, "see PostgreSQL's log", "archive_command fails, and WAL accumulates")
	default:
		return passed(check, "the WAL is archived")
	}
}
