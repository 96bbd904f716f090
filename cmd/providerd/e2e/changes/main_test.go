// Package changes_test changes, renames and deletes records with "providerd apply --as" and "providerd provider update"
// while the program is killed, and beside servers and other commands. It also measures the memory of commands that read
// many records.
//
// Start with model_test.go, the model that the records are compared with.
package changes_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
)

// TestMain also runs the test binary as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }

// site is a database with its servers.
type site struct{ *providerdtest.Fleet }

// sites returns a function for each kind of database that starts servers over it.
func sites() map[string]func(t *testing.T) *site {
	return map[string]func(t *testing.T) *site{
		"sqlite":   func(t *testing.T) *site { return startSite(t, "", 1) },
		"postgres": func(t *testing.T) *site { return startSite(t, postgrestest.NewCluster(t).CreateDatabase(t), 2) },
	}
}

// startSite starts servers over an empty database.
func startSite(t *testing.T, url string, servers int) *site {
	t.Helper()
	return &site{providerdtest.StartFleet(t, url, servers)}
}
