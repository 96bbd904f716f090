package apply

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// readFiles reads files, standard input, and the files of directories. It also returns the path of a subdirectory or
// YAML file in one of these directories that it did not read; "" if there is none.
func readFiles(names []string, isRecursive bool) (files []manifest.File, unread string, err error) {
	var sources []source
	for _, name := range names {
		found, left, err := sourcesOf(name, isRecursive)
		if err != nil {
			return nil, "", err
		}
		sources, unread = append(sources, found...), cmp.Or(unread, left)
	}
	if len(sources) > maxFiles {
		return nil, "", fmt.Errorf("more than %d files; apply one directory at a time", maxFiles)
	}
	left := int64(maxFileBytes)
	for i, source := range sources {
		if slices.Contains(sources[:i], source) {
			return nil, "", fmt.Errorf("%s was passed twice", source)
		}
		text, err := readFile(source, left)
		if err != nil {
			return nil, "", err
		}
		left -= int64(len(text))
		files = append(files, manifest.File{Name: source.String(), Dir: source.dir(), Text: text})
	}
	return files, unread, nil
}

func sourcesOf(name string, isRecursive bool) (sources []source, unread string, err error) {
	if name == "-" {
		return []source{""}, "", nil
	}
	path := filepath.Clean(name)
	// Only a directory is opened here: a pipe that is opened twice loses data.
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []source{source(path)}, "", nil //nolint:nilerr // Reading it returns a better error.
	}
	sources, unread, err = walk(path, isRecursive)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("read directory: %w", err)
	case len(sources) > 0:
		return sources, unread, nil
	case unread != "":
		return nil, "", fmt.Errorf("directory %s contains no visible .yaml, .yml or .json files; %s was not read; "+
			"pass --recursive to read subdirectories", path, unread)
	default:
		return nil, "", fmt.Errorf("directory %s contains no .yaml, .yml or .json files", path)
	}
}

// yamlName matches the names of YAML files, and of copies and templates of them.
func yamlName() *regexp.Regexp { return regexp.MustCompile(`(?i)\.ya?ml(\W|$)`) }

// walk returns the .yaml, .yml and .json files in a directory and, if isRecursive, below it. It skips hidden files and
// directories, such as those in which Kubernetes keeps the files of a ConfigMap, and does not follow symbolic links to
// directories. It also returns one of the other subdirectories and YAML files that it skips.
func walk(root string, isRecursive bool) (sources []source, unread string, err error) {
	// With a separator at its end, the root may be a symbolic link.
	root += string(filepath.Separator)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		isHidden := strings.HasPrefix(entry.Name(), ".")
		if isDirectory(path, entry) {
			return skip(path, entry, isHidden, isRecursive, &unread)
		}
		if !isHidden && isRelevant(path) {
			sources = append(sources, source(path))
		} else if yamlName().MatchString(entry.Name()) {
			unread = path
		}
		return nil
	})
	return sources, unread, err //nolint:wrapcheck // The caller wraps it.
}

// skip returns fs.SkipDir for a directory that is not read, and names one that is not hidden.
func skip(path string, entry fs.DirEntry, isHidden, isRecursive bool, unread *string) error {
	isRead := isRecursive && entry.IsDir()
	if !isHidden && !isRead {
		*unread = path
	}
	if entry.IsDir() && (isHidden || !isRead) {
		return fs.SkipDir
	}
	return nil
}

// isRelevant reports whether a file may list providers.
func isRelevant(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// isDirectory reports whether a path is a directory or a symbolic link to one.
func isDirectory(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir()
	}
	target, err := os.Stat(path)
	return err == nil && target.IsDir()
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
