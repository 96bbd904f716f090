# Types the beginning of a command into an interactive zsh with the installed completions, completes it with a tab, and
# prints the output of the command.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell $'autoload -U compinit; compinit -u; echo READY | tr A-Z a-z'
zpty -r -m shell output '*ready*'
zpty -n -w shell $'providerd ver\t\n'
zpty -r -m shell output '*(schema version|error|not found|expected)*'
print -r -- $output
