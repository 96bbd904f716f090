package transfer

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"gorm.io/gorm"
)

// pageRows and pageBytes bound what is in memory at a time, and what one transaction writes: a page ends with the row
// that reaches one of them.
const (
	pageRows  = 4000
	pageBytes = 4 << 20
)

// lastOfAll is the highest key that there can be.
const lastOfAll = math.MaxInt32

// page is some rows of a table, in the order of their keys. It is valid until the next page is read.
type page struct {
	rows [][]any
	// encoded has the rows one after the other.
	encoded []byte
	// last is the key of the last row.
	last int64
}

func (p *page) isFull() bool { return len(p.rows) >= pageRows || len(p.encoded) >= pageBytes }

// add reads one row.
func (p *page) add(t table, rows *sql.Rows) error {
	values, targets := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return fmt.Errorf("read %s: %w", t.name, err)
	}
	for i, column := range t.columns {
		if values[i] != nil {
			var err error
			if values[i], err = column.canonical(values[i]); err != nil {
				return fmt.Errorf("read the row %v of %s: %s: %w", values[0], t.name, column.name, err)
			}
		}
		p.encoded = appendValue(p.encoded, values[i])
	}
	p.rows, p.last = append(p.rows, values), values[0].(int64)
	return nil
}

// read reads the rows with keys from behind after up to last in one statement, and hands over page after page.
func (t table) read(tx *gorm.DB, after, last int64, take func(page) error) error {
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s > ? AND %[3]s <= ? ORDER BY %[3]s",
		strings.Join(t.columnNames(), ", "), t.name, t.key())
	rows, err := tx.Raw(query, after, last).Rows()
	if err != nil {
		return fmt.Errorf("read %s: %w", t.name, err)
	}
	defer func() { _ = rows.Close() }()
	var next page
	for rows.Next() {
		if err := next.add(t, rows); err != nil {
			return err
		}
		if !next.isFull() {
			continue
		}
		if err := take(next); err != nil {
			return err
		}
		next = page{rows: next.rows[:0], encoded: next.encoded[:0]}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read %s: %w", t.name, err)
	}
	if len(next.rows) == 0 {
		return nil
	}
	return take(next)
}

// Content is what a table has.
type Content struct {
	// Table is its name.
	Table string
	// Rows is how many there are.
	Rows int64
	// Digest is the SHA-256 of all values in the order of the keys, in hexadecimal digits. It is the same whichever kind
	// of database has them.
	Digest string
}

// content tells what a table has, and calls take with each page.
func (t table) content(tx *gorm.DB, take func(p page) error) (Content, error) {
	content, digest := Content{Table: t.name}, sha256.New()
	err := t.read(tx, 0, lastOfAll, func(p page) error {
		digest.Write(p.encoded)
		content.Rows += int64(len(p.rows))
		return take(p)
	})
	if err != nil {
		return Content{}, err
	}
	content.Digest = hex.EncodeToString(digest.Sum(nil))
	return content, nil
}
