package sqlite_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store/database"
)

// reserve reserves pks in a batch and stores providers with them.
func (r *rig) reserve(t *testing.T, count int) ([]int32, error) {
	t.Helper()
	var pks []int32
	err := r.batches.Commit(t.Context(), 0, func(tx database.Batch) (err error) {
		if pks, err = tx.ReservePKs(count); err != nil {
			return err
		}
		for _, pk := range pks {
			err := tx.DB().Exec(`INSERT INTO providers (pk, kind, name, created_at, created_by, request_id, remote_address)
				VALUES (?, 'oauth2', '', '', '', '', '')`, pk).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
	return pks, err
}

// Pks ascend by one. Those of a failed batch are assigned again, those of deleted rows are not.
func TestReservedPKsAscend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, test := range []struct {
		do    string
		count int
		want  []int32
	}{
		{count: 3, want: []int32{1, 2, 3}},
		{count: 0, want: []int32{}},
		{count: 1, want: []int32{4}},
		{do: "DELETE FROM providers", count: 2, want: []int32{5, 6}},
		{do: "UPDATE sqlite_sequence SET seq = 2147483644 WHERE name = 'providers'", count: 2, want: []int32{2147483645, 2147483646}},
		{count: 2, want: []int32{math.MaxInt32}},
		{count: 256, want: []int32{}},
	} {
		if test.do != "" {
			if err := r.Change(t.Context(), executing(test.do)); err != nil {
				t.Fatal(err)
			}
		}
		var lost []int32
		if err := r.batches.Commit(t.Context(), 0, func(tx database.Batch) (err error) {
			lost, err = tx.ReservePKs(test.count)
			return errors.Join(err, errOwn)
		}); !errors.Is(err, errOwn) {
			t.Error(err)
		}
		pks, err := r.reserve(t, test.count)
		if err != nil || !slices.Equal(pks, test.want) || !slices.Equal(lost, test.want) {
			t.Errorf("batch %d of %d: pks are %v, before the rollback %v, want %v, %v", i, test.count, pks, lost, test.want, err)
		}
	}
	r.close(t)
}

// While no pk can be assigned, Check fails, and validations are refused like creates.
func TestCheckDetectsDamagedPKs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.reserve(t, 3); err != nil {
		t.Fatal(err)
	}
	const set = "UPDATE sqlite_sequence SET seq = %s WHERE name = 'providers'"
	for _, seq := range []string{"2", "-3000000000", "-1", "0", "'text'", "'2'||''", "1.5", "1e300", "x'01'", "NULL"} {
		if err := r.Change(t.Context(), executing(fmt.Sprintf(set, seq))); err != nil {
			t.Fatal(err)
		}
		_, err := r.reserve(t, 1)
		canStore, readErr := r.read(t.Context())
		for _, err := range []error{err, canStore, r.Check(t.Context())} {
			if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), "restore a backup") {
				t.Errorf("%s: error is %v", seq, err)
			}
		}
		if readErr != nil {
			t.Errorf("%s: %v", seq, readErr)
		}
	}
	if err := r.Change(t.Context(), executing(fmt.Sprintf(set, "3"))); err != nil {
		t.Fatal(err)
	}
	pks, err := r.reserve(t, 1)
	if err := errors.Join(err, r.Check(t.Context())); err != nil || !slices.Equal(pks, []int32{4}) {
		t.Errorf("pks: %v, %v", pks, err)
	}
	r.close(t)
}
