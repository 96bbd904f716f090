package doctor

import (
	"example.com/providerd/cmd/providerd/flags"
)

// uncheckedURL is a flags.DatabaseURL that keeps its error, for the doctor to report.
type uncheckedURL struct {
	flags.DatabaseURL
	fault error
}

// UnmarshalText never returns an error.
func (u *uncheckedURL) UnmarshalText(text []byte) error {
	u.fault = u.DatabaseURL.UnmarshalText(text)
	return nil
}

func (u uncheckedURL) check() error { return u.fault }

// uncheckedPath is a path that keeps its error, for the doctor to report.
type uncheckedPath struct {
	path  string
	fault error
}

// UnmarshalText never returns an error.
func (p *uncheckedPath) UnmarshalText(text []byte) error {
	p.path, p.fault = flags.AbsolutePath(string(text))
	return nil
}

func (p uncheckedPath) check() error { return p.fault }
