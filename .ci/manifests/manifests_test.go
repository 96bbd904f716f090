// Package manifests validates the files of cmd/providerd/deploy with the libraries of Docker Compose and Kubernetes. It
// is a module of its own, so that the program does not depend on them.
package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

const deployDir = "../../cmd/providerd/deploy"

// TestCompose loads each profile of compose.yaml as "docker compose" does.
func TestCompose(t *testing.T) {
	for profile, want := range map[string][]string{
		"sqlite": {"proxy", "sqlite"}, "postgres": {"postgres", "proxy", "replica"},
	} {
		options, err := cli.NewProjectOptions([]string{filepath.Join(deployDir, "compose.yaml")},
			cli.WithProfiles([]string{profile}), cli.WithInterpolation(true))
		if err != nil {
			t.Fatal(err)
		}
		project, err := options.LoadProject(t.Context())
		if err != nil {
			t.Fatalf("profile %s: %v", profile, err)
		}
		names := project.ServiceNames()
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("profile %s has the services %q, want %q", profile, names, want)
		}
		for name, service := range project.Services {
			if !slices.Equal(service.CapDrop, []string{"ALL"}) || len(service.SecurityOpt) != 1 {
				t.Errorf("%s has capabilities, or can get privileges", name)
			}
			if service.Image == "providerd" && (!service.ReadOnly || service.HealthCheck == nil || service.Build == nil) {
				t.Errorf("%s has a writable root file system or no health check, or is not built", name)
			}
		}
	}
}

// TestKubernetes decodes each object as the API server does: unknown and repeated fields are errors.
func TestKubernetes(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, batch.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for file, want := range map[string]int{"apply-job.yaml": 3, "kubernetes-sqlite.yaml": 3, "kubernetes-postgres.yaml": 4} {
		text, err := os.ReadFile(filepath.Join(deployDir, file))
		if err != nil {
			t.Fatal(err)
		}
		documents := bytes.Split(text, []byte("\n---\n"))
		if len(documents) != want {
			t.Errorf("%s has %d objects, want %d", file, len(documents), want)
		}
		for _, document := range documents {
			object, err := yaml.YAMLToJSONStrict(document)
			if err == nil {
				_, _, err = decoder.Decode(object, nil, nil)
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
