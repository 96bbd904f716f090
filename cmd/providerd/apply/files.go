package apply

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"example.com/providerd/cmd/providerd/apply/manifest"
)

const (
	// maxFileBytes limits the size of all files together.
	maxFileBytes = 64 << 20
	// maxFiles limits the number of files.
	maxFiles = 10_000
)

// source is the path of a file to read, or "" for standard input.
type source string

func (s source) String() string {
	if s == "" {
		return "standard input"
	}
	return string(s)
}

func (s source) open() (io.ReadCloser, error) {
	if s == "" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(string(s)) //nolint:wrapcheck // The error names the file.
}

// readFiles reads files, standard input, and the .yaml and .yml files of directories.
func readFiles(names []string) ([]manifest.File, error) {
	var sources []source
	for _, name := range names {
		found, err := sourcesOf(name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, found...)
	}
	if len(sources) > maxFiles {
		return nil, fmt.Errorf("more than %d files; apply one directory at a time", maxFiles)
	}
	left := int64(maxFileBytes)
	var files []manifest.File
	for i, source := range sources {
		if slices.Contains(sources[:i], source) {
			return nil, fmt.Errorf("%s was passed twice", source)
		}
		text, err := readFile(source, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(text))
		files = append(files, manifest.File{Name: source.String(), Text: text})
	}
	return files, nil
}

func sourcesOf(name string) ([]source, error) {
	if name == "-" {
		return []source{""}, nil
	}
	path := filepath.Clean(name)
	// Only a directory is opened here: a pipe that is opened twice loses data.
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []source{source(path)}, nil //nolint:nilerr // Reading it returns a better error.
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	var sources []source
	for _, entry := range entries {
		if extension := filepath.Ext(entry.Name()); !entry.IsDir() && (extension == ".yaml" || extension == ".yml") {
			sources = append(sources, source(filepath.Join(path, entry.Name())))
		}
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("directory %s contains no .yaml or .yml files", path)
	}
	return sources, nil
}

func readFile(source source, limit int64) (text []byte, err error) {
	file, err := source.open()
	if err != nil {
		return nil, fmt.Errorf("read providers: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	text, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read providers from %s: %w", source, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("with %s, the files have more than %d MiB; apply fewer files at a time",
			source, maxFileBytes>>20)
	}
	return text, nil
}
