package apply

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// dir returns the directory that the references of the file are relative to.
func (s source) dir() string {
	if s == "" {
		return "."
	}
	return filepath.Dir(string(s))
}

func (s source) open() (io.ReadCloser, error) {
	if s == "" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(string(s)) //nolint:wrapcheck // The error names the file.
}

// readFiles reads files, standard input, and the .yaml and .yml files of directories.
func readFiles(names []string, isRecursive bool) ([]manifest.File, error) {
	var sources []source
	for _, name := range names {
		found, err := sourcesOf(name, isRecursive)
		if err != nil {
			return nil, err
		}
		if sources = append(sources, found...); len(sources) > maxFiles {
			return nil, errTooManyFiles
		}
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
		files = append(files, manifest.File{Name: source.String(), Dir: source.dir(), Text: text})
	}
	return files, nil
}

var errTooManyFiles = fmt.Errorf("more than %d files; apply one directory at a time", maxFiles)

func sourcesOf(name string, isRecursive bool) ([]source, error) {
	if name == "-" {
		return []source{""}, nil
	}
	path := filepath.Clean(name)
	// Only a directory is opened here: a pipe that is opened twice loses data.
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []source{source(path)}, nil //nolint:nilerr // Reading it returns a better error.
	}
	sources, hasSubdirectories, err := walk(path, isRecursive)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read directory: %w", err)
	case len(sources) == 0 && hasSubdirectories && !isRecursive:
		return nil, fmt.Errorf("directory %s contains no .yaml or .yml files; pass --recursive to read its subdirectories",
			path)
	case len(sources) == 0:
		return nil, fmt.Errorf("directory %s contains no .yaml or .yml files", path)
	default:
		return sources, nil
	}
}

// walk returns the .yaml and .yml files in a directory and, if isRecursive, below it. It skips hidden directories, such
// as those in which Kubernetes keeps the files of a ConfigMap, and does not follow symbolic links to directories.
func walk(root string, isRecursive bool) (sources []source, hasSubdirectories bool, err error) {
	// With a separator at its end, the root may be a symbolic link.
	root += string(filepath.Separator)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == root:
			return nil
		case entry.IsDir():
			isHidden := strings.HasPrefix(entry.Name(), ".")
			hasSubdirectories = hasSubdirectories || !isHidden
			if !isRecursive || isHidden {
				return fs.SkipDir
			}
		case filepath.Ext(path) == ".yaml", filepath.Ext(path) == ".yml":
			sources = append(sources, source(path))
		}
		if len(sources) > maxFiles {
			return errTooManyFiles
		}
		return nil
	})
	return sources, hasSubdirectories, err //nolint:wrapcheck // The caller wraps it.
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
