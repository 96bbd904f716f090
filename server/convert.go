package server

// noStore is the value of Cache-Control in the answer of a record, which has secrets.
const noStore = "no-store"

// valueOr is what was sent, or a default.
func valueOr[T any](sent *T, otherwise T) T {
	if sent != nil {
		return *sent
	}
	return otherwise
}
