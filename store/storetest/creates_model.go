package storetest

import (
	"errors"
	"reflect"
	"slices"

	"example.com/providerd/store"
)

// try is one create with what became of it.
type try struct {
	request   store.CreateRequest
	oauth2    *store.OAuth2Settings
	directory *store.WorkspaceDirectorySettings

	record   store.Record
	replayed bool
	err      error
}

// scope is what a try's key belongs to, with the key.
type scope struct {
	kind   store.Kind
	caller string
	key    string
}

func (t *try) scope() scope {
	if t.request.IdempotencyKey == nil {
		return scope{}
	}
	kind := store.KindWorkspaceDirectory
	if t.oauth2 != nil {
		kind = store.KindOAuth2
	}
	return scope{kind: kind, caller: t.request.CreatedBy, key: *t.request.IdempotencyKey}
}

// isStored tells whether the try says that it made a record.
func (t *try) isStored() bool { return t.err == nil && !t.replayed && !t.request.ValidateOnly }

// isAsAsked tells whether the record has what the try asked for.
func (t *try) isAsAsked() bool {
	common := t.record.Common()
	if common.PK <= 0 || common.Name != t.request.Name || common.CreatedBy != t.request.CreatedBy {
		return false
	}
	switch record := t.record.(type) {
	case store.OAuth2Provider:
		return t.oauth2 != nil && reflect.DeepEqual(record.OAuth2Settings, *t.oauth2)
	case store.WorkspaceDirectoryProvider:
		return t.directory != nil && reflect.DeepEqual(record.WorkspaceDirectorySettings, *t.directory)
	default:
		return false
	}
}

// model is what a database must be like that carries out one create after another.
type model struct {
	records   map[int32]store.Record
	clientIDs map[string]bool
	// keys has the tries that made a record with a key.
	keys map[scope]*try
}

func newModel() *model {
	return &model{records: map[int32]store.Record{}, clientIDs: map[string]bool{}, keys: map[scope]*try{}}
}

// explains tells whether what became of a try is what becomes of it in the model now.
func (m *model) explains(one *try) bool {
	if first := m.keys[one.scope()]; first != nil {
		if string(first.request.BodyDigest) != string(one.request.BodyDigest) {
			reused, ok := errors.AsType[*store.KeyReusedError](one.err)
			return ok && reused.PK == first.record.Common().PK
		}
		return one.err == nil && one.replayed && reflect.DeepEqual(one.record, first.record)
	}
	if one.oauth2 != nil && m.clientIDs[one.oauth2.ClientID] {
		return errors.Is(one.err, store.ErrClientIDTaken)
	}
	if one.request.ValidateOnly {
		return one.err == nil && !one.replayed && one.record.Common().PK == 0
	}
	return one.isStored() && one.isAsAsked() && m.records[one.record.Common().PK] == nil
}

func (m *model) store(one *try) {
	m.records[one.record.Common().PK] = one.record
	if one.oauth2 != nil {
		m.clientIDs[one.oauth2.ClientID] = true
	}
	if one.request.IdempotencyKey != nil {
		m.keys[one.scope()] = one
	}
}

// settle looks for an order in which the model carries out tries that were made at a time, with the same outcomes. It
// returns those that fit into none.
//
// A try that stores nothing comes as early as it fits. One that stores comes later than those that were refused with its
// key for a client_id that was taken, since they would have been replays after it.
func (m *model) settle(tries []*try) (unexplained []*try) {
	for {
		tries = slices.DeleteFunc(tries, func(one *try) bool { return !one.isStored() && m.explains(one) })
		next := slices.IndexFunc(tries, func(one *try) bool {
			return one.isStored() && m.explains(one) && !slices.ContainsFunc(tries, func(other *try) bool {
				return other.scope() == one.scope() && one.scope() != scope{} && errors.Is(other.err, store.ErrClientIDTaken)
			})
		})
		if next < 0 {
			return tries
		}
		m.store(tries[next])
		tries = slices.Delete(tries, next, next+1)
	}
}
