// Package diagnose implements the commands that find out what is wrong: "providerd doctor", "health" and "version".
//
// Start with Doctor.Run, which makes every check, and the type findings, which collects the results.
package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/serve"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/database"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/token"
)

// Doctor has the flags of "serve", so that a server's command line and environment are checked as they are.
type Doctor struct {
	serve.Command
	console.ListFormat
}

const (
	checkDatabase = "database"
	checkKeyset   = "keyset"
	// expiryNotice is how long before their expiry tokens and certificates are warned of.
	expiryNotice = 14 * console.Day
	// postgresTimeout is how long the checks of a server may take.
	postgresTimeout = 10 * time.Second
)

// Help is the long help text.
func (Doctor) Help() string {
	return "Checks the configuration, files, keyset, database and disk, and reports what is wrong and what to do. It " +
		"can run next to a server: it changes nothing, creates no file and takes no lock that others wait for. Run it as " +
		"the server's user, with the server's flags and environment: it reports what \"serve\" would refuse in the " +
		"same words. The exit status is 1 if a check failed, and 0 if there are only warnings."
}

// Run makes every check, except those that depend on one that failed.
func (c *Doctor) Run(
	ctx context.Context, warnings serve.VariableWarnings, out *console.Output, messages *console.Messages,
) error {
	found := &findings{}
	found.configuration(append(warnings, c.Warnings()...))
	if c.TLSCert != "" {
		found.certificate(c.TLSCert, c.TLSKey)
	}
	c.database(ctx, found)
	if messages.IsQuiet {
		*found = slices.DeleteFunc(*found, func(f finding) bool { return f.Status == healthOK })
	}
	if len(*found) == 0 && c.Output != console.FormatJSON {
		return nil
	}
	table := console.List[finding]{Headings: "STATUS,CHECK,FINDING", Rows: finding.rows, Color: finding.color}
	if err := table.Print(out, messages, c.Output, console.Values(*found...)); err != nil {
		return err
	}
	*found = slices.DeleteFunc(*found, func(f finding) bool { return f.Status != healthFail })
	if len(*found) > 0 {
		return errors.New(console.Count(len(*found), "check") + " failed")
	}
	return nil
}

func (f *findings) certificate(certPath, keyPath string) {
	const check, renew = "certificate", "; renew it, and the server reloads it"
	pair, err := serve.LoadCertificate(certPath, keyPath)
	if err != nil {
		f.err(check, err)
		return
	}
	begins, ends := pair.Leaf.NotBefore, pair.Leaf.NotAfter
	switch left := time.Until(ends); {
	case time.Now().Before(begins):
		f.fail(check, "%s is not valid before %s; check the system clock", certPath, console.Timestamp(begins))
	case left <= 0:
		f.fail(check, "%s expired at %s"+renew, certPath, console.Timestamp(ends))
	case left < expiryNotice:
		f.add(healthWarn, check, "%s expires at %s"+renew, certPath, console.Timestamp(ends))
	default:
		f.add(healthOK, check, "%s is valid until %s", certPath, console.Timestamp(ends))
	}
	const everyUser = 0o007
	if info, err := os.Stat(keyPath); err == nil && info.Mode().Perm()&everyUser != 0 {
		f.fail(check, "every user can read the private key %s; run chmod 600 on it, and get a certificate for a new key",
			keyPath)
	}
}

func (c *Doctor) database(ctx context.Context, found *findings) {
	open := found.openPostgreSQL
	if c.Database.Path != "" {
		open = found.openSQLite
	}
	view, err := open(ctx, c.Database, c.KeysetPath())
	if err == nil {
		defer func() { _ = view.Close() }()
		if found.schema(ctx, view) {
			found.keyset(ctx, view, c.KeysetPath())
			found.tokens(ctx, view)
			return
		}
	} else {
		found.err(checkDatabase, err)
	}
	if _, keysetErr := seal.ReadMasterKeys(c.KeysetPath()); keysetErr != nil && !errors.Is(err, database.ErrNoDatabase) {
		found.err(checkKeyset, keysetErr)
	}
}

func (f *findings) openSQLite(ctx context.Context, url console.DatabaseURL, keyset string) (database.View, error) {
	path := url.Path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		f.files(path, filepath.Dir(path), keyset)
	}
	view, err := sqlite.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	use := map[bool]string{true: "in use by another program", false: "not in use"}
	f.add(healthOK, checkDatabase, "%s is %s", path, use[view.IsInUse()])
	if err := view.CheckIntegrity(ctx); err != nil {
		f.fail("integrity", "%v; restore a backup", err)
	} else {
		f.add(healthOK, "integrity", "SQLite finds each page, row and index intact")
	}
	return view, nil
}

func (f *findings) openPostgreSQL(ctx context.Context, url console.DatabaseURL, keyset string) (database.View, error) {
	// Root may check on behalf of any user.
	_, owner, _ := stat(keyset)
	if os.Geteuid() != 0 {
		owner = os.Geteuid()
	}
	f.file("keyset file", keyset, owner, exposedKeyset)
	ctx, cancel := context.WithTimeout(ctx, postgresTimeout)
	defer cancel()
	view, err := postgres.OpenReadOnly(ctx, url.Postgres)
	if err != nil {
		return nil, err
	}
	f.add(healthOK, checkDatabase, "connected to %s", url.Postgres)
	faults, err := view.Faults(ctx)
	safeguards, safeguardsErr := view.Safeguards(ctx)
	if err = cmp.Or(err, safeguardsErr); err != nil {
		faults = append(faults, err)
	}
	for _, fault := range faults {
		f.err("settings", fault)
	}
	if len(faults) == 0 {
		f.add(healthOK, "settings", "PostgreSQL accepts writes, and acknowledged commits are durable")
	}
	if err == nil {
		f.safeguards(safeguards)
	}
	return view, nil
}

func (f *findings) safeguards(safeguards postgres.Safeguards) {
	const archive, connections, needed = "archive", "connections", postgres.MaxConnectionsPerReplica
	// A server keeps one connection to write and one to read.
	const transactions, least = "transactions", 2
	if safeguards.Standbys == "" {
		f.add(healthWarn, "standbys", "synchronous_standby_names is empty: a failover loses commits that no standby has "+
			"received; run a synchronous standby and list it there")
	} else {
		f.add(healthOK, "standbys", "commits wait for %s", safeguards.Standbys)
	}
	switch {
	case safeguards.Archiving == "off":
		f.add(healthWarn, archive, "archive_mode is off: without a WAL archive, everything since the last backup can be "+
			"lost; set it to on, with an archive_command such as pgBackRest's")
	case !safeguards.HasArchive:
		f.add(healthWarn, archive, "archive_command is empty: nothing is archived, and WAL accumulates; set it or "+
			"archive_library")
	case safeguards.IsArchiveFailing:
		f.fail(archive, "archive_command fails, and WAL accumulates; see PostgreSQL's log")
	default:
		f.add(healthOK, archive, "the WAL is archived")
	}
	if allowed := safeguards.MaxConnections; allowed < needed {
		status, effect := healthWarn, "creates and /readyz may wait for a connection"
		if allowed < least {
			status, effect = healthFail, fmt.Sprintf(`"serve" needs at least %d to start`, least)
		}
		f.add(status, connections, "a replica may open up to %d connections, but PostgreSQL allows %d: %s; raise "+
			"max_connections or the role's limit, or connect through PgBouncer", needed, allowed, effect)
	} else {
		f.add(healthOK, connections, "PostgreSQL allows %d connections, enough for %s of up to %d each", allowed,
			console.Count(allowed/needed, "replica"), needed)
	}
	if name := safeguards.AgingDatabase; name != "" {
		f.add(healthWarn, transactions, "PostgreSQL refuses writes when transaction ids run out, and database %q keeps old "+
			"ones; end the long transactions, prepared transactions or replication slots that VACUUM waits for, and run VACUUM "+
			"in that database", name)
	} else {
		f.add(healthOK, transactions, "no database of the server keeps too many transaction ids")
	}
}

// schema reports whether this program can read the tables.
func (f *findings) schema(ctx context.Context, view database.View) (isReadable bool) {
	const check = "schema"
	schema, err := view.Schema(ctx)
	err = cmp.Or(err, schema.Check())
	if errors.Is(err, database.ErrOlder) && schema.Version > 0 {
		f.add(healthWarn, check, `%v; run "providerd migrate", or let "providerd serve" migrate it`, err)
		return true
	}
	if err != nil {
		f.err(check, err)
		return false
	}
	if newest := schema.Program; schema.Version > newest {
		f.add(healthOK, check, "schema version %d is newer than this program's %d, but compatible", schema.Version, newest)
		return true
	}
	switch isBehind, err := view.Check(ctx); {
	case err != nil:
		f.err(check, err)
	case isBehind:
		f.add(healthWarn, check,
			`rows were copied without their sequences; "providerd serve" moves these past the keys in use`)
	default:
		f.add(healthOK, check, "schema version is %d, the same as this program's", schema.Version)
	}
	return true
}

// keyset compares the keyset with the database, and reads every provider with its secret.
func (f *findings) keyset(ctx context.Context, view database.View, path string) {
	keys, err := keyset.Open(ctx, view, path)
	if errors.Is(err, database.ErrOlder) {
		f.add(healthWarn, checkKeyset, `the database has no data keys yet; "providerd serve" creates them`)
		return
	}
	if err != nil {
		f.err(checkKeyset, err)
		return
	}
	f.add(healthOK, checkKeyset, "%s decrypts %s of the database", path, console.Count(len(keys.IDs()), "data key"))
	const check = "records"
	total, err := audit.CheckProviders(ctx, view, path, func(_, _ int64) {})
	if damaged, ok := errors.AsType[*audit.DamagedError](err); ok {
		f.fail(check, "%d of %d providers cannot be read, such as %v; restore a backup, or delete those providers and "+
			`create them again: "providerd provider list --reveal" lists them`, damaged.Damaged, damaged.Total, damaged.First[0])
	} else if err != nil {
		f.err(check, err)
	} else {
		f.add(healthOK, check, "all providers can be read, with their secrets (%d)", total)
	}
}

func (f *findings) tokens(ctx context.Context, view database.View) {
	const check, maxCallers = "tokens", 5
	now := time.Now()
	exist, err := token.HasActive(ctx, view, now)
	callers, listErr := token.Expiring(ctx, view, now, now.Add(expiryNotice), maxCallers+1)
	if len(callers) > maxCallers {
		callers[maxCallers] = "others"
	}
	switch err = cmp.Or(err, listErr); {
	case err != nil:
		f.err(check, err)
	case !exist:
		f.add(healthWarn, check, `no token is valid, so no one can create anything; run "providerd token create"`)
	case len(callers) > 0:
		f.add(healthWarn, check, `the tokens of these callers expire before %s: %s; run "providerd token renew" with the `+
			"ids of their newest tokens", console.Timestamp(now.Add(expiryNotice)), strings.Join(callers, ", "))
	default:
		f.add(healthOK, check, "each caller with a valid token has one that remains valid for more than 14 days")
	}
}
