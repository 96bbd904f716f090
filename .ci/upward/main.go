// Upward prints the files, lines and exported names of each package, and the uses that run upward between its files in
// the order that has the fewest. A reader who follows this order meets what is used after what uses it. Tests, their
// helpers and generated files do not count.
//
//	go run ./.ci/upward                # the packages of store and cmd
//	go run ./.ci/upward -list ./store  # also lists the uses that run upward
//
// A use is a file together with a name of another file that it refers to, once or often. Names are those declared at
// package level, and methods. It runs upward if the other file comes first in the order. Floors is the length of the
// longest chain of files in which each uses the next, which comes later.
//
// Start with main and order.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	isList := flag.Bool("list", false, "list the uses that run upward")
	flag.Parse()
	log.SetFlags(0)
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./store/...", "./cmd/..."}
	}
	packages, err := list(patterns)
	if err != nil {
		log.Fatal(err)
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	// Helpers of tests are not product.
	helpers := regexp.MustCompile(`/(e2e|\w+test)(/|$)`)
	fmt.Printf("%-40s %5s %5s %8s %6s %6s\n", "package", "files", "lines", "exported", "floors", "upward")
	for _, p := range packages {
		if p.DepOnly || len(p.GoFiles) == 0 || helpers.MatchString(p.ImportPath) {
			continue
		}
		read, err := p.read(exports)
		if err != nil {
			log.Fatalf("%s: %v", p.ImportPath, err)
		}
		read.print(strings.TrimPrefix(p.ImportPath, p.Module.Path+"/"), *isList)
	}
}

// listed is what go list prints of a package.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
	Module                  struct{ Path string }
}

func list(patterns []string) (packages []listed, err error) {
	command := exec.Command("go", append([]string{"list", "-export", "-deps",
		"-json=Dir,ImportPath,Export,GoFiles,DepOnly,Module"}, patterns...)...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(output); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, command.Wait()
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// contents are the files of a package and what they use of each other.
type contents struct {
	files           []string
	lines, exported int
	// uses has the names of file b that file a uses at [a][b].
	uses [][][]string
}

func (p listed) read(exports map[string]string) (read contents, err error) {
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return read, err
		}
		if parsed = append(parsed, file); !ast.IsGenerated(file) {
			read.files = append(read.files, name)
			read.lines += set.File(file.FileStart).LineCount()
		}
	}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := config.Check(p.ImportPath, set, parsed, &info)
	if err != nil {
		return read, err
	}
	index := func(at token.Pos) int { return slices.Index(read.files, filepath.Base(set.Position(at).Filename)) }
	for _, name := range checked.Scope().Names() {
		if token.IsExported(name) && index(checked.Scope().Lookup(name).Pos()) >= 0 {
			read.exported++
		}
	}
	read.uses = make([][][]string, len(read.files))
	for i := range read.uses {
		read.uses[i] = make([][]string, len(read.files))
	}
	for ident, object := range info.Uses {
		if object.Pkg() != checked || !isShared(object) {
			continue
		}
		from, to := index(ident.Pos()), index(object.Pos())
		if from >= 0 && to >= 0 && from != to && !slices.Contains(read.uses[from][to], nameOf(object)) {
			read.uses[from][to] = append(read.uses[from][to], nameOf(object))
		}
	}
	return read, nil
}

// isShared reports whether an object is one that files use of each other.
func isShared(object types.Object) bool {
	function, isFunction := object.(*types.Func)
	return isFunction && function.Signature().Recv() != nil || object.Parent() == object.Pkg().Scope()
}

// nameOf returns the name of an object, with the type of a method.
func nameOf(object types.Object) string {
	function, isFunction := object.(*types.Func)
	if !isFunction || function.Signature().Recv() == nil {
		return object.Name()
	}
	receiver := types.TypeString(function.Signature().Recv().Type(), func(*types.Package) string { return "" })
	return regexp.MustCompile(`^\*|\[.*`).ReplaceAllString(receiver, "") + "." + object.Name()
}

func (c contents) print(name string, isList bool) {
	files := c.order()
	upward, floors := 0, make([]int, len(c.files))
	var listed, ordered []string
	for below, b := range files {
		ordered = append(ordered, c.files[b])
		for _, a := range files[:below] {
			if len(c.uses[a][b]) > 0 {
				floors[b] = max(floors[b], floors[a]+1)
			}
			if names := c.uses[b][a]; len(names) > 0 {
				upward += len(names)
				slices.Sort(names)
				listed = append(listed, fmt.Sprintf("  %s uses of %s: %s", c.files[b], c.files[a], strings.Join(names, ", ")))
			}
		}
	}
	fmt.Printf("%-40s %5d %5d %8d %6d %6d\n", name, len(files), c.lines, c.exported, slices.Max(floors)+1, upward)
	if len(files) > 1 {
		fmt.Printf("  %s\n", strings.Join(ordered, " "))
	}
	if isList && len(listed) > 0 {
		fmt.Println(strings.Join(listed, "\n"))
	}
}
