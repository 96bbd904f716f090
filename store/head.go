package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Head is the size and the root of a Merkle tree (RFC 6962, section 2.1) over leaves of the event log.
type Head struct {
	Size int64
	Root tlog.Hash
	// Unknown is the number of leaves that are not known. In the tree of creates, each is the hash of nothing.
	Unknown int64
	// Damaged is the ErrDamaged of the first record that cannot be read; nil if there is none.
	Damaged error
}

// HeadOf returns the head over a table of the log, LogCreates or LogChanges, up to a key, or over the first size of
// these leaves if there are more. It returns ErrUnavailable.
func (s *Store) HeadOf(ctx context.Context, table int, upTo, size int64) (Head, error) {
	var tree merkleTree
	var head Head
	for event, err := range s.logOf(ctx, table, 0, upTo) {
		if err != nil {
			return Head{}, err
		}
		if tree.size == size {
			break
		}
		if event.Damaged != nil {
			head.Damaged = cmp.Or(head.Damaged, event.Damaged)
		}
		if *event.Leaf == nil {
			head.Unknown++
		}
		leaf := *event.Leaf
		if table == LogChanges {
			if leaf, err = event.leafOfChange(); err != nil {
				return Head{}, err
			}
		}
		hash := tlog.RecordHash(nil)
		copy(hash[:], leaf)
		tree.add(hash)
	}
	head.Size, head.Root = tree.size, tree.root()
	return head, nil
}

// leafOfChange returns the leaf hash of the canonical JSON of a change, which includes the leaf of the record after it.
func (e Event) leafOfChange() (Leaf, error) {
	columns := map[string]any{
		"id": e.Row.Key, "at": e.At.UTC(), "event": e.Event, "pk": e.ID, "user": e.User,
		"fields": append([]string{}, e.Fields...),
	}
	if *e.Leaf != nil {
		columns["leaf"] = []byte(*e.Leaf)
	}
	return hashColumns(columns)
}

// merkleTree computes the root of a tree from its leaves in order. It keeps only the roots of its complete subtrees,
// the largest first.
type merkleTree struct {
	size  int64
	roots []tlog.Hash
}

func (t *merkleTree) add(hash tlog.Hash) {
	for size := t.size; size&1 == 1; size >>= 1 {
		last := len(t.roots) - 1
		hash, t.roots = tlog.NodeHash(t.roots[last], hash), t.roots[:last]
	}
	t.size, t.roots = t.size+1, append(t.roots, hash)
}

func (t *merkleTree) root() tlog.Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	last := len(t.roots) - 1
	root := t.roots[last]
	for _, left := range slices.Backward(t.roots[:last]) {
		root = tlog.NodeHash(left, root)
	}
	return root
}
