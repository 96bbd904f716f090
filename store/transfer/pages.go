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

// pageRows and pageBytes limit what is in memory at a time, and what one transaction writes: the row that reaches
// either limit is the last of its page.
const (
	pageRows  = 4000
	pageBytes = 4 << 20
)

// maxKey is the highest possible key.
const maxKey = math.MaxInt64

// page is consecutive rows of a table, ordered by key. It is valid until the next page is read.
type page struct {
	rows [][]any
	// encoded is the concatenated encodings of the rows.
	encoded []byte
	// last is the key of the last row.
	last int64
}

func (p *page) isFull() bool { return len(p.rows) >= pageRows || len(p.encoded) >= pageBytes }

// add scans the current row into the page.
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
				return fmt.Errorf("read row %v of %s: %s: %w", values[0], t.name, column.name, err)
			}
		}
		p.encoded = appendValue(p.encoded, values[i])
	}
	p.rows, p.last = append(p.rows, values), values[0].(int64)
	return nil
}

// read reads the rows with keys above after and up to last in one statement, and calls take with each page.
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

// Content summarizes what a table holds.
type Content struct {
	// Table is the name of the table.
	Table string
	// Rows is the number of rows.
	Rows int64
	// Digest is the SHA-256 of all values in key order, in hexadecimal. It does not depend on the kind of database.
	Digest string
}

// content returns what a table holds, and calls take with each page.
func (t table) content(tx *gorm.DB, take func(p page) error) (Content, error) {
	content, digest := Content{Table: t.name}, sha256.New()
	err := t.read(tx, 0, maxKey, func(p page) error {
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
