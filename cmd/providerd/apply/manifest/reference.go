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

// referencePattern matches a reference to a file or a variable (POSIX.1-2017, Base Definitions, section 8.1).
const referencePattern = `\$\{(?:[A-Za-z_][A-Za-z0-9_]*|file:[^}]+)\}`

var (
	reference = regexp.MustCompile(`^` + referencePattern + `$`)
	// dollar matches what may be a reference, and what stands for ${.
	dollar = regexp.MustCompile(`\$\$\{|\$\{[^}]*\}?`)
	// foreign matches references of shells, Ansible and Helm, Microsoft, 1Password, vals, Vault and SOPS.
	foreign = regexp.MustCompile(`^\s*(\$[A-Z_][A-Z0-9_]{2,}|\{\{.*\}\}|\$\(env:.*\)|` +
		`(op|vault|ref\+[a-z]+)://.*|vault:.*|ENC\[.*\])\s*$`)
)

const templateRemedy = "is a template that was not rendered; render the file first, or write ${NAME} for a variable " +
	"or ${file:PATH} for a file"

func isReference(text string) bool { return reference.MatchString(text) }

// expand replaces the references in a text, which may look like one of another system if it has the tag of a string.
func (e *entryReader) expand(text string, isTagged bool) (string, error) {
	if foreign.MatchString(text) && !isTagged {
		if strings.Contains(text, "{{") {
			return "", errors.New(templateRemedy + ", or !!str before it to store it")
		}
		return "", errors.New("is a reference for another system and would be stored as is; write ${NAME} for a " +
			"variable or ${file:PATH} for a file, or !!str before it to store it")
	}
	var err error
	expanded := dollar.ReplaceAllStringFunc(text, func(found string) (value string) {
		switch {
		case err != nil:
		case found == "$${":
			value = "${"
		case !isReference(found):
			err = errors.New("contains a ${ that is not part of a reference such as ${NAME} or ${file:PATH}; " +
				"write $${ for ${ itself")
		default:
			value, err = e.refer(found[len("${") : len(found)-len("}")])
		}
		return value
	})
	return expanded, err
}

func (e *entryReader) refer(name string) (string, error) {
	named := "the variable " + name
	value, ok := e.values.Variable(name)
	if path, isFile := strings.CutPrefix(name, "file:"); isFile {
		named = "the file " + path
		var err error
		if value, err = e.readReferenced(path); err != nil {
			remedy := "correct the path, which is relative to the YAML file"
			if strings.ContainsAny(path[:1], "~$") {
				remedy = "write a path relative to the YAML file, or an absolute one: ~ and variables are not replaced in it"
			}
			return "", fmt.Errorf("refers to a file that cannot be read: %w; %s", err, remedy)
		}
	} else if !ok {
		return "", fmt.Errorf("refers to %s, which is not set; export it, or write $${ for a literal ${", named)
	}
	e.used.bytes += len(value)
	switch {
	case value == "":
		return "", fmt.Errorf("refers to %s, which is empty; write '' for an empty value", named)
	case !utf8.ValidString(value):
		return "", fmt.Errorf("refers to %s, which is not UTF-8; encode it in UTF-8", named)
	default:
		return value, nil
	}
}

func (e *entryReader) readReferenced(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.file.Dir, path)
	}
	text, err := e.values.File(path)
	if err == nil && !isWithin(e.file.Dir, path) {
		e.outside[path] = true
	}
	return files.Text(text), err
}

// isWithin reports whether a file is in a directory or below it, with symbolic links resolved.
func isWithin(dir, path string) bool {
	for _, name := range []*string{&dir, &path} {
		if target, err := filepath.EvalSymlinks(*name); err == nil {
			*name = target
		}
		if absolute, err := filepath.Abs(*name); err == nil {
			*name = absolute
		}
	}
	inner, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(inner)
}
