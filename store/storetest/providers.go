package storetest

import (
	"reflect"
	"testing"

	"example.com/providerd/store"
)

func testProvidersAreStoredAsGiven(t *testing.T, database *store.Store) {
	oauth2 := fullOAuth2("shop")
	expectFull(t, oauth2)
	expectFull(t, fullWorkspaceDirectory())
	created, _, err := database.CreateOAuth2Provider(t.Context(), creation("Shop"), oauth2)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(created.OAuth2Settings, oauth2) || created.Name != "Shop" || created.CreatedBy != "caller" ||
		created.RequestID != "request" || created.Kind != store.KindOAuth2 || created.CreatedAt.IsZero() {
		t.Errorf("created %+v, want %+v", created, oauth2)
	}
	expectRecord(t, database, created)
	byClientID, err := database.ProviderByClientID(t.Context(), "shop")
	if err != nil || !reflect.DeepEqual(byClientID, store.Record(created)) {
		t.Errorf("by client_id: %+v, %v, want %+v", byClientID, err, created)
	}
	expectRecord(t, database, createWorkspaceDirectory(t, database))
}

// expectFull fails if a field of the settings has its zero value, which a missing column would also give.
func expectFull(t *testing.T, settings any) {
	t.Helper()
	fields := reflect.ValueOf(settings)
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			t.Errorf("%T.%s has its zero value", settings, fields.Type().Field(i).Name)
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
