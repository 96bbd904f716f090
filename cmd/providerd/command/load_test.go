package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// created is a provider, as a response or the database has it.
type created struct {
	name string
	pk   int32
	// secret is the client secret or the credentials.
	secret string
}

// create creates an OAuth2 provider whose name is its idempotency key. It has a client_id only if one is given.
func (p *process) create(client *http.Client, folder, name, clientID string) (status int, one created, err error) {
	fields := map[string]string{"name": name, "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}
	if clientID != "" {
		fields["client_id"] = clientID
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return 0, created{}, err
	}
	status, text, err := p.postWithKey(client, folder, oauth2Path, string(body), name)
	if err != nil || status != http.StatusCreated {
		return status, created{}, err
	}
	var record struct {
		PK     int32
		Name   string
		Secret string `json:"client_secret"`
	}
	err = json.Unmarshal([]byte(text), &record)
	return status, created{record.Name, record.PK, record.Secret}, err
}

// onlyCreated makes an error of each status that is not 201.
func onlyCreated(status int, one created, err error) (created, error) {
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("status is %d", status)
	}
	return one, err
}

// load is callers that take one step after the other, until it is ended or a step returns false.
type load struct {
	isOver atomic.Bool
	group  sync.WaitGroup
}

func startLoad(callers int, step func(caller, n int) bool) *load {
	l := &load{}
	for caller := range callers {
		l.group.Go(func() {
			for n := 0; !l.isOver.Load() && step(caller, n); n++ {
			}
		})
	}
	return l
}

// end lets the callers finish the steps that they have begun.
func (l *load) end() {
	l.isOver.Store(true)
	l.group.Wait()
}

// createWait is how long a create took, and when it was answered.
type createWait struct{ at, took time.Duration }

// journal is what callers were answered.
type journal struct {
	begun time.Time
	mutex sync.Mutex
	// creates are those that were acknowledged, by their name, and waits are theirs, in the order of the answers.
	creates map[string]created
	waits   []createWait
	// failed are errors by what was sent.
	failed map[string]error
}

func newJournal() *journal {
	return &journal{begun: time.Now(), creates: map[string]created{}, failed: map[string]error{}}
}

// load starts callers of which each creates until one of its creates fails.
func (j *journal) load(callers int, prefix string, create func(name string) (created, error)) *load {
	return startLoad(callers, func(caller, n int) bool {
		begun, name := time.Now(), fmt.Sprintf("%s-%d-%d", prefix, caller, n)
		one, err := create(name)
		if err != nil {
			j.fail(name, err)
			return false
		}
		j.acknowledge(one, begun)
		return true
	})
}

// acknowledge notes a create that was sent at a time.
func (j *journal) acknowledge(one created, begun time.Time) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.creates[one.name] = one
	j.waits = append(j.waits, createWait{at: time.Since(j.begun), took: time.Since(begun)})
}

func (j *journal) fail(sent string, err error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.failed[sent] = err
}

// acknowledged returns a copy of the creates until now.
func (j *journal) acknowledged() map[string]created {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return maps.Clone(j.creates)
}

// anyone returns one of the creates until now.
func (j *journal) anyone() (one created) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for _, one = range j.creates {
		break
	}
	return one
}

// await waits for so many creates more, or for one that fails.
func (j *journal) await(t *testing.T, more int) {
	t.Helper()
	soFar := func() (creates, failed int) {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		return len(j.creates), len(j.failed)
	}
	first, _ := soFar()
	waitUntil(t, "creates go on", func() bool {
		creates, failed := soFar()
		return creates >= first+more || failed > 0
	})
}

// compare demands that each acknowledged create is stored once as it was answered, that nothing else is, and that none
// has failed.
func (j *journal) compare(t *testing.T, stored []created) {
	t.Helper()
	counts, wrong := map[string]int{}, map[string]created{}
	for _, one := range stored {
		counts[one.name]++
		if j.creates[one.name] != one {
			wrong[one.name] = one
		}
	}
	missing := 0
	for name := range j.creates {
		missing += 1 - min(1, counts[name])
	}
	double := len(stored) - len(counts)
	t.Logf("acknowledged %d, stored %d, missing %d, double %d", len(j.creates), len(stored), missing, double)
	if missing+double+len(wrong) > 0 {
		t.Errorf("stored are other providers than acknowledged, such as %v", some(wrong))
	}
	if len(j.failed) > 0 {
		t.Errorf("%d requests failed, such as %v", len(j.failed), some(j.failed))
	}
}

// some are a few entries of a map.
func some[Value any](all map[string]Value) map[string]Value {
	few := map[string]Value{}
	for key, value := range all {
		if len(few) < 5 {
			few[key] = value
		}
	}
	return few
}

// inMilliseconds returns how long creates took, sorted.
func inMilliseconds(waits []createWait) (sorted []float64) {
	for _, one := range waits {
		sorted = append(sorted, one.took.Seconds()*1000)
	}
	slices.Sort(sorted)
	return sorted
}

// quantile is 0 if there are no values.
func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(share*float64(len(sorted)-1))]
}

// openData opens the database in the folder of a server.
func openData(
	t *testing.T, folder string, open func(ctx context.Context, path, keysetPath string) (*store.Store, error),
) *store.Store {
	t.Helper()
	database, err := open(t.Context(), filepath.Join(folder, "data", "providerd.db"), "")
	if err != nil {
		t.Fatal(err)
	}
	return database
}

// storedIn returns the providers that the database in the folder of a server has.
func storedIn(t *testing.T, folder string) []created {
	t.Helper()
	return readAll(t, openData(t, folder, storetest.OpenSQLite))
}

// readAll returns the providers of a database, in the order of their pks, and closes it.
func readAll(t *testing.T, database *store.Store) (found []created) {
	t.Helper()
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		one := created{name: record.Common().Name, pk: record.Common().PK}
		switch provider := record.(type) {
		case store.OAuth2Provider:
			one.secret = provider.ClientSecret.Reveal()
		case store.WorkspaceDirectoryProvider:
			one.secret = provider.Credentials.Reveal()
		}
		found = append(found, one)
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
	return found
}
