package token

// NewText returns the text of a new token.
func NewText() string { return newText() }
