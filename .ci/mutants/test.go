package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tester runs tests over mutants.
type tester struct {
	importers map[string][]string
	budget    time.Duration
	tags      string
}

// test returns the package and the test that noticed a mutant, or "" if it survived.
func (t tester) test(m mutant) (noticedBy string, err error) {
	overlay, clean, err := m.overlay()
	if err != nil {
		return "", err
	}
	defer clean()
	ctx, cancel := context.WithTimeout(context.Background(), t.budget)
	defer cancel()
	if known, test, isKnown := strings.Cut(m.noticedBy, " "); isKnown {
		name, _, _ := strings.Cut(test, "/")
		if failed := t.run(ctx, overlay, known, "^"+name+"$"); failed != "" {
			return known + " " + failed, nil
		}
	}
	own := "./" + filepath.Dir(m.file)
	for _, tested := range t.importers[own] {
		if failed := t.run(ctx, overlay, tested, "."); failed != "" {
			return tested + " " + failed, nil
		}
	}
	return "", nil
}

// run returns the first test that fails within the budget, or "".
func (t tester) run(ctx context.Context, overlay, tested, pattern string) string {
	command := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-vet=off", "-failfast", "-count=1",
		"-tags", t.tags, "-run", pattern, tested)
	command.WaitDelay = time.Second
	output, err := command.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if failed := regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`).FindAllStringSubmatch(string(output), -1); failed != nil {
		return failed[len(failed)-1][1]
	}
	if panicked := regexp.MustCompile(`(?m)^\S*\.(Test\w+)\(`).FindStringSubmatch(string(output)); panicked != nil {
		return panicked[1]
	}
	return "(no test)"
}

// find returns where the mutant changes its file.
func (m mutant) find() (candidate, error) {
	candidates, err := readCandidates(m.file)
	if err != nil {
		return candidate{}, err
	}
	at := slices.IndexFunc(candidates, func(c candidate) bool {
		return c.function == m.function && c.kind == m.kind && c.nth == m.nth && c.before == m.before
	})
	if at < 0 {
		return candidate{}, errors.New("not found")
	}
	return candidates[at], nil
}

// overlay writes the mutated file and the file that has Go use it.
func (m mutant) overlay() (path string, clean func(), err error) {
	c, err := m.find()
	if err != nil {
		return "", nil, err
	}
	content, err := os.ReadFile(m.file)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	whole, err := filepath.Abs(m.file)
	if err != nil {
		return "", nil, err
	}
	mutated := filepath.Join(dir, filepath.Base(m.file))
	replaced := string(content[:c.from]) + m.after + string(content[c.to:])
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{whole: mutated}})
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, func() { _ = os.RemoveAll(dir) },
		errors.Join(os.WriteFile(mutated, []byte(replaced), 0o600), os.WriteFile(path, replace, 0o600))
}

// readImporters returns for each package those whose tests it is part of, itself first, then by distance.
func readImporters() (map[string][]string, error) {
	output, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	type listed struct {
		ImportPath                         string
		Imports, TestImports, XTestImports []string
	}
	importedBy, direct := map[string][]string{}, map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); decoder.More(); {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		for _, imported := range p.Imports {
			importedBy[imported] = append(importedBy[imported], p.ImportPath)
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			direct[imported] = append(direct[imported], p.ImportPath)
		}
		importedBy[p.ImportPath] = append(importedBy[p.ImportPath], p.ImportPath)
	}
	importers := map[string][]string{}
	for imported := range importedBy {
		distances := map[string]int{imported: 0}
		for queue := []string{imported}; len(queue) > 0; queue = queue[1:] {
			for _, next := range slices.Concat(importedBy[queue[0]], direct[queue[0]]) {
				if _, isKnown := distances[next]; !isKnown {
					distances[next] = distances[queue[0]] + 1
					if !slices.Contains(direct[queue[0]], next) || slices.Contains(importedBy[queue[0]], next) {
						queue = append(queue, next)
					}
				}
			}
		}
		ordered := slices.SortedFunc(maps.Keys(distances), func(a, b string) int {
			return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
		})
		for _, importer := range ordered {
			importers[relative(imported)] = append(importers[relative(imported)], relative(importer))
		}
	}
	return importers, nil
}

func relative(path string) string { return "./" + strings.TrimPrefix(path, "example.com/providerd/") }
