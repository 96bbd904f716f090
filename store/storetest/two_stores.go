package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest/processtest"
)

// testFirstTokenOfTwoStores also looks each token up before it is stored: that it is unknown must not be cached.
func testFirstTokenOfTwoStores(t *testing.T, first, second *store.Store) {
	grant := store.TokenGrant{Name: "initial", Operations: []string{"one"}, ExpiresIn: time.Hour}
	saved, errs := make([]string, 8), make([]error, 8)
	concurrently(len(errs), func(i int) {
		errs[i] = []*store.Store{first, second}[i%2].CreateFirstToken(t.Context(), grant, func(text string) error {
			saved[i] = text
			if _, err := second.FindToken(t.Context(), text); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("before it is stored: error is %v, want ErrNotFound", err)
			}
			return nil
		})
	})
	created := 0
	for i, err := range errs {
		if errors.Is(err, store.ErrTokensExist) {
			continue
		}
		created++
		if _, findErr := second.FindToken(t.Context(), saved[i]); err != nil || findErr != nil {
			t.Errorf("first token: %v, %v", err, findErr)
		}
	}
	if tokens := Collect(t, first.Tokens(t.Context())); created != 1 || len(tokens) != 1 {
		t.Errorf("%d first tokens, %d tokens", created, len(tokens))
	}
}

// crossing is a group of creates that cross: of four, the first store gets two and the second store two.
type crossing [4]*attempt

// newCrossing returns a create of a client_id and one with a key for the first store, and a retry of the latter and a
// create of the same client_id for the second. If it is random, their values are.
func newCrossing(name string, isRandom bool) (c crossing) {
	values := [4][3]string{{"l", "", ""}, {"m", "k", "x"}, {"m", "k", "x"}, {"l", "", ""}}
	for i, value := range values {
		if isRandom {
			value = [3]string{[]string{"l", "m"}[rand.IntN(2)], []string{"", "j", "k"}[rand.IntN(3)], []string{"x", "x", "y"}[rand.IntN(3)]}
		}
		settings := FullOAuth2(name + value[0])
		c[i] = &attempt{request: creation("x"), oauth2: &settings}
		if value[1] != "" {
			c[i].request = keyed(name+value[1], value[2])
		}
		c[i].request.Timing = &store.Timing{}
	}
	return c
}

// areBatches reports whether each store committed its two creates in one batch.
func (c crossing) areBatches() bool {
	begun := func(i int) time.Time { return c[i].request.Timing.Begun }
	return begun(0).Equal(begun(1)) && begun(2).Equal(begun(3))
}

// testCrossedBatches has two stores commit batches that share client_ids and keys. The outcomes must be those of single
// creates in some order.
func testCrossedBatches(t *testing.T, first, second *store.Store) {
	const rounds, maxRounds, each = 200, 4000, 4
	// How many creates share a batch depends on the load of the machine.
	batches, round := 0, 0
	for ; round < rounds || batches < rounds/10 && round < maxRounds; round++ {
		var crossings [each]crossing
		for i := range crossings {
			crossings[i] = newCrossing(fmt.Sprint(round, "/", i), round%2 == 1)
		}
		concurrently(4*each, func(i int) {
			crossings[i/4][i%4].create(t.Context(), []*store.Store{first, second}[i%4/2])
		})
		for _, c := range crossings {
			if c.areBatches() {
				batches++
			}
			for _, a := range newModel().settle(c[:]) {
				t.Errorf("round %d: no order of creates explains replayed %v, error %v of %s, key %+v",
					round, a.replayed, a.err, a.oauth2.ClientID, a.scope())
			}
		}
	}
	t.Logf("%d of %d crossings were two batches", batches, round*each)
	if batches < rounds/10 {
		t.Errorf("%d of %d crossings were two batches, want %d", batches, round*each, rounds/10)
	}
	stored(t, first)
}

// testConcurrentApplications has two operators create conflicting applications at the same time: one is created, and
// the other leaves nothing behind.
func testConcurrentApplications(t *testing.T, first, second *store.Store) {
	for round := range 5 {
		for name, refusal := range map[string]error{
			"slug": store.ErrSlugTaken, "provider": store.ErrProviderLinked, "backchannel": store.ErrProviderLinked,
		} {
			shared := createOAuth2(t, first, fmt.Sprint(name, round, " shared")).PK
			var own [2]int64
			for operator := range own {
				own[operator] = createOAuth2(t, second, fmt.Sprint(name, round, operator)).PK
			}
			var errs [2]error
			concurrently(2, func(operator int) {
				application := store.Application{
					Slug: fmt.Sprint(name, round), Name: "Shop", Backchannels: []store.Backchannel{{ProviderPK: own[operator]}},
				}
				switch name {
				case "provider":
					application.ProviderPK = &shared
				case "backchannel":
					application.Backchannels = append(application.Backchannels, store.Backchannel{ProviderPK: shared})
				}
				_, errs[operator] = []*store.Store{first, second}[operator].CreateApplication(t.Context(), application)
			})
			refused := slices.IndexFunc(errs[:], func(err error) bool { return err != nil })
			if refused < 0 || !errors.Is(errs[refused], refusal) || errs[1-refused] != nil {
				t.Fatalf("%s: errors are %v, want one %v", name, errs, refusal)
			}
			left, err := first.Provider(t.Context(), own[refused])
			processtest.Must(t, err)
			if left.Common().Application.ID != 0 || left.Common().Backchannel.ApplicationID != 0 {
				t.Errorf("%s: the refused operator left %+v", name, left)
			}
		}
	}
	if applications := Collect(t, second.Applications(t.Context())); len(applications) != 5*3 {
		t.Errorf("%d applications, want 15", len(applications))
	}
}
