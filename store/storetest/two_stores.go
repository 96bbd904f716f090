package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/application"
	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
	"example.com/providerd/store/token"
)

// testFirstTokenOfTwoStores also looks each token up before it is stored: that it is unknown must not be cached.
func testFirstTokenOfTwoStores(t *testing.T, first, second *store.Store) {
	grant := token.Grant{Name: "initial", Operations: []string{"one"}, ExpiresIn: time.Hour}
	saved, errs := make([]string, 8), make([]error, 8)
	concurrently(len(errs), func(i int) {
		errs[i] = []*store.Store{first, second}[i%2].Tokens.CreateFirst(t.Context(), grant, func(text string) error {
			saved[i] = text
			if _, err := second.Tokens.Find(t.Context(), text); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("before it is stored: error is %v, want ErrNotFound", err)
			}
			return nil
		})
	})
	created := 0
	for i, err := range errs {
		if errors.Is(err, token.ErrExist) {
			continue
		}
		created++
		if _, findErr := second.Tokens.Find(t.Context(), saved[i]); err != nil || findErr != nil {
			t.Errorf("first token: %v, %v", err, findErr)
		}
	}
	if tokens := Collect(t, first.Tokens.List(t.Context())); created != 1 || len(tokens) != 1 {
		t.Errorf("%d first tokens, %d tokens", created, len(tokens))
	}
}

// newCrossing returns creates that cross: one of a client_id and one with a key for the first store, and a retry of the
// latter and a create of the same client_id for the second. If it is random, their values are.
func newCrossing(name string, isRandom bool) (c [4]*attempt) {
	values := [4][3]string{{"l", "", ""}, {"m", "k", "x"}, {"m", "k", "x"}, {"l", "", ""}}
	for i, value := range values {
		if isRandom {
			value = [3]string{[]string{"l", "m"}[rand.IntN(2)], []string{"", "j", "k"}[rand.IntN(3)], []string{"x", "x", "y"}[rand.IntN(3)]}
		}
		c[i] = &attempt{request: creation("x"), oauth2: new(FullOAuth2(name + value[0]))}
		if value[1] != "" {
			c[i].request = keyed(name+value[1], value[2])
		}
		c[i].request.Timing = &store.Timing{}
	}
	return c
}

// testCrossedBatches has two stores commit batches that share client_ids and keys. The outcomes must be those of single
// creates in some order.
func testCrossedBatches(t *testing.T, first, second *store.Store) {
	const rounds, maxRounds, each = 200, 4000, 4
	// How many creates share a batch depends on the load of the machine.
	batches, round := 0, 0
	for ; round < rounds || batches < rounds/10 && round < maxRounds; round++ {
		var crossings [each][4]*attempt
		for i := range crossings {
			crossings[i] = newCrossing(fmt.Sprint(round, "/", i), round%2 == 1)
		}
		concurrently(4*each, func(i int) {
			crossings[i/4][i%4].create(t.Context(), []*store.Store{first, second}[i%4/2])
		})
		for _, c := range crossings {
			begun := func(i int) time.Time { return c[i].request.Timing.Begun }
			if begun(0).Equal(begun(1)) && begun(2).Equal(begun(3)) {
				batches++
			}
			for _, a := range newModel().settle(c[:]) {
				t.Errorf("round %d: no order of creates explains replayed %v, error %v of %s, key %+v",
					round, a.replayed, a.err, a.oauth2.ClientID, a.scope())
			}
		}
	}
	t.Logf("%d of %d crossings were two batches", batches, round*each)
	processtest.Expect(t, batches >= rounds/10,
		"%d of %d crossings were two batches, want %d", batches, round*each, rounds/10)
	stored(t, first)
}

// testConcurrentApplications has two operators create conflicting applications at the same time: one is created, and
// the other leaves nothing behind.
func testConcurrentApplications(t *testing.T, first, second *store.Store) {
	for round := range 5 {
		for name, refusal := range map[string]error{
			"slug": application.ErrSlugTaken, "provider": application.ErrProviderLinked, "backchannel": application.ErrProviderLinked,
		} {
			shared := createOAuth2(t, first, fmt.Sprint(name, round, " shared")).PK
			var own [2]int64
			for operator := range own {
				own[operator] = createOAuth2(t, second, fmt.Sprint(name, round, operator)).PK
			}
			var errs [2]error
			concurrently(2, func(operator int) {
				application := records.Application{
					Slug: fmt.Sprint(name, round), Name: "Shop", Backchannels: []records.Backchannel{{ProviderPK: own[operator]}},
				}
				if name != "slug" {
					application.Slug += fmt.Sprint("-", operator)
				}
				switch name {
				case "provider":
					application.ProviderPK = &shared
				case "backchannel":
					application.Backchannels = append(application.Backchannels, records.Backchannel{ProviderPK: shared})
				}
				_, errs[operator] = []*store.Store{first, second}[operator].Applications.Create(t.Context(), application)
			})
			refused := slices.IndexFunc(errs[:], func(err error) bool { return err != nil })
			processtest.Require(t, refused >= 0 && errors.Is(errs[refused], refusal) && errs[1-refused] == nil,
				"%s: errors are %v, want one %v", name, errs, refusal)
			left, err := first.Providers.Get(t.Context(), own[refused])
			processtest.Must(t, err)
			processtest.Expect(t, left.Common().Application.ID == 0 && left.Common().Backchannel.ApplicationID == 0,
				"%s: the refused operator left %+v", name, left)
		}
	}
	if applications := Collect(t, second.Applications.List(t.Context())); len(applications) != 5*3 {
		t.Errorf("%d applications, want 15", len(applications))
	}
}

// createKeyed creates an OAuth2 provider whose key is its client_id.
func createKeyed(t *testing.T, database *store.Store, key string) (replayed bool) {
	t.Helper()
	_, replayed, err := database.Providers.CreateOAuth2(t.Context(), keyed(key, key), FullOAuth2(key))
	processtest.Must(t, err)
	return replayed
}

// testUpdatesDuringCreates has the second store update records, rotate keys and reseal while the first creates and
// replays. Each acknowledged update must be stored, and no create or replay may fail.
func testUpdatesDuringCreates(t *testing.T, first, second *store.Store) {
	const count, rounds = 60, 4
	for i := range count {
		createKeyed(t, first, fmt.Sprint(i))
	}
	var creates, reseals sync.WaitGroup
	var done atomic.Bool
	creates.Go(func() {
		for i := count; !done.Load(); i++ {
			processtest.Expect(t, !createKeyed(t, first, fmt.Sprint(i)) && createKeyed(t, first, fmt.Sprint(i)),
				"create %d is a replay, or its repetition is not", i)
		}
	})
	// A change that waits for others for too long is refused, and may be repeated.
	inTurn := func(change func() error) {
		err := change()
		for errors.Is(err, store.ErrUnavailable) && t.Context().Err() == nil {
			err = change()
		}
		processtest.Check(t, err)
	}
	reseals.Go(func() {
		for range 3 {
			inTurn(func() error {
				_, err := second.Keys.Rotate(t.Context())
				return err
			})
			inTurn(func() error {
				_, err := second.Keys.Reseal(t.Context(), func(int64, int64) {})
				return err
			})
		}
	})
	updated := map[int64]records.OAuth2Provider{}
	for round := range rounds {
		var changes []store.Change
		for pk := int64(1); pk <= count; pk++ {
			record, err := second.Providers.Get(t.Context(), pk)
			processtest.Must(t, err)
			requested := record.(records.OAuth2Provider)
			requested.ClientSecret = seal.NewSecret(fmt.Sprint("secret ", round, pk))
			changes = append(changes, store.Change{Planned: record, Requested: requested, Fields: []string{"client_secret"}})
			updated[pk] = requested
		}
		inTurn(func() error { return second.Providers.ChangePlanned(t.Context(), changes) })
	}
	reseals.Wait()
	done.Store(true)
	creates.Wait()
	for pk, want := range updated {
		record, err := first.Providers.Get(t.Context(), pk)
		got, _ := record.(records.OAuth2Provider)
		// The secret may be sealed with another key.
		if got.Sealed, want.Sealed = nil, nil; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
	stored(t, second)
}

// testCreatesDuringDeletes has one store create with few keys and client_ids, and read, while the other deletes what it
// finds. No reader mistakes a provider that is being deleted for a damaged one.
func testCreatesDuringDeletes(t *testing.T, first, second *store.Store) {
	const count = 600
	var done atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		defer done.Store(true)
		concurrently(count, func(i int) {
			request := keyed(fmt.Sprint(i%7), "x")
			if i%3 == 0 {
				request = creation("x")
			}
			_, _, err := first.Providers.CreateOAuth2(t.Context(), request, FullOAuth2(fmt.Sprint(i%5)))
			_, isReused := errors.AsType[*store.KeyReusedError](err)
			isRefused := errors.Is(err, store.ErrClientIDTaken) || isReused
			processtest.Expect(t, err == nil || isRefused || errors.Is(err, store.ErrUnavailable), "create: %v", err)
		})
	})
	for range 4 {
		group.Go(func() {
			for !done.Load() {
				for _, err := range first.Providers.List(t.Context(), store.Filter{}, 0) {
					processtest.Expect(t, err == nil, "read: %v", err)
				}
			}
		})
	}
	deleted := map[int64]bool{}
	for isDone := false; !isDone; {
		isDone = done.Load()
		var pks []int64
		for _, record := range stored(t, second) {
			pks = append(pks, record.Common().PK)
		}
		if err := second.Providers.Delete(t.Context(), pks); err != nil {
			t.Errorf("delete: %v", err)
		}
		for _, pk := range pks {
			processtest.Expect(t, !deleted[pk], "pk %d was assigned twice", pk)
			deleted[pk] = true
		}
	}
	group.Wait()
	if left := stored(t, first); len(left) != 0 {
		t.Errorf("%d records are left", len(left))
	}
	created := 0
	for _, found := range Collect(t, first.Events.List(t.Context(), event.Filter{Kind: string(records.KindOAuth2)}, 0)) {
		if found.Event == event.ProviderCreated {
			created++
		}
	}
	processtest.Expect(t, created == len(deleted) && created != 0,
		"%d providers were created according to the events, %d were deleted", created, len(deleted))
}
