# Types a command of which a part is missing into a zsh that knows the completions of this machine, completes it, and shows
# what it says.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell $'autoload -U compinit; compinit -u; echo READY | tr A-Z a-z'
zpty -r -m shell said '*ready*'
zpty -n -w shell $'providerd ver\t\n'
zpty -r -m shell said '*(schema level|error|not found|expected)*'
print -r -- $said
