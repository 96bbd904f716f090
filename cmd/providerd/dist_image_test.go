//go:build dist

package main

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/providerd/server/contracttest"
)

// builder runs Buildah, with images and containers in a folder of the test.
type builder struct{ program, folder string }

func (b builder) command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), b.program, append([]string{
		"--storage-driver", "vfs", "--root", b.folder + "/root", "--runroot", b.folder + "/run",
	}, arguments...)...)
}

func (b builder) run(t *testing.T, arguments ...string) string {
	t.Helper()
	var talk strings.Builder
	command := b.command(t, arguments...)
	command.Stderr = &talk
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", arguments, err, &talk)
	}
	return strings.TrimSpace(string(output))
}

// lastStage writes a folder to build the last stage of the Dockerfile in, the first one having been done by make dist.
func lastStage(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, stage, found := strings.Cut(string(dockerfile), "\nFROM scratch\n")
	if !found {
		t.Fatal("the Dockerfile has no stage from scratch")
	}
	binary, err := os.ReadFile("../../dist/providerd-linux-" + runtime.GOARCH)
	err = errors.Join(err, os.MkdirAll(filepath.Join(folder, "out", "data"), 0o755),
		os.WriteFile(filepath.Join(folder, "out", "providerd"), binary, 0o755),
		os.WriteFile(filepath.Join(folder, "out", "ca-certificates.crt"), nil, 0o644),
		os.WriteFile(filepath.Join(folder, "Dockerfile"),
			[]byte("FROM scratch AS build\nCOPY out /out\n\nFROM scratch\n"+stage), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestDistImage builds the last stage of the image and runs it: as a user that is not root, with nothing else in it.
func TestDistImage(t *testing.T) {
	program, err := exec.LookPath("buildah")
	if err != nil {
		t.Logf("not built: %v", err)
		return
	}
	b := builder{program, t.TempDir()}
	stage := lastStage(t)
	b.run(t, "build", "--isolation", "chroot", "--format", "docker", "--tag", "providerd", stage)
	settings := b.run(t, "inspect", "--type", "image", "--format",
		"{{.Docker.Config.User}} {{.Docker.Config.Volumes}} {{.Docker.Config.Healthcheck.Test}} {{.Docker.Config.Entrypoint}}", "providerd")
	if want := "65532:65532 map[/data:{}] [CMD /bin/providerd health] [/bin/providerd]"; settings != want {
		t.Errorf("settings are %s, want %s", settings, want)
	}
	container := b.run(t, "from", "--pull-never", "providerd")
	inContainer := func(line string) []string {
		return append([]string{"run", "--isolation", "chroot", container, "--", "/bin/providerd"}, strings.Fields(line)...)
	}
	server, err := startCommand(b.command(t, inContainer("serve --listen 127.0.0.1:0")...))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	token := b.run(t, inContainer("token create --name ci --allow all")...)
	if err := os.Mkdir(filepath.Join(folder, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "data", initialTokenFile), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	status, text, err := server.post(contracttest.Client(t), folder, oauth2Path,
		`{"name":"a","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`)
	if err != nil || status != http.StatusCreated {
		t.Errorf("%d %s, %v", status, text, err)
	}
	for _, line := range []string{"health --listen " + strings.TrimPrefix(server.url, "http://"), "provider list", "doctor"} {
		t.Log(b.run(t, inContainer(line)...))
	}
	// Buildah kills what it runs when it is stopped itself.
	_ = server.stop()
}
