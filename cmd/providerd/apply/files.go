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
	"strings"

	"example.com/providerd/cmd/providerd/apply/manifest"
)

const (
	// maxFileBytes limits the size of all files together.
	maxFileBytes = 64 << 20
	// stdin is the path of standard input.
	stdin = ""
)

// readFiles reads files, standard input, and the files of directories. It also returns the path of a subdirectory or
// YAML file in one of these directories that it did not read; "" if there is none.
func readFiles(names []string, isRecursive bool) (files []manifest.File, unread string, err error) {
	var paths []string
	for _, name := range names {
		found, left, err := find(name, isRecursive)
		if err != nil {
			return nil, "", err
		}
		paths, unread = append(paths, found...), cmp.Or(unread, left)
	}
	left, seen := maxFileBytes, map[string]bool{}
	for _, path := range paths {
		name := cmp.Or(path, "standard input")
		if seen[path] {
			return nil, "", fmt.Errorf("%s was passed twice", name)
		}
		seen[path] = true
		text, err := readFile(path, left+1)
		if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?[") {
			return nil, "", fmt.Errorf("read providers: %w; remove the quotes, or pass the directory: only a shell expands "+
				"patterns, and each file needs a --file of its own", err)
		}
		if err != nil {
			return nil, "", fmt.Errorf("read providers: %w", err)
		}
		if left -= len(text); left < 0 {
			return nil, "", fmt.Errorf("the files up to and including %s exceed %d MiB; apply fewer files at a time",
				name, maxFileBytes>>20)
		}
		files = append(files, manifest.File{Name: name, Dir: filepath.Dir(path), Text: text})
	}
	return files, unread, nil
}

// find returns the paths of the files that an argument names.
func find(name string, isRecursive bool) (paths []string, unread string, err error) {
	if name == "-" {
		return []string{stdin}, "", nil
	}
	path := filepath.Clean(name)
	// Only a directory is opened here: a pipe that is opened twice loses data.
	if !isDirectory(path) {
		return []string{path}, "", nil
	}
	paths, unread, err = walk(path, isRecursive)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("read directory: %w", err)
	case len(paths) > 0:
		return paths, unread, nil
	case unread != "":
		return nil, "", fmt.Errorf("directory %s contains no visible .yaml, .yml or .json files; %s was not read; "+
			"pass --recursive to read subdirectories", path, unread)
	}
	other := "is empty"
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		other = "has only others, such as " + entries[0].Name()
	}
	return nil, "", fmt.Errorf("directory %s contains no .yaml, .yml or .json files; it %s", path, other)
}

// walk returns the .yaml, .yml and .json files in a directory and, if isRecursive, below it. It skips JSON Schemas,
// hidden files and directories, such as those in which Kubernetes keeps a ConfigMap, and symbolic links to directories.
// It also returns one of the other subdirectories and YAML files that it skips, including copies and templates.
func walk(root string, isRecursive bool) (paths []string, unread string, err error) {
	// With a separator at its end, the root may be a symbolic link.
	root += string(filepath.Separator)
	isRead := regexp.MustCompile(`(?is)^[^.].*\.(ya?ml|json)$`).MatchString
	isYAML := regexp.MustCompile(`(?i)\.ya?ml(\W|$)`).MatchString
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		isDir, isHidden := isDirectory(path), strings.HasPrefix(entry.Name(), ".")
		switch {
		case entry.IsDir() && isRecursive && !isHidden:
			return nil
		case !isDir && isRead(strings.TrimSuffix(entry.Name(), ".schema.json")):
			paths = append(paths, path)
		case isDir && !isHidden, !isDir && isYAML(entry.Name()):
			unread = path
		}
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return paths, unread, err //nolint:wrapcheck // The caller wraps it.
}

// isDirectory reports whether a path is a directory or a symbolic link to one.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func readFile(path string, limit int) (text []byte, err error) {
	file := os.Stdin
	if path != stdin {
		if file, err = os.Open(path); err != nil {
			return nil, err //nolint:wrapcheck // The caller wraps it.
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	return io.ReadAll(io.LimitReader(file, int64(limit))) //nolint:wrapcheck // The caller wraps it.
}
