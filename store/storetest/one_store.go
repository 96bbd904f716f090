package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"example.com/providerd/store"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
	"example.com/providerd/store/token"
)

// testProvidersAreStoredAsGiven also finds a field that a create, a read, a change or a comparison forgets.
func testProvidersAreStoredAsGiven(t *testing.T, database *store.Store) {
	request := keyed("a", "Shop")
	request.Generated, request.RemoteAddress = records.GeneratedClientID|records.GeneratedSecret, "192.0.2.1"
	oauth2, _, err := database.Providers.CreateOAuth2(t.Context(), request, FullOAuth2("shop"))
	directory, _, directoryErr := database.Providers.CreateWorkspaceDirectory(t.Context(), request, FullWorkspaceDirectory())
	processtest.Must(t, err, directoryErr)
	// A field with its zero value would not show that its column is missing.
	for _, full := range []any{oauth2.Provider, oauth2.OAuth2Settings, directory.WorkspaceDirectorySettings} {
		for field, value := range reflect.ValueOf(full).Fields() {
			processtest.Expect(t, !value.IsZero() || field.Name == "Application" || field.Name == "Backchannel",
				"%T.%s has its zero value", full, field.Name)
		}
	}
	if !reflect.DeepEqual(oauth2.OAuth2Settings, FullOAuth2("shop")) || oauth2.Name != "Shop" || oauth2.Kind != records.KindOAuth2 ||
		!reflect.DeepEqual(directory.WorkspaceDirectorySettings, FullWorkspaceDirectory()) {
		t.Errorf("created %+v and %+v", oauth2, directory)
	}
	expectRecord(t, database, oauth2)
	expectRecord(t, database, directory)
	byClientID, err := database.Providers.ByClientID(t.Context(), "shop")
	processtest.Expect(t, err == nil && reflect.DeepEqual(byClientID, records.Record(oauth2)),
		"by client_id: %+v, %v, want %+v", byClientID, err, oauth2)
	expectEveryChange(t, database, oauth2, records.OAuth2Provider{OAuth2Settings: records.OAuth2Settings{
		PropertyMappings: []uuid.UUID{}, ClientType: "public", SubMode: "user_id", IssuerMode: "per_provider", JWKSSources: []uuid.UUID{},
	}})
	expectEveryChange(t, database, directory, records.WorkspaceDirectoryProvider{WorkspaceDirectorySettings: records.WorkspaceDirectorySettings{
		PropertyMappings: []uuid.UUID{}, PropertyMappingsGroup: []uuid.UUID{}, Credentials: seal.NewSecret("{}"),
		UserDeleteAction: "do_nothing", GroupDeleteAction: "do_nothing",
	}})
}

// expectEveryChange expects that every field of the settings and the name differ, and changes them.
func expectEveryChange(t *testing.T, database *store.Store, planned, requested records.Record) {
	t.Helper()
	differing, err := records.Differing(planned, requested)
	if settings := reflect.ValueOf(planned).Field(1); err != nil || len(differing) != settings.NumField()+1 {
		t.Errorf("%v of %s differ, want every field: %v", differing, settings.Type(), err)
	}
	changes := []store.Change{{Planned: planned, Requested: requested, Fields: differing}}
	processtest.Must(t, database.Providers.ChangePlanned(t.Context(), changes))
	changed := processtest.Try(database.Providers.Get(t.Context(), planned.Common().PK)).Must(t)
	if got, want := reflect.ValueOf(changed).Field(1).Interface(), reflect.ValueOf(requested).Field(1).Interface(); !reflect.DeepEqual(got, want) {
		t.Errorf("changed to %+v, want %+v", got, want)
	}
	common := changed.Common()
	if common.Name != "" || common.IdempotencyKey != nil || common.Generated != 0 || common.UID != planned.Common().UID {
		t.Errorf("changed to %+v", common)
	}
}

// expectRecord reads a record, which must be as it was created.
func expectRecord(t *testing.T, database *store.Store, want records.Record) {
	t.Helper()
	record, err := database.Providers.Get(t.Context(), want.Common().PK)
	processtest.Expect(t, err == nil && reflect.DeepEqual(record, want), "read %+v, %v, want %+v", record, err, want)
}

// testValuesOfABatch stores records of any text and size together, which a database may write differently from a single
// record.
func testValuesOfABatch(t *testing.T, database *store.Store) {
	ctx := t.Context()
	texts := rapid.StringOf(rapid.RuneFrom([]rune("\"\\/<>&{}[],:'%$?\a\b\n\r\t\x01\x1f\x7f\u0085\u2028\u2029é🔑")))
	rapid.Check(t, func(t *rapid.T) {
		requests := rapid.SliceOfN(texts, 2, 24).Draw(t, "texts")
		long := rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 1, 20_000}), len(requests), len(requests)).Draw(t, "length")
		creates := make([]attempt, len(requests))
		concurrently(len(requests), func(i int) {
			text, c := strings.Repeat(requests[i], long[i]), &creates[i]
			c.request = store.CreateRequest{Name: text, CreatedBy: text, RequestID: text, RemoteAddress: text}
			if i%4 == 0 {
				c.directory = new(FullWorkspaceDirectory())
			} else if c.oauth2 = new(FullOAuth2(uuid.NewString() + requests[i])); i%3 > 0 {
				c.oauth2.ClientSecret, c.oauth2.RedirectURIs = seal.NewSecret(text), text
				c.oauth2.AuthenticationFlow, c.oauth2.SigningKey, c.oauth2.PropertyMappings = nil, nil, []uuid.UUID{}
			}
			// On a busy machine, so much text may exceed the deadline of a create.
			for tries := 0; tries == 0 || tries < 5 && errors.Is(c.err, store.ErrUnavailable); tries++ {
				c.create(ctx, database)
			}
		})
		for _, c := range creates {
			processtest.Must(t, c.err)
			read, err := database.Providers.Get(ctx, c.record.Common().PK)
			processtest.Expect(t, err == nil && reflect.DeepEqual(read, c.record), "read %+v, %v, want %+v", read, err, c.record)
		}
	})
}

// testRefusedValues creates 256 providers simultaneously, one of which has a value that a database may refuse. The
// database stores that one as given or refuses it, and stores the others. A refused create does not use up its key.
func testRefusedValues(t *testing.T, database *store.Store) {
	for what, set := range map[string]func(settings *records.OAuth2Settings){
		"U+0000":                func(settings *records.OAuth2Settings) { settings.ClientID += "a\x00b" },
		"invalid UTF-8":         func(settings *records.OAuth2Settings) { settings.ClientID += "a\xffb" },
		"too long for an index": func(settings *records.OAuth2Settings) { settings.ClientID += seal.RandomAlphanumeric(20_000) },
		"not of an enumeration": func(settings *records.OAuth2Settings) { settings.SubMode = "other" },
	} {
		for round := 1; createAround(t, database, fmt.Sprint(what, round, "/"), set) == 1; round++ {
			t.Logf("%s: the create was alone; trying again", what)
		}
	}
}

// createAround creates a provider with a value among 255 others with a prefix, and returns the size of its batch.
func createAround(t *testing.T, database *store.Store, prefix string, set func(settings *records.OAuth2Settings)) int {
	const count, refused = 256, 100
	creates, timing := make([]attempt, count), store.Timing{}
	for i := range creates {
		creates[i] = attempt{request: keyed(fmt.Sprint(prefix, i), "x"), oauth2: new(FullOAuth2(fmt.Sprint(prefix, i)))}
	}
	creates[refused].request.Timing = &timing
	set(creates[refused].oauth2)
	concurrently(count, func(i int) { creates[i].create(t.Context(), database) })
	for i, c := range creates {
		if c.err != nil && (i != refused || errors.Is(c.err, store.ErrUnavailable) || errors.Is(c.err, store.ErrOutcomeUnknown)) {
			t.Errorf("%s: create %d: %v", prefix, i, c.err)
		} else if c.err == nil {
			expectRecord(t, database, c.record)
		}
	}
	batchSize, retry, isStored := timing.BatchSize, creates[refused], creates[refused].err == nil
	if !isStored {
		*retry.oauth2 = FullOAuth2(prefix)
	}
	if retry.create(t.Context(), database); retry.err != nil || retry.replayed != isStored {
		t.Errorf("%s: a retry is replayed: %v, want %v, %v", prefix, retry.replayed, isStored, retry.err)
	}
	return batchSize
}

// testFailingRows runs creates that fail and creates that succeed in the same batches.
func testFailingRows(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "taken")
	const count = 300
	concurrently(count, func(i int) {
		clientID := fmt.Sprint(i)
		if i%3 == 0 {
			clientID = "taken"
		}
		_, _, err := database.Providers.CreateOAuth2(t.Context(), creation("x"), FullOAuth2(clientID))
		if taken := errors.Is(err, store.ErrClientIDTaken); taken != (i%3 == 0) || !taken && err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	})
	processtest.Equal(t, len(stored(t, database)), 1+count*2/3, "stored records")
}

// testEventsDuringCreates reads the log during creates, each time after the last event, and expects all events.
func testEventsDuringCreates(t *testing.T, database *store.Store) {
	const count = 700
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		concurrently(count, func(i int) { createOAuth2(t, database, fmt.Sprint(i)) })
	}()
	var read []event.Event
	for isDone := false; !isDone; {
		isDone = ctx.Err() != nil
		var last audit.Cursor
		if len(read) > 0 {
			last.ID, last.At = read[len(read)-1].ID, read[len(read)-1].At
		}
		for page, err := range database.Log.Pages(t.Context(), event.Filter{}, last, func(string) {}) {
			processtest.Must(t, err)
			for _, entry := range page.Entries {
				read = append(read, entry.Event)
			}
		}
	}
	events := Collect(t, database.Events.List(t.Context(), event.Filter{}, 0))
	processtest.Equal(t, read, events, "events read during the creates, and after them")
	processtest.Equal(t, len(events), count+1, "events, for each create and a key")
	for i, event := range events[1:] {
		if event.ID <= events[i].ID {
			t.Errorf("%+v follows %+v", event, events[i])
		}
	}
}

// testEndOfLog reads the log to its end from different cursors, and expects that the last page ends with the last event
// and its time, which another event with the same ID does not have.
func testEndOfLog(t *testing.T, database *store.Store) {
	const count = 3
	for i := range count {
		createOAuth2(t, database, fmt.Sprint(i))
	}
	events := Collect(t, database.Events.List(t.Context(), event.Filter{}, 0))
	last := audit.Cursor{ID: events[count].ID, At: events[count].At}
	read := func(filter event.Filter, after audit.Cursor) (pages int, end audit.Cursor, err error) {
		for page, err := range database.Log.Pages(t.Context(), filter, after, func(string) {}) {
			if err != nil {
				return pages, end, err
			}
			pages, end = pages+1, page.End
		}
		return pages, end, nil
	}
	for _, filter := range []event.Filter{{}, {RequestID: "none"}} {
		for _, after := range []audit.Cursor{{}, {ID: events[1].ID, At: events[1].At}, {ID: last.ID}} {
			if _, end, err := read(filter, after); err != nil || end != last {
				t.Errorf("after %v, %+v ends at %v, %v, want %v", after, filter, end, err, last)
			}
		}
		if pages, _, err := read(filter, last); err != nil || pages > 0 {
			t.Errorf("%d pages follow the last event, %v", pages, err)
		}
		for _, known := range events {
			after := audit.Cursor{ID: known.ID, At: known.At}
			after.At.Time = known.At.Add(time.Microsecond)
			if pages, _, err := read(filter, after); pages > 0 || !errors.Is(err, audit.ErrEnded) {
				t.Errorf("after another event %d there are %d pages, %v, want ErrLogEnded", known.ID, pages, err)
			}
		}
	}
}

// testTokenExpiry checks that the newest token of a caller counts, unless it is revoked or has a short lifetime.
func testTokenExpiry(t *testing.T, database *store.Store) {
	const day = 24 * time.Hour
	if expiry, err := database.Tokens.Expiry(t.Context(), day); err != nil || expiry != (token.Expiry{}) {
		t.Errorf("without tokens it is %+v, %v", expiry, err)
	}
	tokens := map[string]token.Token{}
	for name, lengths := range map[string][]time.Duration{"a": {2 * day, 30 * day}, "b": {10 * day}, "c": {3 * day}, "d": {day}} {
		for _, length := range lengths {
			_, token, err := database.Tokens.Create(t.Context(), token.Grant{
				Name: name, Operations: []string{"one"}, ExpiresIn: length,
			})
			processtest.Must(t, err)
			tokens[name] = token
		}
	}
	processtest.Must(t, database.Tokens.Revoke(t.Context(), tokens["c"].ID))
	for notice, want := range map[time.Duration]time.Time{day: tokens["b"].ExpiresAt.Time, 12 * day: tokens["a"].ExpiresAt.Time, 40 * day: {}} {
		expiry, err := database.Tokens.Expiry(t.Context(), notice)
		processtest.Expect(t, err == nil && expiry.Callers == 0 && expiry.First.Equal(want),
			"with notice %v it is %+v, %v, want %v", notice, expiry, err, want)
	}
}
