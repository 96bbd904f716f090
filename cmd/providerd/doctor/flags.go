package doctor

import (
	"example.com/providerd/cmd/providerd/flags"
)

// examinedURL is a flags.DatabaseURL that may be wrong, which is for the doctor to find.
type examinedURL struct {
	flags.DatabaseURL
	fault error
}

// UnmarshalText refuses nothing.
func (u *examinedURL) UnmarshalText(text []byte) error {
	u.fault = u.DatabaseURL.UnmarshalText(text)
	return nil
}

func (u examinedURL) check() error { return u.fault }

// examinedPath is the path of a file that may be wrong, which is for the doctor to find.
type examinedPath struct {
	path  string
	fault error
}

// UnmarshalText refuses nothing.
func (p *examinedPath) UnmarshalText(text []byte) error {
	p.path, p.fault = flags.AbsolutePath(string(text))
	return nil
}

func (p examinedPath) check() error { return p.fault }
