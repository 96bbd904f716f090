package storetest

import (
	"errors"
	"reflect"
	"slices"

	"example.com/providerd/store"
)

// attempt is a create and its outcome.
type attempt struct {
	request   store.CreateRequest
	oauth2    *store.OAuth2Settings
	directory *store.WorkspaceDirectorySettings

	record   store.Record
	replayed bool
	err      error
}

// scope is an idempotency key and what it belongs to.
type scope struct {
	kind   store.Kind
	caller string
	key    string
}

func (a *attempt) scope() scope {
	if a.request.IdempotencyKey == nil {
		return scope{}
	}
	kind := store.KindWorkspaceDirectory
	if a.oauth2 != nil {
		kind = store.KindOAuth2
	}
	return scope{kind: kind, caller: a.request.CreatedBy, key: *a.request.IdempotencyKey}
}

// isStored reports whether the store returned a new record.
func (a *attempt) isStored() bool { return a.err == nil && !a.replayed && !a.request.ValidateOnly }

// omits reports whether the caller omitted a value, so that the server chose it.
func (a *attempt) omits(value store.Generated) bool { return a.request.Generated&value != 0 }

// isRetryOf reports whether an attempt that uses the key of another requests the same. An omitted value equals a
// generated one.
func (a *attempt) isRetryOf(first *attempt) bool {
	if a.request.Name != first.request.Name || a.oauth2 == nil {
		return a.request.Name == first.request.Name && reflect.DeepEqual(a.directory, first.directory)
	}
	requested := *a.oauth2
	if a.omits(store.GeneratedClientID) && first.omits(store.GeneratedClientID) {
		requested.ClientID = first.oauth2.ClientID
	}
	if a.omits(store.GeneratedSecret) && first.omits(store.GeneratedSecret) {
		requested.ClientSecret = first.oauth2.ClientSecret
	}
	return reflect.DeepEqual(requested, *first.oauth2)
}

// isAsRequested reports whether the record has the requested values.
func (a *attempt) isAsRequested() bool {
	common := a.record.Common()
	if common.PK <= 0 || common.Name != a.request.Name || common.CreatedBy != a.request.CreatedBy {
		return false
	}
	switch record := a.record.(type) {
	case store.OAuth2Provider:
		return a.oauth2 != nil && reflect.DeepEqual(record.OAuth2Settings, *a.oauth2)
	case store.WorkspaceDirectoryProvider:
		return a.directory != nil && reflect.DeepEqual(record.WorkspaceDirectorySettings, *a.directory)
	default:
		return false
	}
}

// model is the expected state of a database that runs creates one after the other.
type model struct {
	records   map[int64]store.Record
	clientIDs map[string]bool
	// keys holds the attempts that created a record with a key.
	keys map[scope]*attempt
}

func newModel() *model {
	return &model{records: map[int64]store.Record{}, clientIDs: map[string]bool{}, keys: map[scope]*attempt{}}
}

// explains reports whether the attempt would have the same outcome in the model now.
func (m *model) explains(a *attempt) bool {
	if first := m.keys[a.scope()]; first != nil {
		if !a.isRetryOf(first) {
			reused, ok := errors.AsType[*store.KeyReusedError](a.err)
			return ok && reused.PK == first.record.Common().PK
		}
		return a.err == nil && a.replayed && reflect.DeepEqual(a.record, first.record)
	}
	if a.oauth2 != nil && m.clientIDs[a.oauth2.ClientID] {
		return errors.Is(a.err, store.ErrClientIDTaken)
	}
	if a.request.ValidateOnly {
		return a.err == nil && !a.replayed && a.record.Common().PK == 0
	}
	return a.isStored() && a.isAsRequested() && m.records[a.record.Common().PK] == nil
}

func (m *model) store(a *attempt) {
	m.records[a.record.Common().PK] = a.record
	if a.oauth2 != nil {
		m.clientIDs[a.oauth2.ClientID] = true
	}
	if a.request.IdempotencyKey != nil {
		m.keys[a.scope()] = a
	}
}

// settle finds an order in which the model gives concurrent attempts the outcomes that they had, and returns the
// attempts that fit into no order.
//
// An attempt that stores nothing comes as early as possible. One that stores a record comes after those with its key
// that were refused for a taken client_id, because after it they would have been replays.
func (m *model) settle(attempts []*attempt) (unexplained []*attempt) {
	for {
		attempts = slices.DeleteFunc(attempts, func(a *attempt) bool { return !a.isStored() && m.explains(a) })
		next := slices.IndexFunc(attempts, func(a *attempt) bool {
			return a.isStored() && m.explains(a) && !slices.ContainsFunc(attempts, func(other *attempt) bool {
				return other.scope() == a.scope() && a.scope() != scope{} && errors.Is(other.err, store.ErrClientIDTaken)
			})
		})
		if next < 0 {
			return attempts
		}
		m.store(attempts[next])
		attempts = slices.Delete(attempts, next, next+1)
	}
}
