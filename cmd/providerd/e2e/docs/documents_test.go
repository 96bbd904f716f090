package docs_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// createShown creates the provider of the README over a SQLite database in dir, and returns the response.
func createShown(t *testing.T, dir string) (response string) {
	t.Helper()
	server := providerdtest.Serve(t, dir)
	for _, commands := range providerdtest.CodeBlocks(providerdtest.ReadFile(t, "README.md"), "sh") {
		if strings.HasPrefix(commands, "curl ") {
			response = providerdtest.RunShell(t, dir, strings.ReplaceAll(commands, "http://127.0.0.1:8080", server.URL))
		}
	}
	server.Stop(t)
	return response
}

// TestReadmeWorks runs the README's request, and compares the response with the one that the README shows. With
// UPDATE=1, it writes that one.
func TestReadmeWorks(t *testing.T) {
	t.Parallel()
	dir, shown, response := t.TempDir(), map[string]any{}, map[string]any{}
	readme := providerdtest.ReadFile(t, "README.md")
	example := providerdtest.CodeBlocks(readme, "json")[0]
	processtest.Must(t, json.Unmarshal([]byte(example), &shown))
	processtest.Must(t, json.Unmarshal([]byte(createShown(t, dir)), &response))
	for _, random := range []string{"client_id", "client_secret"} {
		if response[random] == "" {
			t.Errorf("%s is empty", random)
		}
		response[random] = shown[random]
	}
	if os.Getenv("UPDATE") != "" {
		text, err := json.MarshalIndent(response, "", "  ")
		readme = strings.Replace(readme, strings.TrimSpace(example), string(text), 1)
		processtest.Must(t, err, os.WriteFile(providerdtest.Path(t, "README.md"), []byte(readme), 0o600))
		return
	}
	if !maps.EqualFunc(shown, response, reflect.DeepEqual) {
		t.Errorf("the response is %v, the README shows %v", response, shown)
	}
	processtest.Equal(t, len(providerdtest.StoredPKs(t, dir)), 1, "providers stored by the README")
}

// runProgram compiles a Go program in this module, runs it in a directory with additional environment variables, and
// returns its output.
func runProgram(t *testing.T, dir, program string, environment ...string) string {
	t.Helper()
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	processtest.Must(t, os.WriteFile(source, []byte(program), 0o600))
	providerdtest.Run(t, "go", "build", "-o", binary, source)
	command := exec.CommandContext(t.Context(), binary)
	command.Dir, command.Env = dir, append(os.Environ(), environment...)
	return processtest.Run(t, command)
}

// TestSamplesWork runs the samples of the reference page with a token in PROVIDERD_TOKEN. Those in TypeScript run in
// gen/typescript.
func TestSamplesWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	_, text := providerdtest.Get(t, server.URL+"/openapi.json")
	var contract struct {
		Paths map[string]struct {
			Post struct {
				Samples []struct{ Label, Source string } `json:"x-codeSamples"`
			}
		}
	}
	processtest.Must(t, json.Unmarshal([]byte(text), &contract))
	environment, created := "PROVIDERD_TOKEN="+providerdtest.Token(t, dir), 0
	for _, path := range contract.Paths {
		for _, sample := range path.Post.Samples {
			source := strings.ReplaceAll(sample.Source, "http://127.0.0.1:8080", server.URL)
			switch sample.Label {
			case "curl":
				shell := providerdtest.ShellCommand(t, dir, source)
				shell.Env = append(shell.Env, environment)
				if output, err := shell.Output(); err != nil || !strings.HasPrefix(string(output), "HTTP/1.1 201 ") {
					t.Errorf("%s: %v: %s", source, err, output)
				}
				created++
			case "Go":
				processtest.Equal(t, strings.Trim(runProgram(t, dir, source, environment), "0123456789"), "\n", "what %s prints after a pk", source)
				created++
			}
		}
	}
	server.Stop(t)
	if pks := providerdtest.StoredPKs(t, dir); created != 4 || len(pks) != created {
		t.Errorf("%d samples in curl and Go stored %v, want 4 providers", created, pks)
	}
}

// documents calls check for each Markdown file of this module, except those of installed packages.
func documents(t *testing.T, check func(path string)) {
	t.Helper()
	root := os.DirFS(providerdtest.Path(t, ""))
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", ".git"}, entry.Name()):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			check(path)
		}
		return nil
	})
	processtest.Must(t, err)
}

// TestLinks follows the relative links of all Markdown files, and the anchors of their headings.
func TestLinks(t *testing.T) {
	t.Parallel()
	followed := 0
	documents(t, func(path string) {
		for _, link := range links(t, path) {
			followed++
			file, anchor, hasAnchor := strings.Cut(link, "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(providerdtest.Path(t, target)); err != nil {
				t.Errorf("%s: link to %s: %v", path, link, err)
			} else if hasAnchor && !anchors(t, target)[anchor] {
				t.Errorf("%s: link to %s: no such heading", path, link)
			}
		}
	})
	if followed < 50 {
		t.Errorf("followed only %d links", followed)
	}
}

// TestDocumentsNameTargets looks up each "make TARGET" and "PROOF=NAME" of the Markdown files.
func TestDocumentsNameTargets(t *testing.T) {
	t.Parallel()
	makefile := providerdtest.ReadFile(t, "Makefile")
	documents(t, func(path string) {
		for suffix, pattern := range map[string]string{":": "(?m)(?:`|^)make ([a-z-]+)", " := ": "PROOF=([a-z]+)"} {
			for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(providerdtest.ReadFile(t, path), -1) {
				if !strings.Contains(makefile, "\n"+match[1]+suffix) {
					t.Errorf("%s: the Makefile has no line that begins with %s", path, match[1]+suffix)
				}
			}
		}
	})
}

// prose returns a Markdown file without its blocks of code.
func prose(t *testing.T, path string) string {
	t.Helper()
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(providerdtest.ReadFile(t, path), "")
}

// links returns the targets of the links and images of a file, except those on other hosts.
func links(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	text := regexp.MustCompile("`[^`\n]+`").ReplaceAllString(prose(t, path), "code")
	for _, match := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(match[1], "://") {
			found = append(found, match[1])
		}
	}
	return found
}

// anchors returns the anchors that code hosts give the headings of a file.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(prose(t, path), -1) {
		kept := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(kept, " ", "-")] = true
	}
	return found
}

// kubernetesObject is the part of an object in deploy/apply-job.yaml that decides what the Job does.
type kubernetesObject struct {
	Kind       string
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args         []string
					VolumeMounts []struct {
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
			}
		}
	}
}

// mount writes files as Kubernetes mounts them: as symbolic links into a hidden directory.
func mount(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	processtest.Must(t, os.MkdirAll(filepath.Join(dir, "..2026"), 0o700))
	processtest.Must(t, os.Symlink("..2026", filepath.Join(dir, "..data")))
	for name, text := range files {
		processtest.Must(t, os.WriteFile(filepath.Join(dir, "..2026", name), []byte(text), 0o600))
		processtest.Must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
}

// TestKubernetesJob runs the container of the Job on this machine, with its volumes in a temporary directory.
func TestKubernetesJob(t *testing.T) {
	t.Parallel()
	server := providerdtest.Serve(t, t.TempDir())
	root := t.TempDir()
	config, secrets := filepath.Join(root, "config"), filepath.Join(root, "secrets")
	local := strings.NewReplacer("/config", config, "/run/secrets/providerd", secrets, "http://providerd:8080", server.URL)
	paths := map[string]bool{}
	text := providerdtest.ReadFile(t, "cmd/providerd/deploy/apply-job.yaml")
	var arguments []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object kubernetesObject
		processtest.Must(t, yaml.Unmarshal([]byte(document), &object))
		switch object.Kind {
		case "ConfigMap":
			mount(t, config, map[string]string{"providers.yaml": local.Replace(object.Data["providers.yaml"])})
		case "Secret":
			object.StringData["token"] = providerdtest.Token(t, server.Dir) + "\n"
			mount(t, secrets, object.StringData)
		case "Job":
			container := object.Spec.Template.Spec.Containers[0]
			for _, volume := range container.VolumeMounts {
				paths[volume.MountPath] = true
			}
			for _, argument := range container.Args {
				arguments = append(arguments, local.Replace(argument))
			}
		}
	}
	if !paths["/config"] || !paths["/run/secrets/providerd"] || len(paths) != 2 {
		t.Errorf("the volumes are mounted at %v", paths)
	}
	messages := providerdtest.RunCommand(t, root, append(arguments, "--recursive")...)
	processtest.Contains(t, messages, "1 entry: 1 created")
	messages = providerdtest.RunCommand(t, root, arguments...)
	processtest.Contains(t, messages, "1 entry: 0 created, 1 unchanged")
}
