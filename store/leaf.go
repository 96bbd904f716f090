package store

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
	"gorm.io/gorm"
)

// Leaf is the leaf hash (RFC 6962, section 2.1) of the canonical JSON (RFC 8785) of a record: an object with each
// column that is not NULL, in which a MAC stands for the secret. Rotating keys, resealing and copying leave it
// unchanged. It is nil if it is not known.
type Leaf []byte

// leafOf returns the leaf of an opened record. It returns ErrDamaged if the record is not UTF-8.
func leafOf(keys *loadedKeys, record Record) (Leaf, error) {
	common := record.Common()
	_, secret := record.secret()
	digest, err := keys.Digest(secret)
	if err != nil {
		return nil, err
	}
	columns := map[string]any{"pk": common.PK}
	for _, column := range append(common.columns(), record.settings()...) {
		if column.value != nil {
			columns[column.name] = column.value
		}
	}
	columns["secret"] = digest
	leaf, err := hashColumns(columns)
	if err != nil {
		return nil, fmt.Errorf("provider %d: %w: %w", common.PK, ErrDamaged, err)
	}
	return leaf, nil
}

// hashColumns returns the leaf of the columns of a row. It returns an error if they are not UTF-8.
func hashColumns(columns map[string]any) (Leaf, error) {
	text, err := json.Marshal(columns)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	if err := (*jsontext.Value)(&text).Canonicalize(); err != nil {
		return nil, fmt.Errorf("write canonical JSON: %w", err)
	}
	hash := tlog.RecordHash(text)
	return hash[:], nil
}

// leavesIn returns the leaves of the records that a query selects, or why they cannot be computed.
func (s *Store) leavesIn(query *gorm.DB) (map[int64]readable[Leaf], error) {
	keys, err := s.keys.latest(query.Session(&gorm.Session{NewDB: true}))
	if err != nil {
		return nil, err
	}
	records, err := recordsIn(query)
	if err != nil {
		return nil, err
	}
	leaves := map[int64]readable[Leaf]{}
	for _, record := range records {
		leaf := readable[Leaf]{damaged: record.damaged}
		if leaf.damaged == nil {
			leaf.value, leaf.damaged = leafOfSealed(keys, record.value)
		}
		leaves[record.value.Common().PK] = leaf
	}
	return leaves, nil
}

func leafOfSealed(keys *loadedKeys, record Record) (Leaf, error) {
	opened, err := open(keys, record)
	if err != nil {
		return nil, err
	}
	return leafOf(keys, opened)
}
