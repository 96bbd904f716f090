package manifest

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"example.com/providerd/store/files"
)

// Values returns the values that references such as ${NAME} and ${file:PATH} stand for.
type Values struct {
	// Variable returns the value of an environment variable, like os.LookupEnv.
	Variable func(name string) (value string, ok bool)
	// File returns the text of a file. Its error names the path.
	File func(path string) (text []byte, err error)
}

// referencePattern matches a reference to an environment variable (POSIX.1-2017, Base Definitions, section 8.1) or to a
// file.
const referencePattern = `\$\{(?:[A-Za-z_][A-Za-z0-9_]*|file:[^}]+)\}`

// isReference reports whether a text is exactly one reference.
func isReference(text string) bool {
	return regexp.MustCompile(`^` + referencePattern + `$`).MatchString(text)
}

// foreignPattern matches references of other systems: of Ansible and Helm, Microsoft, 1Password, vals, Vault and SOPS.
const foreignPattern = `^\s*(\{\{.*\}\}|\$\(env:.*\)|(op|vault|ref\+[a-z]+)://.*|vault:.*|ENC\[.*\])\s*$`

// expand replaces the references in a text.
func (b *bodyReader) expand(text string) (string, error) {
	if strings.ContainsAny(text, ":[{") && regexp.MustCompile(foreignPattern).MatchString(text) {
		return "", errors.New("is a reference of another system, which would be stored as it is; write ${NAME} for a " +
			"variable or ${file:PATH} for a file")
	}
	var result strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			return result.String() + text, nil
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			result.WriteString(escaped + "${")
			text = after
			continue
		}
		name, rest, _ := strings.Cut(after, "}")
		if !isReference(text[len(before) : len(text)-len(rest)]) {
			return "", errors.New("contains ${ that is not part of a reference such as ${NAME} or ${file:PATH}; " +
				"write $${ for ${ itself")
		}
		value, err := b.value(name)
		if err != nil {
			return "", err
		}
		result.WriteString(before + value)
		text = rest
	}
}

// value returns the value that a reference names.
func (b *bodyReader) value(name string) (string, error) {
	named := "the variable " + name
	value, ok := b.values.Variable(name)
	if path, isFile := strings.CutPrefix(name, "file:"); isFile {
		named = "the file " + path
		var err error
		if value, err = b.readFile(path); err != nil {
			return "", fmt.Errorf("refers to a file: %w", err)
		}
	} else if !ok {
		return "", fmt.Errorf("refers to %s, which is not set", named)
	}
	switch {
	case value == "":
		return "", fmt.Errorf("refers to %s, which is empty; write '' for an empty value", named)
	case !utf8.ValidString(value):
		return "", fmt.Errorf("refers to %s, which is not UTF-8", named)
	default:
		return value, nil
	}
}

// readFile returns the text of a file that a reference names.
func (b *bodyReader) readFile(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.file.Dir, path)
	}
	if inner, err := filepath.Rel(resolved(b.file.Dir), resolved(path)); err != nil || !filepath.IsLocal(inner) {
		b.outside[path] = true
	}
	text, err := b.values.File(path)
	b.used.bytes += len(text)
	return files.Text(text), err
}

// resolved returns the absolute path without symbolic links, as far as it exists.
func resolved(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
