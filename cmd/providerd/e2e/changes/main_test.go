// Package changes_test changes, renames and deletes records with "providerd apply --as" and "providerd provider update"
// while the program is killed, and beside servers and other commands. It also measures the memory of commands that read
// many records.
//
// Start with TestPlansKilled, and with the model that the records are compared with.
package changes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

func TestMain(m *testing.M) { providerdtest.Main(m) }

// site is a database with its servers.
type site struct{ *providerdtest.Fleet }

// onBoth runs a test with a site over each kind of database.
func onBoth(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, &site{providerdtest.StartFleet(t, "", 1)})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, &site{providerdtest.StartFleet(t, postgrestest.NewCluster(t).CreateDatabase(t), 2)})
	})
}

// entry is an entry of the file. Its name is a serial number that never changes.
type entry struct {
	ID                string `json:"id"`
	Was               string `json:"was,omitempty"`
	Name              string `json:"name"`
	AuthorizationFlow string `json:"authorization_flow"`
	ClientID          string `json:"client_id,omitempty"`
	ClientSecret      string `json:"client_secret,omitempty"`
	RedirectURIs      string `json:"redirect_uris"`
}

// model is the file, and what must be stored once it has been applied.
type model struct {
	random  *rand.Rand
	entries map[int]*entry
	// pks are the pks of the stored records by serial.
	pks    map[int]int64
	serial int
	// number makes values unique.
	number int
}

func newModel(seed uint64) *model {
	return &model{random: rand.New(rand.NewPCG(seed, seed)), entries: map[int]*entry{}, pks: map[int]int64{}}
}

func (m *model) unique(prefix string) string {
	m.number++
	return fmt.Sprintf("%s-%d", prefix, m.number)
}

// change changes the file at random: about every third entry, and with enough new entries to keep size.
func (m *model) change(size int) {
	var freed []string
	serials := slices.Sorted(maps.Keys(m.entries))
	for _, serial := range serials {
		e := m.entries[serial]
		switch m.random.IntN(20) {
		case 0:
			freed = append(freed, e.ClientID)
			delete(m.entries, serial)
		case 1, 2:
			e.Was, e.ID = e.ID, m.unique("id")
		case 3:
			e.Was = ""
		case 4:
			e.ClientSecret = m.unique("canary-canary-canary-canary-canary-secret")
		case 5:
			e.ClientSecret = ""
		case 6, 7, 8:
			e.RedirectURIs = "https://app.example.com/" + m.unique("callback")
		case 9, 10:
			other := m.entries[serials[m.random.IntN(len(serials))]]
			if other != nil && e.ClientID != "" && other.ClientID != "" {
				e.ClientID, other.ClientID = other.ClientID, e.ClientID
			}
		}
	}
	for len(m.entries) < size {
		m.serial++
		const flow = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"
		e := &entry{ID: m.unique("id"), Name: fmt.Sprint(m.serial), AuthorizationFlow: flow}
		switch {
		case len(freed) > 0:
			e.ClientID, freed = freed[0], freed[1:]
		case m.random.IntN(2) == 0:
			e.ClientID = m.unique("client")
		}
		m.entries[m.serial] = e
	}
}

func (m *model) write(t *testing.T, dir string) {
	t.Helper()
	var file bytes.Buffer
	file.WriteString("oauth2:\n")
	for _, serial := range slices.Sorted(maps.Keys(m.entries)) {
		line := processtest.Try(json.Marshal(m.entries[serial])).Must(t)
		fmt.Fprintf(&file, "  - %s\n", line)
	}
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "model.yaml"), file.Bytes(), 0o600))
}

type record struct {
	PK int64 `json:"pk"`
	entry
}

func (s *site) stored(t *testing.T) (stored []record) {
	t.Helper()
	output := s.RunCommand(t, "provider", "list", "--kind", "oauth2", "--reveal", "--output", "json")
	processtest.Must(t, json.Unmarshal([]byte(output), &stored))
	return stored
}

// compare checks that exactly the entries are stored, with their values, and that records keep their pks.
func (m *model) compare(t *testing.T, s *site) {
	t.Helper()
	pks := map[int]int64{}
	for _, r := range s.stored(t) {
		serial, err := strconv.Atoi(r.Name)
		if err != nil {
			continue // Another program created it.
		}
		e := m.entries[serial]
		processtest.Require(t, e != nil && pks[serial] == 0, "provider %d should not be stored: %+v", r.PK, r)
		pks[serial] = r.PK
		before := m.pks[serial]
		processtest.Expect(t, before == 0 || before == r.PK, "entry %s has the pk %d, before %d", e.ID, r.PK, before)
		if e.ClientID != "" && e.ClientID != r.ClientID || e.ClientSecret != "" && e.ClientSecret != r.ClientSecret ||
			r.RedirectURIs != e.RedirectURIs || r.ClientID == "" || r.ClientSecret == "" {
			t.Errorf("entry %+v is stored as %+v", e, r)
		}
	}
	processtest.Equal(t, len(pks), len(m.entries), "stored entries")
	m.pks = pks
}
