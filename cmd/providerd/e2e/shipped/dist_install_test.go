//go:build slow

package shipped_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestShippedFilesInstall pastes the commands of the README that install what is shipped, over folders of this machine
// that they do not change, and uses what they have installed.
func TestShippedFilesInstall(t *testing.T) {
	t.Parallel()
	install := strings.ReplaceAll(providerdtest.FindCodeBlock(t, "cmd/providerd/README.md", "/usr/local/bin/providerd"), "amd64", runtime.GOARCH)
	for name, uses := range map[string]struct{ commands, says string }{
		"program":     {"providerd version", "schema level"},
		"unit":        {"$(sed -n 's/^ExecStart=\\(.*\\) serve$/\\1/p' /etc/systemd/system/providerd.service) version", "schema level"},
		"manual page": {"cat /usr/local/share/man/man1/providerd.1", ".TH PROVIDERD 1"},
		"bash": {`. /usr/local/share/bash-completion/completions/providerd
complete -p providerd
COMP_LINE="providerd ver" COMP_POINT=13 $(complete -p providerd | sed -E "s/.* -C '(.*)' providerd/\1/")`, "\nversion"},
		"zsh":  {`zsh -f "$OLDPWD/testdata/complete.zsh"`, "schema level"},
		"fish": {`fish --command 'complete --do-complete "providerd ver"'`, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if output := afterInstalling(t, install, uses.commands); !strings.Contains(output, uses.says) {
				t.Errorf("it says %q, which has no %q", output, uses.says)
			}
		})
	}
}

// afterInstalling runs commands where others have installed something: in a mount namespace with layers of its own over
// /etc and /usr/local. They begin in an empty folder, of which no file completes a command.
func afterInstalling(t *testing.T, install, commands string) string {
	t.Helper()
	providerdtest.NeedRoot(t)
	builtFolder(t)
	providerdtest.NeedPrograms(t, "dist-test", "zsh", "fish")
	const script = `mount -t tmpfs layers "$1"
for folder in /etc /usr/local; do
	mkdir -p "$1$folder"/{upper,work}
	mount -t overlay -o "lowerdir=$folder,upperdir=$1$folder/upper,workdir=$1$folder/work" overlay "$folder"
done
(cd ../../../..; eval "$2") >&2
cd "$HOME"
eval "$3"`
	var talk strings.Builder
	command := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private",
		"bash", "-euo", "pipefail", "-c", script, "bash", t.TempDir(), install, commands)
	command.Env = append(os.Environ(), "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME="+t.TempDir())
	command.Stderr = &talk
	output, err := command.Output()
	if err != nil {
		t.Errorf("%v: %s", err, &talk)
	}
	return string(output)
}
