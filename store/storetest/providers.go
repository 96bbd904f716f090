package storetest

import (
	"reflect"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest/processtest"
)

// fullCreation has a value other than the zero value in every field that is stored.
func fullCreation(key string) store.CreateRequest {
	request := keyed(key, "Shop")
	request.Generated, request.RemoteAddress = store.GeneratedClientID|store.GeneratedSecret, "192.0.2.1"
	return request
}

// testProvidersAreStoredAsGiven also finds a field that a create, a read, a change or a comparison forgets.
func testProvidersAreStoredAsGiven(t *testing.T, database *store.Store) {
	oauth2, _, err := database.CreateOAuth2Provider(t.Context(), fullCreation("a"), FullOAuth2("shop"))
	directory, _, directoryErr := database.CreateWorkspaceDirectoryProvider(t.Context(), fullCreation("a"), FullWorkspaceDirectory())
	processtest.Must(t, err, directoryErr)
	expectFull(t, oauth2.Provider)
	expectFull(t, oauth2.OAuth2Settings)
	expectFull(t, directory.WorkspaceDirectorySettings)
	if !reflect.DeepEqual(oauth2.OAuth2Settings, FullOAuth2("shop")) || oauth2.Name != "Shop" || oauth2.Kind != store.KindOAuth2 ||
		!reflect.DeepEqual(directory.WorkspaceDirectorySettings, FullWorkspaceDirectory()) {
		t.Errorf("created %+v and %+v", oauth2, directory)
	}
	expectRecord(t, database, oauth2)
	expectRecord(t, database, directory)
	byClientID, err := database.ProviderByClientID(t.Context(), "shop")
	if err != nil || !reflect.DeepEqual(byClientID, store.Record(oauth2)) {
		t.Errorf("by client_id: %+v, %v, want %+v", byClientID, err, oauth2)
	}
	expectEveryChange(t, database, oauth2, plainOAuth2())
	expectEveryChange(t, database, directory, plainWorkspaceDirectory())
}

// plainOAuth2 differs from FullOAuth2 in every field.
func plainOAuth2() store.OAuth2Provider {
	return store.OAuth2Provider{OAuth2Settings: store.OAuth2Settings{
		PropertyMappings: []uuid.UUID{}, ClientType: "public", SubMode: "user_id", IssuerMode: "per_provider", JWKSSources: []uuid.UUID{},
	}}
}

// plainWorkspaceDirectory differs from FullWorkspaceDirectory in every field.
func plainWorkspaceDirectory() store.WorkspaceDirectoryProvider {
	return store.WorkspaceDirectoryProvider{WorkspaceDirectorySettings: store.WorkspaceDirectorySettings{
		PropertyMappings: []uuid.UUID{}, PropertyMappingsGroup: []uuid.UUID{}, Credentials: store.NewSecret("{}"),
		UserDeleteAction: "do_nothing", GroupDeleteAction: "do_nothing",
	}}
}

// expectEveryChange expects that every field of the settings and the name differ, and changes them.
func expectEveryChange(t *testing.T, database *store.Store, planned, requested store.Record) {
	t.Helper()
	differing, err := store.Differing(planned, requested)
	if settings := reflect.ValueOf(planned).Field(1); err != nil || len(differing) != settings.NumField()+1 {
		t.Errorf("%v of %s differ, want every field: %v", differing, settings.Type(), err)
	}
	changes := []store.Change{{Planned: planned, Requested: requested, Fields: differing}}
	processtest.Must(t, database.ChangeProviders(t.Context(), changes))
	changed, err := database.Provider(t.Context(), planned.Common().PK)
	processtest.Must(t, err)
	if got, want := reflect.ValueOf(changed).Field(1).Interface(), reflect.ValueOf(requested).Field(1).Interface(); !reflect.DeepEqual(got, want) {
		t.Errorf("changed to %+v, want %+v", got, want)
	}
	common := changed.Common()
	if common.Name != "" || common.IdempotencyKey != nil || common.Generated != 0 || common.UID != planned.Common().UID {
		t.Errorf("changed to %+v", common)
	}
}

// expectFull fails if a stored field has its zero value, which a missing column would also give.
func expectFull(t *testing.T, stored any) {
	t.Helper()
	fields := reflect.ValueOf(stored)
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if fields.Field(i).IsZero() && field.Name != "Application" && field.Name != "Backchannel" {
			t.Errorf("%T.%s has its zero value", stored, field.Name)
		}
	}
}

// expectRecord reads a record, which must be as it was created.
func expectRecord(t *testing.T, database *store.Store, want store.Record) {
	t.Helper()
	record, err := database.Provider(t.Context(), want.Common().PK)
	if err != nil || !reflect.DeepEqual(record, want) {
		t.Errorf("read %+v, %v, want %+v", record, err, want)
	}
}
