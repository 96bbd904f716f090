package client

// Ptr returns a pointer to a copy of a value, for the optional fields of a request, as the built-in new does.
func Ptr[T any](value T) *T { return new(value) }
