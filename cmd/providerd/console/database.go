package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/link"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
)

// DefaultDatabase is the URL of the database by default.
const DefaultDatabase = "sqlite:data/providerd.db"

// DatabaseFlags are the flags of every command that opens the database.
type DatabaseFlags struct {
	Database DatabaseURL `default:"${database}" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"The database: sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset   string      `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"Keyset file of the database (${env}; default keyset.json next to a SQLite database)."`
}

// AfterApply refuses a password that other users could read, PostgreSQL without a keyset, and one path for two files.
func (f DatabaseFlags) AfterApply(command *kong.Context) error {
	if err := f.Database.CheckPassword("database", command.Args); err != nil {
		return err
	}
	if f.KeysetPath() == "" {
		return errors.New("--keyset is required with a PostgreSQL database, and must be the same file on each replica; " +
			"create one with \"providerd key create --keyset PATH\"")
	}
	return CheckDistinctPaths(f.Database, f.Keyset, "")
}

// KeysetPath returns the path of the keyset.
func (f DatabaseFlags) KeysetPath() string { return cmp.Or(f.Keyset, f.Database.DefaultKeyset()) }

// KeepHeapSmall makes the garbage collector run more often, for commands that stream data.
func KeepHeapSmall() {
	const percent = 50
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// WithStore opens the database, without migrating it, and calls work with its store.
func (f DatabaseFlags) WithStore(ctx context.Context, work func(database *store.Store) error) (err error) {
	KeepHeapSmall()
	db, err := f.Database.Open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return f.NameSource(err)
	}
	opened, err := store.Open(ctx, db, f.KeysetPath())
	if err != nil {
		return f.NameSource(err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return work(opened)
}

// NameSource adds the flag or variable of a database that cannot be reached, or of a keyset that cannot be used.
func (f DatabaseFlags) NameSource(err error) error {
	switch {
	case f.Keyset != "" && (errors.Is(err, seal.ErrNoKeyset) || errors.Is(err, seal.ErrKeysetUnusable)):
		return fmt.Errorf("%s: %w", Source("keyset", f.Keyset), err)
	case f.Database.Path == "" && errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("%s: %w", Source("database", f.Database.Text), err)
	default:
		return err
	}
}

// Source returns the variable of a flag if that has the value, and else the flag.
func Source(flag, value string) string {
	variable := "PROVIDERD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	if os.Getenv(variable) == value {
		return variable
	}
	return "--" + flag
}

// DatabaseURL is the value of a flag that names a database: a SQLite file, or a database on a PostgreSQL server.
type DatabaseURL struct {
	Text string
	// Path is the path of a SQLite database; "" for a database on a server.
	Path string
	// Postgres is the URL of a database on a server.
	Postgres link.URL
}

// UnmarshalText parses the URL, or the path of a SQLite database such as data/x.db.
func (u *DatabaseURL) UnmarshalText(text []byte) (err error) {
	u.Text = string(text)
	if link.IsURL(u.Text) {
		u.Postgres, err = link.ParseURL(u.Text)
		return err
	}
	if !strings.Contains(u.Text, ":") && !strings.Contains(u.Text, "//") && filepath.Ext(u.Text) == ".db" {
		u.Text = sqlite.Scheme + u.Text
	}
	path, err := sqlite.Path(u.Text)
	switch u.Path = path; {
	case strings.TrimPrefix(u.Text, sqlite.Scheme) == ":memory:":
		return errors.New("sqlite::memory: would be lost when the program ends; use the path of a file")
	case err != nil && regexp.MustCompile(`(?i)^jdbc:|^\w+\+\w+:`).MatchString(u.Text):
		return errors.New("must not have jdbc: or +DRIVER; write postgres://USER@HOST/DATABASE or sqlite:PATH")
	case err != nil:
		return fmt.Errorf("%w or postgres://USER@HOST/DATABASE", err)
	case strings.HasPrefix(path, "file:"), strings.Contains(path, "://"), strings.HasPrefix(path, "//"):
		return errors.New("sqlite: takes a path, not a URL; write sqlite:PATH or postgres://USER@HOST/DATABASE")
	case strings.Contains(path, "?"):
		return errors.New("sqlite: takes a path without parameters; remove the question mark and what follows it")
	}
	return CheckPath(path)
}

// CheckPassword refuses a URL with a password that was passed as an argument.
func (u DatabaseURL) CheckPassword(flag string, arguments []string) error {
	isArgument := func(argument string) bool { return strings.Contains(argument, u.Text) }
	if !u.Postgres.HasPassword() || !slices.ContainsFunc(arguments, isArgument) {
		return nil
	}
	return fmt.Errorf("--%s: other users can see a password in an argument; set PROVIDERD_%s to the URL, "+
		"or put the password into a file and set PGPASSFILE to its path", flag, strings.ToUpper(flag))
}

// Create opens the database, creates it if it does not exist, and migrates it to the schema of this program. If it must
// be alone, a database with tables of other programs is refused.
func (u DatabaseURL) Create(ctx context.Context, logger *slog.Logger, isAlone bool) (database.Database, error) {
	switch {
	case u.Path != "":
		return sqlite.Create(ctx, u.Path, logger)
	case isAlone:
		return postgres.CreateAlone(ctx, u.Postgres, logger)
	default:
		return postgres.Create(ctx, u.Postgres, logger)
	}
}

// Open opens the database without migrating it.
func (u DatabaseURL) Open(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	if u.Path != "" {
		return sqlite.Open(ctx, u.Path, logger)
	}
	return postgres.Open(ctx, u.Postgres, logger)
}

// OpenReadOnly opens the database for reading, even if it is damaged.
func (u DatabaseURL) OpenReadOnly(ctx context.Context) (database.View, error) {
	if u.Path != "" {
		return sqlite.OpenReadOnly(ctx, u.Path)
	}
	return postgres.OpenReadOnly(ctx, u.Postgres)
}

// Migrate migrates the database, which over SQLite must exist, to the schema version of this program.
func (u DatabaseURL) Migrate(ctx context.Context, logger *slog.Logger) error {
	if u.Path != "" {
		return sqlite.Migrate(ctx, u.Path, logger)
	}
	return postgres.Migrate(ctx, u.Postgres, logger)
}

// DefaultKeyset returns the path of the keyset if no flag names it; "" if a flag must.
func (u DatabaseURL) DefaultKeyset() string { return u.Beside("keyset.json") }

// Beside returns the path of a file next to SQLite's, where symbolic links lead; "" for a database on a server.
func (u DatabaseURL) Beside(name string) string {
	if u.Path == "" {
		return ""
	}
	target, err := filepath.EvalSymlinks(u.Path)
	if err != nil {
		target = u.Path
	}
	return filepath.Join(filepath.Dir(target), name)
}

// InitialTokenFile is the name of the file with the initial token, in the directory of a SQLite database.
const InitialTokenFile = "initial-token"

// DecodePath decodes the path of a file, which CheckPath accepts. It refuses "-", and an empty path, which the parser's
// own mapper would take for the working directory.
func DecodePath(context *kong.DecodeContext, target reflect.Value) error {
	var path string
	if err := context.Scan.PopValueInto("file", &path); err != nil {
		return err //nolint:wrapcheck // describeUsageError rewords errors of the parser.
	}
	if strings.HasPrefix(path, "~") {
		path = kong.ExpandPath(path)
	}
	target.SetString(path)
	switch path {
	case "":
		return errors.New("must not be empty")
	case "-":
		return errors.New(`"-" is not a file; pass the path of one`)
	default:
		return CheckPath(path)
	}
}

// CheckPath refuses the content of a file, what only a shell replaces, compressed files, and names special to SQLite.
func CheckPath(path string) error {
	if regexp.MustCompile(`^\{|^-----BEGIN|\n.|^pvd_\w{7}`).MatchString(path) {
		return errors.New("must be the path of a file, not what is in it")
	}
	if regexp.MustCompile(`^[~$\s]|\s(#|$)`).MatchString(path) {
		return errors.New("must not begin with ~ or $, or have a comment or white space around it; write the path in full")
	}
	decompress := map[string]string{
		".gz": "gunzip --keep", ".zst": "unzstd", ".xz": "unxz --keep", ".bz2": "bunzip2 --keep", ".zip": "unzip",
		".tar": "tar -xf", ".tgz": "tar -xf",
	}[filepath.Ext(path)]
	if decompress != "" {
		return fmt.Errorf("must not be a compressed file or an archive; to read %s, first run %s %[1]s", path, decompress)
	}
	return sqlite.CheckName(path)
}

// CheckDistinctPaths refuses one path for two of a database, its keyset, its initial token, and an output file, if any.
func CheckDistinctPaths(database DatabaseURL, keyset, output string) error {
	var initialToken string
	if database.Path != "" {
		initialToken = filepath.Join(filepath.Dir(files.Resolve(database.Path)), InitialTokenFile)
	}
	used := map[string]string{}
	for _, file := range [][2]string{
		{"the database", database.Path},
		{"the initial token", initialToken},
		{"the keyset", cmp.Or(keyset, database.DefaultKeyset())},
		{"the output file", output},
	} {
		if file[1] == "" {
			continue
		}
		path := files.Resolve(file[1])
		if other := used[path]; other != "" {
			return fmt.Errorf("%s and %s would both be %s; use another file", other, file[0], path)
		}
		used[path] = file[0]
	}
	return nil
}
