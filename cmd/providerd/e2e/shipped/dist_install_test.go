//go:build slow

package shipped_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestShippedFilesInstall runs the documented commands that install the shipped files in a mount namespace, and uses what
// they install.
func TestShippedFilesInstall(t *testing.T) {
	t.Parallel()
	install := strings.ReplaceAll(providerdtest.Examples(t, "service.md", 1)[0].Commands, "amd64", runtime.GOARCH)
	for name, use := range map[string]struct{ commands, want string }{
		"program":     {"providerd version", "schema version"},
		"unit":        {"$(sed -n 's/^ExecStart=\\(.*\\) serve$/\\1/p' /etc/systemd/system/providerd.service) version", "schema version"},
		"manual page": {"cat /usr/local/share/man/man1/providerd.1", ".TH PROVIDERD 1"},
		"bash": {`. /usr/local/share/bash-completion/completions/providerd
complete -p providerd
COMP_LINE="providerd ver" COMP_POINT=13 $(complete -p providerd | sed -E "s/.* -C '(.*)' providerd/\1/")`, "\nversion"},
		"zsh":  {`zsh -f "$OLDPWD/testdata/complete.zsh"`, "schema version"},
		"fish": {`fish --command 'complete --do-complete "providerd ver"'`, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if output := afterInstalling(t, install, use.commands); !strings.Contains(output, use.want) {
				t.Errorf("output is %q, which does not contain %q", output, use.want)
			}
		})
	}
}

// afterInstalling returns the output of commands that run after others have installed something. Both run in a mount
// namespace with overlays over /etc and /usr/local, so that the host does not change. The commands start in an empty
// directory, so that no file name completes a command.
func afterInstalling(t *testing.T, install, commands string) string {
	t.Helper()
	processtest.NeedRoot(t)
	distDir(t)
	processtest.NeedPrograms(t, "shells", "zsh", "fish")
	const script = `mount -t tmpfs layers "$1"
for dir in /etc /usr/local; do
	mkdir -p "$1$dir"/{upper,work}
	mount -t overlay -o "lowerdir=$dir,upperdir=$1$dir/upper,workdir=$1$dir/work" overlay "$dir"
done
(cd ../../../..; eval "$2") >&2
cd "$HOME"
eval "$3"`
	command := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private",
		"bash", "-euo", "pipefail", "-c", script, "bash", t.TempDir(), install, commands)
	command.Env = append(os.Environ(), "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME="+t.TempDir())
	return providerdtest.Output(t, command)
}
