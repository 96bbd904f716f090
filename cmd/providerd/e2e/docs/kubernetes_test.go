package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

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
						Name      string
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
	if !strings.Contains(messages, "1 entry: 1 created") {
		t.Errorf("messages are %s", messages)
	}
	messages = providerdtest.RunCommand(t, root, arguments...)
	if !strings.Contains(messages, "1 entry: 0 created, 1 unchanged") {
		t.Errorf("messages are %s", messages)
	}
}
