//go:build slow

package shipped_test

import (
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// builder runs Buildah with images and containers in a directory of the test.
type builder string

func (b builder) command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "buildah", append([]string{
		"--storage-driver", "vfs", "--root", string(b) + "/root", "--runroot", string(b) + "/run",
	}, arguments...)...)
}

func (b builder) run(t *testing.T, arguments ...string) string {
	t.Helper()
	return strings.TrimSpace(providerdtest.Output(t, b.command(t, arguments...)))
}

// buildContext returns a directory to build the image in. It runs the first stage of the Dockerfile over a copy of the
// tree, with the tools of this host and with another directory instead of /out. The last stage is unchanged. The copy
// is a clean clone, so that the program contains its commit.
func buildContext(t *testing.T) (dir, commit string) {
	dockerfile := strings.ReplaceAll(providerdtest.ReadFile(t, "cmd/providerd/deploy/Dockerfile"), "\\\n", "")
	first, last, found := strings.Cut(dockerfile, "\nFROM scratch\n")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(providerdtest.ReadFile(t, "go.mod"))[1]
	image := `(?m)^FROM golang:` + regexp.QuoteMeta(version) + `\.\d+-[a-z]+ AS build$`
	processtest.Require(t, found && regexp.MustCompile(image).MatchString(first),
		"the Dockerfile has no stage FROM scratch, or does not pin an image of Go %s", version)
	dir = t.TempDir()
	commands := ""
	for _, command := range regexp.MustCompile(`(?m)^RUN (.*\n)`).FindAllStringSubmatch(first+"\n", -1) {
		commands += strings.ReplaceAll(command[1], "/out", filepath.Join(dir, "out"))
	}
	script := fmt.Sprintf(`cd ../../../..
git ls-files -z --cached --others --exclude-standard |
	tar --create --null --ignore-failed-read --files-from=- | tar --extract --directory=%s
cd %[1]s
git init --quiet
git add --all
git -c user.name=a -c user.email=a@example.com -c commit.gpgsign=false commit --quiet --message=a
(%[2]s) >&2
git log --format=%%H`, t.TempDir(), commands)
	commit = providerdtest.Output(t, exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script))
	dockerfile = "FROM scratch AS build\nCOPY out /out\n\nFROM scratch\n" + last
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644))
	return dir, strings.TrimSpace(commit)
}

// TestDistImage builds the image and runs it as a user other than root.
func TestDistImage(t *testing.T) {
	processtest.NeedPrograms(t, "buildah", "buildah")
	example := providerdtest.Examples(t, "service.md", 1)[0].Commands
	for _, option := range []string{"--file cmd/providerd/deploy/Dockerfile ", "--read-only ", ":/data "} {
		processtest.Contains(t, example, option)
	}
	b := builder(t.TempDir())
	dir, commit := buildContext(t)
	b.run(t, "build", "--isolation", "chroot", "--format", "docker", "--tag", "providerd", dir)
	for setting, want := range map[string]string{
		"User":             "65532:65532",
		"Volumes":          "map[/data:{}]",
		"Healthcheck.Test": "[CMD /bin/providerd health]",
		"Entrypoint":       "[/bin/providerd]",
		"Cmd":              "[serve]",
		"ExposedPorts":     "map[8080/tcp:{}]",
	} {
		format := "{{.Docker.Config." + setting + "}}"
		processtest.Equal(t, b.run(t, "inspect", "--type", "image", "--format", format, "providerd"), want, "%s", setting)
	}
	container := b.run(t, "from", "--pull-never", "providerd")
	authorities := filepath.Join(b.run(t, "mount", container), "etc/ssl/certs/ca-certificates.crt")
	if pem, err := os.ReadFile(authorities); err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) {
		t.Errorf("the image has no certificates of public authorities: %v", err)
	}
	inContainer := func(line string) []string {
		return append([]string{"run", "--isolation", "chroot", container, "--", "/bin/providerd"}, strings.Fields(line)...)
	}
	processtest.Contains(t, b.run(t, inContainer("version")...), "\ncommit "+commit+"\n")
	server := providerdtest.MustStart(t, b.command(t, inContainer("serve --listen 127.0.0.1:0")...))
	dir = t.TempDir()
	token := b.run(t, inContainer("token create --name ci --allow all")...)
	processtest.Must(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "data", "initial-token"), []byte(token), 0o600))
	server.Dir = dir
	server.Create(t, contracttest.Client(t))
	for _, line := range []string{"health --listen " + strings.TrimPrefix(server.URL, "http://"), "provider list", "doctor"} {
		t.Log(b.run(t, inContainer(line)...))
	}
	// Stopping Buildah kills the server in the container.
	_ = server.Child.Stop(syscall.SIGTERM)
	b.checkReadOnlyRoot(t, container)
}

// checkReadOnlyRoot fails t if the image writes outside of its volume, as with "docker run --read-only".
func (b builder) checkReadOnlyRoot(t *testing.T, container string) {
	root, volume := b.run(t, "mount", container), t.TempDir()
	const script = `mount --bind "$1/data" "$2"
mount --bind -o ro "$1" "$1"
mount --bind "$2" "$1/data"
exec chroot --userspec=65532:65532 "$1" /bin/providerd "${@:3}"`
	inReadOnly := func(line string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "unshare", append([]string{
			"--mount", "--propagation", "private", "bash", "-euc", script, "bash", root, volume,
		}, strings.Fields(line)...)...)
		command.Env = append(strings.Fields(b.run(t, "inspect", "--format",
			"{{range .Docker.Config.Env}}{{println .}}{{end}}", container)), "PATH="+os.Getenv("PATH"))
		return command
	}
	server := providerdtest.MustStart(t, inReadOnly("serve --listen 127.0.0.1:0"))
	server.Dir = root
	server.Create(t, contracttest.Client(t))
	for _, line := range []string{
		"health --listen " + strings.TrimPrefix(server.URL, "http://"), "key rotate", "key reseal", "backup /data/backup.db", "doctor",
	} {
		processtest.Run(t, inReadOnly(line))
	}
	providerdtest.ExpectExit(t, inReadOnly("backup /backup.db"), providerdtest.ExitFailed, "read-only")
	server.Stop(t)
}
