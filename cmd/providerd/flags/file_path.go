package flags

// FilePath is the path of a file.
type FilePath string

// UnmarshalText makes the checks of CheckFileName.
func (p *FilePath) UnmarshalText(text []byte) error {
	*p = FilePath(text)
	return CheckFileName(string(text))
}
